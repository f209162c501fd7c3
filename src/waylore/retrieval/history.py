"""Read when the facts of entities held, and how, when and by which assertion each of them was ended.

Facts are read by entity, then the newest assertions of their subjects and relations; every read has a limit. A fact
that no other assertion may end (`graph.validity.may_end`) holds as it was stated.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from waylore.relations import is_single_valued
from waylore.retrieval.graph.state import Loaded, load_passages
from waylore.retrieval.graph.validity import (
    ALWAYS,
    FOREVER,
    Period,
    compute_periods,
    get_start,
    group_assertions,
    make_order_key,
    may_end,
    read_assertions,
    supersedes,
)
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, run_together
from waylore.text import normalise
from waylore.types.knowledge import Fact
from waylore.types.search import EndKind, Query
from waylore.types.views import Assertion, AssertionEnd

MAX_SAID = 256  # assertions of one subject and relation that are read, the newest


@dataclass(frozen=True, slots=True)
class HeldPeriod:
    """A period of a fact, and how, when and by which assertion it was ended, if it was."""

    period: Period
    kind: EndKind | None = None
    at: datetime = FOREVER
    by: Fact | None = None

    @property
    def first(self) -> Fact:
        """The assertion that began the period."""
        return min(self.period.assertions, key=make_order_key)

    @property
    def last(self) -> Fact:
        """The last assertion of the period."""
        return max(self.period.assertions, key=make_order_key)

    @property
    def has_held(self) -> bool:
        """Whether the fact held at any time."""
        return self.period.start < self.period.end

    def overlaps(self, since: datetime, until: datetime) -> bool:
        """Return whether the fact held in a time; if it never did, whether it was said to begin in it."""
        return self.period.start < until and (self.period.end > since or self.period.start >= since)


def find_entities(query: Query) -> Reads[list[str]]:
    """Return the ids of the entities that have the name that a query asks for."""
    found = yield from read(Store.entities_by_names, [query.text], where=query.where)
    return [entity.id for entity in found.get(query.text, ())]


def read_facts(query: Query, ids: Sequence[str], per_entity: int) -> Reads[tuple[list[Fact], bool]]:
    """Return the facts of entities, each once, and whether an entity may have more of them."""
    known = yield from read(Store.facts_of_entities, ids, per_entity=per_entity, where=query.where)
    groups = [known[id_] for id_ in known]
    facts = {fact.id: fact for of_one in groups for fact in of_one}
    return list(facts.values()), any(len(of_one) >= per_entity for of_one in groups)


def read_held(
    query: Query, facts: Sequence[Fact], single_valued: Sequence[str]
) -> Reads[tuple[list[HeldPeriod], bool]]:
    """Return the periods of facts and of those that compete with them, and whether older assertions were not read."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        subject, relation = fact.series
        subjects[relation].add(subject)
    relations: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for relation, of_one in subjects.items():
        relations[tuple(sorted(of_one))].append(relation)
    stages = [read_assertions(query, of_one, named, MAX_SAID) for of_one, named in relations.items()]
    answers = yield from run_together(stages)
    told = [fact for answer in answers for of_one in answer.values() for fact in of_one]
    is_cut = max(Counter(fact.series for fact in told).values(), default=0) >= MAX_SAID
    return list(compute_held(told, single_valued)), is_cut


def load_stating(query: Query, *facts: Iterable[Fact | None]) -> Reads[Loaded]:
    """Return the passages that state facts, by id, with their documents."""
    return (yield from load_passages(query, sorted({fact.passage_id for some in facts for fact in some if fact})))


def find_assertion(fact: Fact | None, loaded: Loaded) -> Assertion | None:
    """Return a fact with the passage that states it; None if that cannot be read any more."""
    if fact is None or fact.passage_id not in loaded:
        return None
    return Assertion(fact, *loaded[fact.passage_id])


def find_end(held: HeldPeriod, loaded: Loaded) -> AssertionEnd | None:
    """Return how and when a period ended, with the assertion that ended it; None if it did not."""
    return AssertionEnd(held.kind, held.at, find_assertion(held.by, loaded)) if held.kind else None


# -- computing -----------------------------------------------------------------------------------------


def compute_held(facts: Iterable[Fact], single_valued: Sequence[str]) -> Iterator[HeldPeriod]:
    """Yield the periods of facts with their ends, given all assertions of their subjects and relations."""
    named = frozenset(map(normalise, single_valued))
    for (_, relation), told in group_assertions(facts).items():
        contested = {fact.id for fact in told if may_end(fact, named)}
        is_single = is_single_valued(relation, named)
        for period in compute_periods(told, is_single=is_single) if contested else ():
            if period.assertions[0].id in contested:
                yield _find_end(period, told, is_single)
        yield from (_hold_as_stated(fact) for fact in told if fact.id not in contested)


def _hold_as_stated(fact: Fact) -> HeldPeriod:
    period = Period(get_start(fact) if fact.is_dated else ALWAYS, fact.valid_to or FOREVER, (fact,))
    return HeldPeriod(period, "ended", fact.valid_to) if fact.valid_to else HeldPeriod(period)


def _find_end(period: Period, told: Sequence[Fact], is_single: bool) -> HeldPeriod:
    """Return a period with what ended it: the next assertion that supersedes it, or the end that was said."""
    if period.end == FOREVER:
        return HeldPeriod(period)
    rivals = [rival for rival in told if any(supersedes(rival, fact, is_single) for fact in period.assertions)]
    if period.start == period.end:
        return _find_correction(period, [rival for rival in rivals if get_start(rival) <= period.start])
    by = min((rival for rival in rivals if get_start(rival) == period.end), key=make_order_key, default=None)
    return HeldPeriod(period, "changed" if by and not by.is_denial else "ended", period.end, by)


def _find_correction(period: Period, rivals: Sequence[Fact]) -> HeldPeriod:
    """Return a period in which a fact never held, with the first assertion that says so."""
    by = min(rivals, key=lambda rival: (rival.at or rival.recorded_at, rival.passage_id), default=None)
    if by is None:
        return HeldPeriod(period, "ended", period.end)
    moment = max(by.at or by.recorded_at, period.assertions[0].at or ALWAYS)
    return HeldPeriod(period, "ended" if by.is_denial else "corrected", moment, by)
