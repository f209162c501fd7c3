"""Compute which assertion holds when: with a single-valued predicate, a subject has one object at a time.

Periods are computed from all assertions that the caller may see, and not stored, so forgetting an assertion restores
what it ended. Assertions compete if they have different objects and the predicate is single-valued, or if one denies
the other. Of two that compete at the same time, the more trusted one wins, and of equal trust the one that began later,
or that was said later if both began together. A staged assertion never ends a confirmed one. What a person says of
themselves is trusted more than all but edits of the user. If both began and were said together, neither ends the other.
When a bounded period is over, what went on before holds again. The same object again prolongs a period.

Predicates are single-valued by `single_valued` of `Waylore.open`, and, of facts whose time is known, by the table of
relations (`waylore.relations`).

An assertion begins at its `valid_from`, else when it was said, else when it was recorded. The beginning of the first
one is unknown if it was only recorded; it holds at every earlier time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from waylore.relations import find_relation, get_relation_name, is_single_valued
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.columns import FactColumns, to_fact_columns
from waylore.types.knowledge import EPOCH, LIVE, SOURCES, Fact, Status
from waylore.types.search import Query

OWN_TRUST = SOURCES.index("user_edit") + 0.5  # of what a person says of themselves
MAX_ASSERTIONS = 64  # of one subject and predicate that are compared, the newest
ALWAYS, FOREVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a fact held, and the assertions that state it. It is empty if another fact held all the time."""

    start: datetime
    end: datetime
    assertions: tuple[Fact, ...]

    @property
    def is_denial(self) -> bool:
        """Whether the period is that of a denial: a time in which the fact did not hold."""
        return self.assertions[0].is_denial

    def holds_at(self, moment: datetime | None) -> bool:
        """Return whether the fact held at a time; True for None."""
        return moment is None or self.start <= moment < self.end

    def state(self, statuses: Collection[Status]) -> Fact | None:
        """Return the fact as its most trusted assertion with one of the statuses states it, with the period."""
        stated = [fact for fact in self.assertions if fact.status in statuses]
        return self.limit(min(stated, key=_make_trust_key)) if stated else None

    def limit(self, fact: Fact) -> Fact:
        """Return a fact with this period."""
        start, end = (None if self.start == ALWAYS else self.start), (None if self.end == FOREVER else self.end)
        return replace(fact, valid_from=start, valid_to=end)


# -- computing -----------------------------------------------------------------------------------------


def compute_periods(assertions: Iterable[Fact], *, is_single: bool = True) -> list[Period]:
    """Return the periods of facts, given all assertions of one subject and relation, in order of time.

    If the relation is not single-valued, only a denial ends a fact.
    """
    told = sorted(assertions, key=make_order_key)
    pieces: dict[str, list[tuple[Span, Fact]]] = defaultdict(list)
    for fact in told:
        start = ALWAYS if _is_open(fact, told[0]) else get_start(fact)
        spans = [(start, fact.valid_to or FOREVER)]
        for rival in told:
            if supersedes(rival, fact, is_single):
                spans = _cut(spans, (get_start(rival), rival.valid_to or FOREVER))
        pieces[fact.id] += [(span, fact) for span in spans or [(get_start(fact), get_start(fact))]]
    periods = [period for of_fact in pieces.values() for period in _join(of_fact)]
    return sorted(periods, key=lambda period: (period.start, period.end, period.assertions[0].id))


def get_start(fact: Fact) -> datetime:
    """Return when a fact became valid. It is unknown if the fact was said only when it was over."""
    is_over = fact.valid_from is None and fact.valid_to is not None and fact.valid_to <= fact.began
    return ALWAYS if is_over else fact.began


def make_order_key(fact: Fact) -> tuple[date, datetime, datetime]:
    """Return what assertions are sorted by: the day on which they began, when they were said, and when they began.

    A beginning is often given as a day, so within a day what was said later counts.
    """
    start = get_start(fact)
    return start.date(), fact.at or ALWAYS, start


def _make_trust_key(fact: Fact) -> tuple[float, float, str]:
    return _get_trust(fact), -fact.weight * fact.confidence, fact.passage_id


