"""End a fact when another one contradicts it: with a single-valued predicate, a subject has one object at a time.

The ends are computed and not stored. A staged fact never ends a confirmed one. Otherwise the fact of the more trusted
source ends the other, and of equal sources the newer ends the older. The ended fact gets the start of the other as
its end, but not before its own start. A caller who may not see the other fact still reads the ended one, and
forgetting the other restores it. A fact starts at its own `valid_from`, else when it was recorded. If two facts of
one source start together, neither ends the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.columns import FactColumns, to_fact_columns
from waylore.types.knowledge import SOURCES, Fact
from waylore.types.search import Query

MAX_RIVAL_FACTS = 64  # facts of one subject that are compared


def select_current(query: Query, facts: FactColumns, single_valued: Sequence[str]) -> Reads[FactColumns]:
    """Set the end of contradicted facts and drop facts that ended before `as_of`."""
    if not single_valued:
        return facts
    normalised = frozenset(map(normalise, single_valued))
    made = map(facts.make, range(facts.size))
    subjects = {fact.subject_id for fact in made if normalise(fact.predicate) in normalised}
    if not subjects:
        return facts
    rivals = yield from read(
        Store.facts_of_entities,
        sorted(subjects),
        per_entity=MAX_RIVAL_FACTS,
        predicates=single_valued,
        where=query.where,
    )
    ends = find_ends(rival for facts_of_one in rivals.values() for rival in facts_of_one)
    ended = {id_: [_end_fact(fact, ends) for fact in of_one] for id_, of_one in facts.items()}
    return to_fact_columns({id_: [f for f in of_one if _is_valid(f, query)] for id_, of_one in ended.items()})


def find_ends(rivals: Iterable[Fact]) -> dict[str, datetime]:
    """Return when each contradicted fact ended, by fact id. All facts must have single-valued predicates."""
    by_subject: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
    for fact in rivals:
        by_subject[fact.subject_id, normalise(fact.predicate)][fact.id] = fact
    ends: dict[str, datetime] = {}
    for competing in by_subject.values():
        for fact in competing.values():
            starts = [get_start(other) for other in competing.values() if _supersedes(other, fact)]
            if starts:
                ends[fact.id] = max(get_start(fact), min(starts))
    return ends


def _supersedes(fact: Fact, other: Fact) -> bool:
    """Return whether a fact ends another one that has the same subject and predicate."""
    if fact.status == "staged" and other.status == "confirmed":
        return False
    start, since = get_start(fact), get_start(other)
    trust = SOURCES.index(other.source) - SOURCES.index(fact.source)  # positive if the fact is more trusted
    is_over = fact.valid_to is not None and fact.valid_to <= since
    return start > since if trust == 0 else trust > 0 and not is_over


def get_start(fact: Fact) -> datetime:
    """Return when a fact became valid, as far as is known."""
    return fact.valid_from or fact.recorded_at


def _end_fact(fact: Fact, ends: Mapping[str, datetime]) -> Fact:
    if fact.id not in ends:
        return fact
    return replace(fact, valid_to=min(fact.valid_to or ends[fact.id], ends[fact.id]))


def _is_valid(fact: Fact, query: Query) -> bool:
    return query.as_of is None or fact.valid_to is None or query.as_of < fact.valid_to
