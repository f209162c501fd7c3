"""Find how the graph leads from the entities of a question to other entities, over facts.

It works on facts that were read before and does not read the store.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Step

Adjacency = Mapping[str, list[tuple[int, Fact]]]


@dataclass(frozen=True, slots=True)
class Trails:
    """The starts of paths and, for every other entity within reach, the last fact and the entity before it."""

    starts: Mapping[str, str]
    before: Mapping[str, tuple[Fact, str]]

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.starts or entity_id in self.before

    def find_path(self, entity_id: str) -> GraphPath:
        """Return the path to an entity within reach."""
        steps: list[Step] = []
        while entity_id not in self.starts:
            fact, previous = self.before[entity_id]
            steps.append(Step(fact, is_forward=fact.object_id == entity_id))
            entity_id = previous
        return GraphPath(self.starts[entity_id], tuple(reversed(steps)))

    def find_path_over(self, fact: Fact, entity_id: str) -> GraphPath:
        """Return the path to an entity at one end of a fact: over that fact, unless a shorter path exists."""
        if not fact.object_id:
            return self.find_path(entity_id) if entity_id in self else GraphPath(fact.subject)
        others = [end for end in fact.ends if end != entity_id and end in self]
        earlier = self.find_path(others[0]) if others else None
        if entity_id in self:
            direct = self.find_path(entity_id)
            if earlier is None or len(direct.steps) <= len(earlier.steps):
                return direct
        step = Step(fact, is_forward=fact.object_id == entity_id)
        earlier = earlier or GraphPath(fact.subject if step.is_forward else fact.object)
        return GraphPath(earlier.start, (*earlier.steps, step))


def build_adjacency(facts: Iterable[Fact], values: Mapping[str, float], *, both_ways: bool = True) -> Adjacency:
    """Return the facts of each entity with their rank, the one with the highest value first."""
    adjacency: dict[str, list[tuple[int, Fact]]] = defaultdict(list)
    ends_differ = [f for f in facts if f.object_id and f.object_id != f.subject_id]
    for rank, fact in enumerate(sorted(ends_differ, key=lambda f: (-values[f.id], f.id))):
        adjacency[fact.subject_id].append((rank, fact))
        if both_ways:
            adjacency[fact.object_id].append((rank, fact))
    return adjacency


def find_trails(starts: Mapping[str, str], adjacency: Adjacency, *, hops: int) -> Trails:
    """Find the shortest trail to each entity within reach; of equally short ones, that with the best last fact.

    `starts` has names by entity id.
    """
    before: dict[str, tuple[Fact, str]] = {}
    frontier = list(starts)
    for _ in range(hops):
        best: dict[str, tuple[int, Fact, str]] = {}
        for id_ in frontier:
            for rank, fact in adjacency.get(id_, ()):
                end = fact.object_id if fact.subject_id == id_ else fact.subject_id
                is_known = end in starts or end in before
                if not is_known and (end not in best or rank < best[end][0]):
                    best[end] = (rank, fact, id_)
        before |= {end: (fact, id_) for end, (_, fact, id_) in best.items()}
        frontier = list(best)
    return Trails(starts, before)
