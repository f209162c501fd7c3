"""Find how the graph leads from the entities of a question to other entities, over facts.

It works on facts that were read before and does not read the store.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from waylore.types.columns import FactColumns
from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Step


@dataclass(frozen=True, slots=True)
class Adjacency:
    """The facts of each entity as pairs of their rank and their place among `facts`, the best first."""

    facts: FactColumns
    by_entity: Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Trails:
    """The starts of paths and, for every other entity within reach, the entity before it and the fact between them.

    The fact is given by its place among `facts`.
    """

    facts: FactColumns
    starts: Mapping[str, str]
    before: Mapping[str, tuple[int, str]]

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.starts or entity_id in self.before

    def shorten(self, steps: int) -> "Trails":
        """Return the trails that have at most so many steps."""
        within = set(self.starts)
        for _ in range(steps):
            within.update([id_ for id_, (_, previous) in self.before.items() if previous in within])
        return Trails(self.facts, self.starts, {id_: self.before[id_] for id_ in self.before if id_ in within})

    def find_path(self, entity_id: str) -> GraphPath:
        """Return the path to an entity within reach."""
        steps: list[Step] = []
        while entity_id not in self.starts:
            place, previous = self.before[entity_id]
            steps.append(Step(self.facts.make(place), is_forward=self.facts.objects[place] == entity_id))
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


class PathsByPassage(Mapping[str, GraphPath]):
    """Paths to passages by id. A path is made when it is looked up, because few candidates become hits."""

    def __init__(self, find: Mapping[str, Callable[[], GraphPath]]) -> None:
        self._find = find

    def __getitem__(self, passage_id: str) -> GraphPath:
        return self._find[passage_id]()

    def __contains__(self, passage_id: object) -> bool:
        return passage_id in self._find

    def __iter__(self) -> Iterator[str]:
        return iter(self._find)

    def __len__(self) -> int:
        return len(self._find)


def build_adjacency(facts: FactColumns, values: Sequence[float], *, both_ways: bool = True) -> Adjacency:
    """Return the facts of each entity with their rank, the one with the highest value first."""
    by_entity: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ends = list(zip(facts.subjects, facts.objects, strict=True))
    connecting = [place for place, (subject, object_) in enumerate(ends) if object_ not in ("", subject)]
    for rank, place in enumerate(sorted(connecting, key=lambda place: (-values[place], facts.ids[place]))):
        for end in ends[place] if both_ways else ends[place][:1]:
            by_entity[end].append((rank, place))
    return Adjacency(facts, by_entity)


def find_trails(starts: Mapping[str, str], adjacency: Adjacency, *, hops: int) -> Trails:
    """Find the shortest trail to each entity within reach; of equally short ones, that with the best last fact.

    `starts` has names by entity id.
    """
    facts, before = adjacency.facts, dict[str, tuple[int, str]]()
    frontier = list(starts)
    for _ in range(hops):
        best: dict[str, tuple[int, int, str]] = {}
        for id_ in frontier:
            for rank, place in adjacency.by_entity.get(id_, ()):
                end = facts.objects[place] if facts.subjects[place] == id_ else facts.subjects[place]
                is_known = end in starts or end in before
                if not is_known and (end not in best or rank < best[end][0]):
                    best[end] = (rank, place, id_)
        before |= {end: (place, id_) for end, (_, place, id_) in best.items()}
        frontier = list(best)
    return Trails(facts, starts, before)
