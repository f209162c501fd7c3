"""How the graph led from what the question names to an entity, over facts. It follows, it does not read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from weft.types import Fact, FactPath, Step


def paths_from(
    starts: Mapping[str, str], facts: Iterable[Fact], bearing: Mapping[str, float], *, hops: int
) -> dict[str, FactPath]:
    """The path to each entity that facts lead to: the shortest, and of those the one over the best last fact.

    `starts` are names by identity; `bearing` says how good a fact is.
    """
    leading: dict[str, list[Step]] = defaultdict(list)
    for fact in sorted(facts, key=lambda f: (-bearing[f.id], f.id)):
        if fact.object_id and fact.object_id != fact.subject_id:
            leading[fact.subject_id].append(Step(fact))
            leading[fact.object_id].append(Step(fact, is_forward=False))
    found = {id_: FactPath(name) for id_, name in starts.items()}
    frontier = found
    for _ in range(hops):
        frontier = _one_further(frontier, found, leading, bearing)
        found = found | frontier
    return found


def followed(path: FactPath | None, fact: Fact, entity_id: str) -> FactPath:
    """A path and one fact more, to the entity at an end of it; without a path it begins at the other end."""
    step = Step(fact, is_forward=fact.object_id == entity_id)
    start = FactPath(fact.subject if step.is_forward else fact.object)
    return FactPath((path or start).start, (*(path or start).steps, step))


def leads_to(step: Step) -> str:
    """The entity that a step arrives at."""
    return step.fact.object_id if step.is_forward else step.fact.subject_id


def _one_further(
    frontier: Mapping[str, FactPath],
    found: Mapping[str, FactPath],
    leading: Mapping[str, list[Step]],
    bearing: Mapping[str, float],
) -> dict[str, FactPath]:
    best: dict[str, tuple[float, str, str, Step]] = {}
    for id_ in frontier:
        for step in leading.get(id_, ()):
            end = leads_to(step)
            offer = (-bearing[step.fact.id], step.fact.id, id_, step)
            if end not in found and (end not in best or offer[:3] < best[end][:3]):
                best[end] = offer
    return {
        end: FactPath(frontier[id_].start, (*frontier[id_].steps, step))
        for end, (_, _, id_, step) in best.items()
    }
