"""What stands around an entity: facts followed outward, a level at a time, as a tree.

For people and agents who look around, not for answering: nothing is scored. Every entity and every fact is
shown once, where it was reached first, and the whole is bounded, however many facts a hub has.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from waylore.retrieval.graph.validity import Facts, current
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.knowledge import Entity, Fact
from waylore.types.results import Branch, Surroundings
from waylore.types.search import Query


@dataclass(slots=True)
class _Seen:
    """What is in the tree so far: entities, facts by the entity that they were followed from."""

    entities: set[str]
    facts: dict[str, Fact] = field(default_factory=dict)
    onward: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))


def surroundings(
    query: Query, *, hops: int, per_entity: int, most: int, functional: Sequence[str] = ()
) -> Reads[tuple[Surroundings, ...]]:
    """The entities that are called `query.text`, each with what stands around it."""
    found = yield from read(Store.entities_by_names, [query.text], where=query.where)
    named = found.get(query.text, ())
    level = [entity.id for entity in named]
    seen = _Seen(set(level))
    for _ in range(hops):
        told = yield from read(
            Store.facts_of_entities, level, per_entity=per_entity, as_of=query.as_of, where=query.where
        )
        held = yield from current(query, told, functional)
        level = _next(level, held, seen, most)
        if not level:
            break
    known = yield from read(Store.entities, sorted(seen.entities), where=query.where)
    return tuple(Surroundings(entity, _branches(entity.id, seen, known)) for entity in named)


def _next(level: Sequence[str], held: Facts, seen: _Seen, most: int) -> list[str]:
    """Take what is new into the tree; return the entities that it leads to."""
    reached: dict[str, None] = {}
    for id_ in level:
        for fact in held.get(id_, ()):
            if fact.id not in seen.facts and len(seen.facts) < most:
                seen.facts[fact.id] = fact
                seen.onward[id_].append(fact)
                reached.update(dict.fromkeys(end for end in fact.ends if end not in seen.entities))
        seen.entities.update(reached)
    return list(reached)


def _branches(id_: str, seen: _Seen, known: Mapping[str, Entity]) -> tuple[Branch, ...]:
    """What was followed from an entity; what an entity leads to is told where it was reached first."""
    facts = seen.onward.pop(id_, [])
    return tuple(_branch(id_, fact, seen, known) for fact in facts)


def _branch(id_: str, fact: Fact, seen: _Seen, known: Mapping[str, Entity]) -> Branch:
    is_forward = fact.subject_id == id_
    other = fact.object_id if is_forward else fact.subject_id
    beyond = _branches(other, seen, known) if other != id_ else ()
    return Branch(fact, is_forward, known.get(other), beyond)