def _get_trust(fact: Fact) -> float:
    """Return the place of an assertion in the order of trust, the most trusted first."""
    place = SOURCES.index(fact.source)
    return min(place, OWN_TRUST) if fact.is_own else place


def _is_open(fact: Fact, first: Fact) -> bool:
    """Return whether the beginning of a fact is unknown: it was only recorded, and nothing else began before."""
    return fact.valid_from is None and fact.at is None and make_order_key(fact) == make_order_key(first)


def supersedes(rival: Fact, fact: Fact, is_single: bool) -> bool:
    """Return whether an assertion ends another one of the same subject and relation."""
    if not _competes(rival, fact, is_single) or (rival.status == "staged" and fact.status == "confirmed"):
        return False
    trust = _get_trust(fact) - _get_trust(rival)  # positive if the rival is more trusted
    return trust > 0 if trust else make_order_key(rival) > make_order_key(fact)


def _competes(rival: Fact, fact: Fact, is_single: bool) -> bool:
    """Return whether two assertions of one subject and relation cannot both hold."""
    if rival.is_denial and fact.is_denial:
        return False
    if rival.is_denial or fact.is_denial:
        return normalise(rival.object) == normalise(fact.object) or (is_single and fact.is_denial)
    return is_single and rival.id != fact.id


def _cut(spans: Sequence[Span], taken: Span) -> list[Span]:
    """Return spans without a part of the time."""
    before = [(start, min(end, taken[0])) for start, end in spans]
    after = [(max(start, taken[1]), end) for start, end in spans]
    return [(start, end) for start, end in (*before, *after) if start < end]


def _join(pieces: Iterable[tuple[Span, Fact]]) -> Iterator[Period]:
    """Yield the periods of one fact: pieces that overlap or follow each other are one."""
    joined: Period | None = None
    for (start, end), fact in sorted(pieces, key=lambda piece: piece[0]):
        if joined and start <= joined.end:
            joined = Period(joined.start, max(joined.end, end), (*joined.assertions, fact))
            continue
        if joined:
            yield joined
        joined = Period(start, end, (fact,))
    if joined:
        yield joined


# -- reading -------------------------------------------------------------------------------------------


def select_current(
    query: Query,
    facts: FactColumns,
    single_valued: Sequence[str],
    *,
    per_entity: int,
    statuses: Collection[Status] = LIVE,
    newest: int = MAX_ASSERTIONS,
) -> Reads[FactColumns]:
    """Return the facts of entities with the periods in which they hold; without `as_of` also those that ended.

    If an entity has `per_entity` facts, some may be missing, so all of its single-valued ones are read.
    """
    competing = _list_competing(facts, single_valued)
    crowded = {id_ for id_ in facts if single_valued and len(facts[id_]) >= per_entity}
    if not competing and not crowded:
        return facts
    subjects = sorted(crowded.union(fact.subject_id for fact in competing))
    periods = yield from _read_periods(query, subjects, competing, single_valued, newest)
    held = [fact for period in periods if not period.is_denial and (fact := period.state(statuses))]
    ids = {fact.id for fact in competing}
    current: dict[str, list[Fact]] = {}
    for id_, of_one in facts.items():
        kept = [fact for fact in of_one if fact.id not in ids]
        known, is_crowded = {fact.id for fact in of_one}, id_ in crowded
        found = [fact for fact in held if fact.id in known or (is_crowded and fact.subject_id == id_)]
        current[id_] = _sort(kept, found)[:per_entity]
    return to_fact_columns(current)


def select_stated(query: Query, facts: FactColumns, single_valued: Sequence[str]) -> Reads[FactColumns]:
    """Return the facts of passages that hold, each as its passage states it, with its period."""
    competing = _list_competing(facts, single_valued)
    if not competing:
        return facts
    subjects = sorted({fact.subject_id for fact in competing})
    periods = yield from _read_periods(query, subjects, competing, single_valued, MAX_ASSERTIONS)
    found = {get_key(fact): period for period in periods if not period.is_denial for fact in period.assertions}
    ids = {fact.id for fact in competing}
    current = {
        id_: [
            found[get_key(fact)].limit(fact) if fact.id in ids else fact
            for fact in of_one
            if fact.id not in ids or get_key(fact) in found
        ]
        for id_, of_one in facts.items()
    }
    return to_fact_columns(current)


