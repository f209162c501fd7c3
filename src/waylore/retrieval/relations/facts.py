"""Read all facts of entities up to a bound, and when those held that others ended.

A read says whether facts may be missing: it asks for one fact more than counts, and for no more than a budget in all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from waylore.retrieval.graph.validity import may_end
from waylore.retrieval.history import HeldPeriod, read_held
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.knowledge import SAME, Fact
from waylore.types.search import Query

MAX_TOTAL = 1_000  # items that a caller may ask for, and up to which a list is counted
MAX_READ = 10_000  # facts that one call reads in all
HeldFacts: TypeAlias = Mapping[str, Sequence[HeldPeriod]]
FEW = 64  # facts of each entity that are read first, if there are many entities


@dataclass(slots=True)
class ReadBudget:
    """How many facts of one entity count, how many more a call may read, and whether a bound has cut its answer."""

    most: int = MAX_TOTAL
    left: int = field(default_factory=lambda: MAX_READ)
    is_cut: bool = False


def read_entity_facts(
    query: Query, ids: Sequence[str], budget: ReadBudget, predicates: Sequence[str] = ()
) -> Reads[dict[str, tuple[Fact, ...]]]:
    """Return the typed facts of entities, strongest first; with `predicates` those that are spelled so.

    Few facts of each are read first, and all of those that have more.
    """
    found: dict[str, tuple[Fact, ...]] = {}
    cap = min(budget.most + 1, max(FEW, MAX_READ // max(len(ids), 1)))
    size = MAX_READ // cap
    for start in range(0, len(ids), size):
        yield from _read_some(query, ids[start : start + size], cap, budget, predicates, found)
    more = [id_ for id_, facts in found.items() if cap <= len(facts) <= budget.most]
    for id_ in more:
        yield from _read_some(query, [id_], budget.most + 1, budget, predicates, found)
    budget.is_cut |= any(len(facts) > budget.most for facts in found.values())
    return found


def _read_some(
    query: Query,
    ids: Sequence[str],
    cap: int,
    budget: ReadBudget,
    predicates: Sequence[str],
    found: dict[str, tuple[Fact, ...]],
) -> Reads[None]:
    """Read the facts of some entities into `found`, unless the budget is used up."""
    if budget.left <= 0:
        budget.is_cut = True
        return
    facts = yield from read(
        Store.facts_of_entities, ids, per_entity=cap, predicates=predicates, as_of=query.as_of, where=query.where
    )
    budget.left -= facts.size
    found.update(facts)


def is_relation(fact: Fact) -> bool:
    """Return whether a fact relates its subject to something: it denies nothing and is no other name."""
    return fact.is_typed and not fact.is_denial and normalise(fact.predicate) != normalise(SAME)


def read_held_facts(
    query: Query, facts: Iterable[Fact], single_valued: Sequence[str], budget: ReadBudget
) -> Reads[HeldFacts]:
    """Return when facts held, by id, of those that another assertion may end."""
    named = frozenset(map(normalise, single_valued))
    contested = [fact for fact in facts if may_end(fact, named)]
    if not contested:
        return {}
    held, is_old = yield from read_held(query, contested, single_valued)
    budget.is_cut |= is_old and query.as_of is not None
    periods: dict[str, list[HeldPeriod]] = defaultdict(list)
    for each in held:
        periods[each.first.id].append(each)
    return {fact.id: periods.get(fact.id, ()) for fact in contested}


def find_period(query: Query, held: HeldFacts, fact: Fact) -> tuple[bool, HeldPeriod | None]:
    """Return whether a fact counts, and its period: that which holds at the time asked for, else the last one."""
    periods = held.get(fact.id)
    if not periods:
        return periods is None or query.as_of is None, None
    if query.as_of is None:
        return True, periods[-1]
    holding = [each for each in periods if each.has_held and each.period.holds_at(query.as_of)]
    return (True, holding[-1]) if holding else (False, None)
