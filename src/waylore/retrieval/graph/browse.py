"""Read the graph around an entity as a tree, one level at a time.

It is for people and agents who browse, so it computes no scores. Each entity and each fact appears once, at the
first place that reached it. The size is bounded, also if an entity has very many facts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from waylore.retrieval.graph.validity import select_current
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.columns import FactColumns
from waylore.types.knowledge import Entity, Fact
from waylore.types.results import Branch, EntityGraph
from waylore.types.search import Query


@dataclass(slots=True)
class _Tree:
    """The tree so far: its entities, its facts, and the facts by the entity that they were followed from."""

    entities: set[str]
    facts: dict[str, Fact] = field(default_factory=dict)
    onward: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))


def browse(
    query: Query, *, hops: int, per_entity: int, limit: int, single_valued: Sequence[str] = ()
) -> Reads[tuple[EntityGraph, ...]]:
    """Return each entity with the name `query.text`, with the graph around it."""
    by_name = yield from read(Store.entities_by_names, [query.text], where=query.where)
    named = by_name.get(query.text, ())
    level = [entity.id for entity in named]
    tree = _Tree(set(level))
    for _ in range(hops):
        facts = yield from read(
            Store.facts_of_entities, level, per_entity=per_entity, as_of=query.as_of, where=query.where
        )
        valid = yield from select_current(query, facts, single_valued, per_entity=per_entity)
        level = _add_level(level, valid, tree, limit)
        if not level:
            break
    entities = yield from read(Store.entities, sorted(tree.entities), where=query.where)
    return tuple(EntityGraph(entity, _build_branches(entity.id, tree, entities)) for entity in named)


def _add_level(level: Sequence[str], facts: FactColumns, tree: _Tree, limit: int) -> list[str]:
    """Add the facts of one level to the tree and return the entities that they lead to."""
    reached: dict[str, None] = {}
    for id_ in level:
        for fact in facts.get(id_, ()):
            if fact.id not in tree.facts and len(tree.facts) < limit:
                tree.facts[fact.id] = fact
                tree.onward[id_].append(fact)
                reached.update(dict.fromkeys(end for end in fact.ends if end not in tree.entities))
        tree.entities.update(reached)
    return list(reached)


def _build_branches(id_: str, tree: _Tree, entities: Mapping[str, Entity]) -> tuple[Branch, ...]:
    """Build the branches of an entity. An entity that was reached twice has branches only the first time."""
    facts = tree.onward.pop(id_, [])
    return tuple(_build_branch(id_, fact, tree, entities) for fact in facts)


def _build_branch(id_: str, fact: Fact, tree: _Tree, entities: Mapping[str, Entity]) -> Branch:
    is_forward = fact.subject_id == id_
    other = fact.object_id if is_forward else fact.subject_id
    beyond = _build_branches(other, tree, entities) if other != id_ else ()
    return Branch(fact, is_forward, entities.get(other), beyond)