def _list_competing(facts: FactColumns, single_valued: Sequence[str]) -> list[Fact]:
    """Return the facts that others may end: with single-valued predicates, or dated ones of known relations."""
    predicates = frozenset(map(normalise, single_valued))
    places = range(facts.size) if predicates else np.flatnonzero(facts.is_dated & facts.is_typed).tolist()
    made = map(facts.make, places)
    return [fact for fact in made if may_end(fact, predicates)]


def may_end(fact: Fact, single_valued: Collection[str]) -> bool:
    """Return whether another assertion may end a fact, given the normalised names of single-valued predicates."""
    is_named = get_relation_name(fact.predicate) in single_valued
    return is_named or (fact.is_dated and find_relation(fact.predicate) is not None)


def _read_periods(
    query: Query, subjects: Sequence[str], competing: Iterable[Fact], single_valued: Sequence[str], newest: int
) -> Reads[list[Period]]:
    """Return the periods that hold at `as_of`, in order of time.

    They are computed from the newest assertions, and from facts that are known already. Of these, an older one counts
    only if no newer one ends it, because other ends of it were not read.
    """
    competing = list(competing)
    predicates = [*single_valued, *dict.fromkeys(get_relation_name(fact.predicate) for fact in competing)]
    told = yield from read_assertions(query, subjects, predicates, newest)
    is_read = {get_key(fact) for of_one in told.values() for fact in of_one}
    series = group_assertions((*competing, *(fact for of_one in told.values() for fact in of_one)))
    named = frozenset(map(normalise, single_valued))
    periods = (
        period
        for (_, relation), of_one in series.items()
        for period in compute_periods(of_one, is_single=is_single_valued(relation, named))
    )
    return [
        period
        for period in periods
        if period.holds_at(query.as_of)
        and (period.end == FOREVER or any(get_key(fact) in is_read for fact in period.assertions))
    ]


def read_assertions(
    query: Query, subjects: Sequence[str], predicates: Sequence[str], newest: int
) -> Reads[Mapping[str, Sequence[Fact]]]:
    """Read the newest assertions of subjects: if those are too many and later than `as_of`, the newest before it."""
    options: dict[str, Any] = {"predicates": predicates, "newest": newest, "where": query.where}
    told = yield from read(Store.assertions_of_entities, subjects, **options)
    moment = query.as_of
    if moment is None:
        return told
    later = [id_ for id_, of_one in told.items() if len(of_one) >= newest and of_one[0].began > moment]
    if not later:
        return told
    before = yield from read(Store.assertions_of_entities, later, until=moment, **options)
    return {id_: before.get(id_, ()) if id_ in later else of_one for id_, of_one in told.items()}


def _sort(facts: Iterable[Fact], held: Iterable[Fact]) -> list[Fact]:
    """Sort facts and periods by strength, of equal strength what holds first, then by id, the newest period first."""
    marked = [*((fact, False) for fact in facts), *((fact, fact.valid_to is not None) for fact in held)]
    marked.sort(key=lambda pair: (-pair[0].weight * pair[0].confidence, pair[1], pair[0].id, EPOCH - pair[0].began))
    return [fact for fact, _ in marked]


def get_key(fact: Fact) -> tuple[str, str]:
    """Return the key of an assertion: the ids of the fact and of the passage that states it."""
    return fact.id, fact.passage_id


def group_assertions(assertions: Iterable[Fact]) -> dict[tuple[str, str], list[Fact]]:
    """Return assertions by subject and relation, each once; of two with one key the last one."""
    series: dict[tuple[str, str], dict[tuple[str, str], Fact]] = defaultdict(dict)
    for fact in assertions:
        series[fact.series][get_key(fact)] = fact
    return {key: list(of_one.values()) for key, of_one in series.items()}
