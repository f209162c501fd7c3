"""How the graph led from what the question names to an entity, over facts. It follows, it does not read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Step

Adjacency = Mapping[str, list[tuple[int, Fact]]]


@dataclass(frozen=True, slots=True)
class Trails:
    """Where paths start, and for every other entity within reach the last fact to it and whence it leads."""

    starts: Mapping[str, str]
    before: Mapping[str, tuple[Fact, str]]

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.starts or entity_id in self.before

    def to(self, entity_id: str) -> FactPath:
        """The path to an entity within reach."""
        steps: list[Step] = []
        while entity_id not in self.starts:
            fact, previous = self.before[entity_id]
            steps.append(Step(fact, is_forward=fact.object_id == entity_id))
            entity_id = previous
        return FactPath(self.starts[entity_id], tuple(reversed(steps)))

    def over(self, fact: Fact, entity_id: str) -> FactPath:
        """The path to an entity at one end of a fact: over that fact, unless there is a shorter one."""
        if not fact.object_id:
            return self.to(entity_id) if entity_id in self else FactPath(fact.subject)
        others = [end for end in fact.ends if end != entity_id and end in self]
        earlier = self.to(others[0]) if others else None
        if entity_id in self:
            direct = self.to(entity_id)
            if earlier is None or len(direct.steps) <= len(earlier.steps):
                return direct
        step = Step(fact, is_forward=fact.object_id == entity_id)
        earlier = earlier or FactPath(fact.subject if step.is_forward else fact.object)
        return FactPath(earlier.start, (*earlier.steps, step))


def adjacency(facts: Iterable[Fact], bearing: Mapping[str, float], *, both_ways: bool = True) -> Adjacency:
    """The facts that lead on from each entity with their rank, the one that bears most on it first."""
    joined: dict[str, list[tuple[int, Fact]]] = defaultdict(list)
    ends_differ = [f for f in facts if f.object_id and f.object_id != f.subject_id]
    for rank, fact in enumerate(sorted(ends_differ, key=lambda f: (-bearing[f.id], f.id))):
        joined[fact.subject_id].append((rank, fact))
        if both_ways:
            joined[fact.object_id].append((rank, fact))
    return joined


def trails(starts: Mapping[str, str], joined: Adjacency, *, hops: int) -> Trails:
    """Trails to all entities within reach: the shortest, and of those the one whose last fact is best.

    `starts` are names by identity.
    """
    before: dict[str, tuple[Fact, str]] = {}
    frontier = list(starts)
    for _ in range(hops):
        best: dict[str, tuple[int, Fact, str]] = {}
        for id_ in frontier:
            for rank, fact in joined.get(id_, ()):
                end = fact.object_id if fact.subject_id == id_ else fact.subject_id
                is_known = end in starts or end in before
                if not is_known and (end not in best or rank < best[end][0]):
                    best[end] = (rank, fact, id_)
        before |= {end: (fact, id_) for end, (_, fact, id_) in best.items()}
        frontier = list(best)
    return Trails(starts, before)
