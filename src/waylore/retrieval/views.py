"""Views of a memory: the timeline of an entity, what changed in a time, the profile of a user, and provenance.

Timeline, changes and profile read assertions by entity, never the turns of a user. `history` computes when facts held.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from waylore.dates import format_day
from waylore.fence import to_line
from waylore.relations import get_relation_name
from waylore.retrieval.graph.state import Loaded, load_passages
from waylore.retrieval.graph.validity import ALWAYS, FOREVER, get_key, make_order_key
from waylore.retrieval.history import (
    HeldPeriod,
    find_assertion,
    find_end,
    find_entities,
    load_stating,
    read_facts,
    read_held,
)
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import estimate_tokens, normalise
from waylore.types.knowledge import EPOCH, Fact, Passage
from waylore.types.search import Query
from waylore.types.views import (
    Assertion,
    ChangeKind,
    ChangeList,
    MemoryChange,
    Profile,
    ProfileLine,
    Provenance,
    Timeline,
    TimelineEntry,
)

MAX_FACTS = 256  # of an entity whose assertions are read
MAX_NEAR, MAX_NEAR_FACTS = 32, 16  # entities that facts of a user name, and facts of each
MAX_OBJECTS = 8  # of one relation in a line of a profile


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The time of a view, how many items it has at most, and the predicates that are single-valued besides ours."""

    since: datetime | None
    until: datetime | None
    limit: int
    single_valued: Sequence[str]

    def covers(self, moment: datetime) -> bool:
        """Return whether a moment is in the time."""
        return (self.since or ALWAYS) <= moment < (self.until or FOREVER)


# -- timeline ------------------------------------------------------------------------------------------


def read_timeline(query: Query, options: ViewOptions, now: datetime) -> Reads[Timeline]:
    """Return the assertions of the entities of a name that held in a time, in order of time, the newest ones."""
    ids = yield from find_entities(query)
    facts, is_cut = yield from read_facts(query, ids, MAX_FACTS)
    held, is_old = yield from read_held(query, facts, options.single_valued)
    told: dict[tuple[str, str], tuple[Fact, list[HeldPeriod]]] = {}
    for each in held:
        is_own = not set(ids).isdisjoint(each.first.ends)
        if is_own and each.overlaps(options.since or ALWAYS, options.until or FOREVER):
            for fact in each.period.assertions:
                told.setdefault(get_key(fact), (fact, []))[1].append(each)
    ordered = sorted(told.values(), key=lambda entry: _make_time_key(entry[0]))
    chosen = ordered[-options.limit :]
    ends = [each.by for _, of_one in chosen for each in of_one]
    loaded = yield from load_stating(query, [fact for fact, _ in chosen], ends)
    made = [_make_entry(fact, of_one, loaded, now) for fact, of_one in chosen]
    has_more = is_cut or is_old or len(chosen) < len(ordered)
    return Timeline(query.text, tuple(filter(None, made)), has_more)


def _make_time_key(fact: Fact) -> tuple[bool, object, tuple[str, str]]:
    return fact.is_dated, make_order_key(fact), get_key(fact)


def _make_entry(fact: Fact, held: Sequence[HeldPeriod], loaded: Loaded, now: datetime) -> TimelineEntry | None:
    last = held[-1]
    said = find_assertion(last.period.limit(fact), loaded)
    if said is None:
        return None
    end = find_end(last, loaded)
    periods = [(_to_known(each.period.start), _to_known(each.period.end)) for each in held if each.has_held]
    return TimelineEntry(said, tuple(periods), end, is_planned=last.has_held and held[0].period.start > now)


def _to_known(moment: datetime) -> datetime | None:
    return None if moment in (ALWAYS, FOREVER) else moment


# -- changes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of facts, before their passages are read."""

    kind: ChangeKind
    at: datetime
    before: Fact | None
    after: Fact | None

    @property
    def ends(self) -> set[str]:
        """The ids of the entities that the facts connect."""
        return {id_ for fact in (self.before, self.after) if fact for id_ in fact.ends}

    def load(self, loaded: Loaded, own: Collection[str], user: str) -> MemoryChange | None:
        """Return the change with its passages; None if it is about others and no document of the user says so."""
        before, after = find_assertion(self.before, loaded), find_assertion(self.after, loaded)
        said = [each for each in (before, after) if each]
        is_own = not self.ends.isdisjoint(own) or any(each.document.user == user for each in said)
        return MemoryChange(self.kind, self.at, before, after) if said and is_own else None


