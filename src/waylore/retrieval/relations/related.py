"""Read the facts of a thing as a tree, hop by hop, and count them.

Each fact appears once, at the first place that reaches it, and each thing is followed once. All facts are counted up to
`COUNTED`, or as many as are shown. What denies a relation is no fact here; it ends one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from waylore.retrieval.graph.state import Loaded
from waylore.retrieval.history import HeldPeriod, find_assertion, find_end, load_stating
from waylore.retrieval.relations.facts import (
    ReadBudget,
    find_period,
    is_relation,
    read_entity_facts,
    read_held_facts,
)
from waylore.retrieval.relations.predicates import PredicateMatcher
from waylore.retrieval.relations.things import Things, add_things, find_similar_names, resolve_name
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.knowledge import Entity, Fact
from waylore.types.relations import Direction, Extent, Related, RelatedFact
from waylore.types.search import Query
from waylore.types.views import AssertionEnd

COUNTED = 500  # facts up to which a total is exact, if no more are shown; reading them costs a search


@dataclass(frozen=True, slots=True)
class RelatedOptions:
    """Which facts to follow, how far, and how many to show."""

    matcher: PredicateMatcher
    direction: Direction = "both"
    hops: int = 1
    limit: int = 50
    single_valued: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact of a thing, the entity at its end there, and the entity at the other end; empty for a plain value."""

    fact: Fact
    near: str
    far: str
    period: HeldPeriod | None = None

    @property
    def is_forward(self) -> bool:
        """Whether the fact leads from subject to object."""
        return self.fact.subject_id == self.near


@dataclass(slots=True)
class _Tree:
    """The facts so far in their order, those of each thing, and the fact that reached each thing first."""

    found: dict[str, FoundFact] = field(default_factory=dict)
    onward: dict[str, list[FoundFact]] = field(default_factory=lambda: defaultdict(list))
    first: dict[str, str] = field(default_factory=dict)


def read_related(query: Query, options: RelatedOptions) -> Reads[Related]:
    """Return the facts around the thing that `query.text` names."""
    things, budget, tree = Things(), ReadBudget(max(COUNTED, options.limit)), _Tree()
    named = yield from resolve_name(query, query.text, things)
    if named.candidates:
        return Related(query.text, candidates=named.candidates, extent=Extent(is_exact=False))
    if not named.leader:
        return Related(query.text, similar=(yield from find_similar_names(query, query.text)))
    tree.first[named.leader] = ""
    level = [named.leader]
    for hop in range(options.hops):
        found = yield from read_level(query, things, level, options, budget)
        reached = _add_level(found, tree, budget)
        if hop + 1 == options.hops or not reached:
            break
        yield from add_things(query, things, list(reached))
        level = _add_things(things, reached, tree)
    budget.is_cut |= things.is_cut
    return (yield from _load_related(query, named.leader, things, tree, options, budget))


def read_level(
    query: Query, things: Things, leaders: Sequence[str], options: RelatedOptions, budget: ReadBudget
) -> Reads[list[FoundFact]]:
    """Return the facts of things that match, in the order of the things, strongest first."""
    ids = things.list_members(leaders)
    facts = yield from _read_matching(query, ids, options.matcher, budget)
    chosen = [each for id_ in ids for each in _choose(facts.get(id_, ()), id_, options)]
    held = yield from read_held_facts(
        query, {c.fact.id: c.fact for c in chosen}.values(), options.single_valued, budget
    )
    found = []
    for each in chosen:
        is_held, period = find_period(query, held, each.fact)
        if is_held:
            found.append(
                FoundFact(period.period.limit(each.fact) if period else each.fact, each.near, each.far, period)
            )
    return found


def _read_matching(
    query: Query, ids: Sequence[str], matcher: PredicateMatcher, budget: ReadBudget
) -> Reads[dict[str, tuple[Fact, ...]]]:
    """Return the facts of entities. Of an entity with too many, also those with the spellings that match."""
    facts = yield from read_entity_facts(query, ids, budget)
    matcher.learn(fact for of_one in facts.values() for fact in of_one if is_relation(fact))
    crowded = [id_ for id_, of_one in facts.items() if len(of_one) > budget.most]
    if crowded and matcher.is_asked:
        spelled = yield from read_entity_facts(query, crowded, budget, matcher.spellings)
        matcher.learn(fact for of_one in spelled.values() for fact in of_one if is_relation(fact))
        for id_, of_one in spelled.items():
            known = {fact.id for fact in facts[id_]}
            facts[id_] = (*facts[id_], *(fact for fact in of_one if fact.id not in known))
    return facts


