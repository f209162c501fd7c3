"""Ends a fact where a newer one contradicts it: by a functional predicate a subject has one object at a time.

Nothing is written for it. The older fact is kept, and told with the time at which the newer one began; whoever
may not see the newer one still has the older, and forgetting the newer brings the older back. A fact begins
when it says so, else when it was recorded; of two that begin together neither ends the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.knowledge import Fact
from waylore.types.search import Query

RIVALS = 64  # facts of one subject that are looked at

Facts = Mapping[str, tuple[Fact, ...]]


def current(query: Query, facts: Facts, functional: Sequence[str]) -> Reads[Facts]:
    """The facts, with their ends where they were contradicted; those that ended before `as_of` are left out."""
    single = frozenset(map(normalise, functional))
    subjects = {f.subject_id for fs in facts.values() for f in fs if normalise(f.predicate) in single}
    if not subjects:
        return facts
    rivals = yield from read(
        Store.facts_of_entities,
        sorted(subjects),
        per_entity=RIVALS,
        predicates=functional,
        where=query.where,
    )
    ends = ends_of(rival for told in rivals.values() for rival in told)
    return {
        id_: tuple(f for f in (_ended(f, ends) for f in fs) if _holds(f, query)) for id_, fs in facts.items()
    }


def ends_of(rivals: Iterable[Fact]) -> dict[str, datetime]:
    """When each fact was contradicted, of those that were; all have functional predicates."""
    by_subject: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
    for fact in rivals:
        by_subject[fact.subject_id, normalise(fact.predicate)][fact.id] = fact
    ends: dict[str, datetime] = {}
    for told in by_subject.values():
        for fact in told.values():
            later = [begins(other) for other in told.values() if begins(other) > begins(fact)]
            if later:
                ends[fact.id] = min(later)
    return ends


def begins(fact: Fact) -> datetime:
    """When a fact began to hold, as far as is known."""
    return fact.valid_from or fact.recorded_at


def _ended(fact: Fact, ends: Mapping[str, datetime]) -> Fact:
    if fact.id not in ends:
        return fact
    return replace(fact, valid_to=min(fact.valid_to or ends[fact.id], ends[fact.id]))


def _holds(fact: Fact, query: Query) -> bool:
    return query.as_of is None or fact.valid_to is None or query.as_of < fact.valid_to