def read_changes(query: Query, options: ViewOptions, *, with_near: bool) -> Reads[ChangeList]:
    """Return what began, changed, was corrected and ended in a time, in order of time, the newest ones.

    With `with_near` also of entities that facts connect with the named one, as far as documents of the user say it.
    """
    own = yield from find_entities(query)
    facts, is_cut = yield from read_facts(query, own, MAX_FACTS)
    near = list(dict.fromkeys(id_ for fact in facts for id_ in fact.ends if id_ not in own))[:MAX_NEAR]
    if with_near and near:
        others, _ = yield from read_facts(query, near, MAX_NEAR_FACTS)
        facts = [*facts, *others]
    wanted = {*own, *(near if with_near else ())}
    held, is_old = yield from read_held(query, facts, options.single_valued)
    told = (each for each in list_changes(held) if options.covers(each.at) and not wanted.isdisjoint(each.ends))
    found = sorted(told, key=attrgetter("at"))
    loaded = yield from load_stating(query, [each.before for each in found], [each.after for each in found])
    made = [change for each in found if (change := each.load(loaded, own, query.where.user))]
    return ChangeList(tuple(made[-options.limit :]), is_cut or is_old or len(made) > options.limit)


def list_changes(held: Iterable[HeldPeriod]) -> Iterator[FactChange]:
    """Yield what changed in periods. A fact that replaced another one is one change with it."""
    known = [each for each in held if each.first.is_dated]
    replacing = {get_key(each.by) for each in known if each.by}
    for each in known:
        if each.kind and not each.period.is_denial:
            yield FactChange(each.kind, each.at, each.last, each.by)
        if each.period.start == ALWAYS or get_key(each.first) in replacing:
            continue
        if each.period.is_denial:
            yield FactChange("ended", each.period.start, None, each.first)
        elif each.has_held:
            yield FactChange("began", each.period.start, None, each.first)


# -- profile -------------------------------------------------------------------------------------------


def read_profile(query: Query, facts: Sequence[Fact], budget: int) -> Reads[Profile]:
    """Return the facts of a user as lines, one for each relation, the most used and then the newest first.

    A line that does not fit into the rest of the budget is left out.
    """
    loaded = yield from load_stating(query, facts)
    relations: dict[tuple[str, str], list[Assertion]] = defaultdict(list)
    for said in (find_assertion(fact, loaded) for fact in facts):
        if said:
            relations[said.fact.series].append(said)
    lines = [_make_line(query.text, sorted(of_one, key=_make_newest_key)) for of_one in relations.values()]
    kept = []
    for line in sorted(lines, key=_make_use_key):
        tokens = estimate_tokens(line.text) + 1
        if tokens <= budget:
            budget -= tokens
            kept.append(line)
    return Profile(query.text, tuple(kept), len(kept) < len(lines))


def _make_newest_key(said: Assertion) -> tuple[float, str]:
    return (EPOCH - said.fact.began).total_seconds(), said.fact.id


def _make_use_key(line: ProfileLine) -> tuple[int, tuple[float, str]]:
    return -max(each.fact.access_count for each in line.assertions), _make_newest_key(line.assertions[0])


def _make_line(user: str, said: Sequence[Assertion]) -> ProfileLine:
    first = said[0]
    relation = get_relation_name(first.fact.predicate)
    is_own = normalise(first.fact.subject) == normalise(user)
    named = f"{relation}:" if is_own else f"{first.fact.subject} {relation}"
    objects = ", ".join(f"{each.fact.object}{_describe_start(each.fact)}" for each in said[:MAX_OBJECTS])
    rest = f" and {len(said) - MAX_OBJECTS} more" if len(said) > MAX_OBJECTS else ""
    quote = f" “{first.quote}”" if first.quote else ""
    return ProfileLine(tuple(said), to_line(f"{named} {objects}{rest}{quote}"))


def _describe_start(fact: Fact) -> str:
    if fact.valid_from:
        return f" (since {format_day(fact.valid_from)})"
    return f" ({format_day(fact.at)})" if fact.at else ""


# -- provenance ----------------------------------------------------------------------------------------


def read_provenance(query: Query, passage: str, around: int) -> Reads[Provenance | None]:
    """Return a passage with its document, and the turns around it, or the other passages of its document."""
    loaded = yield from load_passages(query, [passage])
    if passage not in loaded:
        return None
    found, document = loaded[passage]
    near = yield from _read_turns(query, found, around) if found.role else _read_parts(query, found, around)
    ordered = sorted(near, key=attrgetter("position", "id"))
    place = next((number for number, each in enumerate(ordered) if each.id == passage), 0)
    before, after = ordered[max(place - around, 0) : place], ordered[place + 1 : place + 1 + around]
    return Provenance(found, document, tuple(before), tuple(after))


def _read_turns(query: Query, passage: Passage, around: int) -> Reads[Collection[Passage]]:
    turns = yield from read(
        Store.turns, "", [passage.id], before=around, after=around, where=query.where, same_role=False
    )
    passages = yield from read(Store.passages, turns.ids, where=query.where)
    return passages.values()


def _read_parts(query: Query, passage: Passage, around: int) -> Reads[Collection[Passage]]:
    if not around:
        return (passage,)
    known = yield from read(Store.get_indexed_documents, [passage.document_id], where=query.where)
    return known[passage.document_id].passages if passage.document_id in known else (passage,)