def _choose(facts: Sequence[Fact], near: str, options: RelatedOptions) -> Iterator[FoundFact]:
    """Yield the facts of an entity that match by predicate and direction."""
    for fact in facts:
        match = options.matcher.find(fact) if is_relation(fact) else None
        if match is None:
            continue
        is_loop = fact.subject_id == fact.object_id
        is_out = (fact.subject_id == near) == (match == "same")
        if options.direction == "both" or is_loop or is_out == (options.direction == "out"):
            yield FoundFact(fact, near, fact.object_id if fact.subject_id == near else fact.subject_id)


def _add_level(found: Sequence[FoundFact], tree: _Tree, budget: ReadBudget) -> dict[str, FoundFact]:
    """Add new facts to the tree, and return the entities that they lead to, each with the first fact."""
    reached: dict[str, FoundFact] = {}
    for each in found:
        if each.fact.id in tree.found:
            continue
        if len(tree.found) >= budget.most:
            budget.is_cut = True
            break
        tree.found[each.fact.id] = each
        if each.far:
            reached.setdefault(each.far, each)
    return reached


def _add_things(things: Things, reached: Mapping[str, FoundFact], tree: _Tree) -> list[str]:
    """Return the things that were reached for the first time."""
    level: dict[str, None] = {}
    for id_, by in reached.items():
        leader = things.leaders[id_]
        if leader not in tree.first:
            tree.first[leader] = by.fact.id
            level[leader] = None
    return list(level)


# -- what is shown -------------------------------------------------------------------------------------


def _load_related(
    query: Query, leader: str, things: Things, tree: _Tree, options: RelatedOptions, budget: ReadBudget
) -> Reads[Related]:
    shown = list(tree.found.values())[: options.limit]
    own = things.list_members([leader])
    ends = {each.far for each in shown if each.far}
    by = [each.period.by for each in shown if each.period]
    loaded, entities = yield from read_together(
        load_stating(query, [each.fact for each in shown], by),
        read(Store.entities, sorted(ends.union(own)), where=query.where),
    )
    for each in shown:
        tree.onward[things.leaders[each.near]].append(each)
    first = {id_: thing for thing, id_ in tree.first.items()}
    facts = tuple(_build_facts(leader, tree, first, entities, loaded))
    answer = Related(
        query.text,
        tuple(entities[id_] for id_ in own if id_ in entities),
        facts=facts,
        predicates=options.matcher.count(each.fact for each in tree.found.values()),
        unmatched=options.matcher.count_unmatched(),
    )
    extent = Extent(sum(1 for _ in answer), len(tree.found), not budget.is_cut)
    return replace(answer, extent=extent)


def _build_facts(
    leader: str, tree: _Tree, first: Mapping[str, str], entities: Mapping[str, Entity], loaded: Loaded
) -> Iterator[RelatedFact]:
    """Yield the facts of a thing, each with those of the thing that it reached first."""
    for each in tree.onward.get(leader, ()):
        beyond = first.get(each.fact.id)
        branches = tuple(_build_facts(beyond, tree, first, entities, loaded)) if beyond else ()
        built = show_fact(each, entities, loaded, branches)
        if built:
            yield built


def show_fact(
    found: FoundFact, entities: Mapping[str, Entity], loaded: Loaded, branches: tuple[RelatedFact, ...] = ()
) -> RelatedFact | None:
    """Return a fact with its passage, its other entity and its end; None if its passage cannot be read any more."""
    assertion = find_assertion(found.fact, loaded)
    if assertion is None:
        return None
    end = find_end(found.period, loaded) if found.period else None
    if end is None and found.fact.valid_to:
        end = AssertionEnd("ended", found.fact.valid_to)
    return RelatedFact(assertion, found.is_forward, entities.get(found.far), end, branches)
