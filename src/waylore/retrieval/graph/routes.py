"""Choose the path that explains each candidate of the search by chain.

A path starts at an entity that the question names and ends at the first entity that the passage mentions. A passage
that mentions an entity of the question shows that, with a fact that it states of it, and no detour. If text search
finds a passage as well, it has a short path or none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from waylore.recipes import Recipe
from waylore.retrieval.graph.features import Pool
from waylore.retrieval.graph.paths import PathsByPassage, Trails, build_adjacency, find_trails
from waylore.retrieval.graph.same_as import map_end_names
from waylore.retrieval.graph.state import GraphQuery
from waylore.retrieval.graph.walk import Neighbourhood
from waylore.store.rows import group_pairs
from waylore.types.columns import FactColumns, MentionColumns
from waylore.types.search import GraphPath, Step

MAX_STEPS = 2  # of a path to a passage that text search finds as well: more steps explain nothing
OWN_MENTION = 4.0  # factor for a mention in a passage that is about the entity
FindPath: TypeAlias = Callable[[], GraphPath]
Activation: TypeAlias = Mapping[str, float]  # of entities


@dataclass(frozen=True, slots=True)
class Crossing:
    """The fact of a bridge, by its place among `facts`, and which of its ends the bridge leads to."""

    facts: FactColumns
    place: int
    end: int

    def touches(self, trails: Trails) -> bool:
        """Return whether trails lead to an end of the fact."""
        return self.facts.subjects[self.place] in trails or self.facts.objects[self.place] in trails


def find_paths(
    question: GraphQuery,
    neighbourhood: Neighbourhood,
    active: Activation,
    pool: Pool,
    over: Mapping[str, Crossing],
    recipe: Recipe,
) -> PathsByPassage:
    """Return the paths to candidates. `over` has the best bridge to each of them, by id."""
    paths = _find_paths(question, neighbourhood, active, pool.mentions, over, recipe)
    return PathsByPassage(paths | _find_direct_paths(question, active, pool))


def find_walk_paths(
    question: GraphQuery, neighbourhood: Neighbourhood, active: Activation, recipe: Recipe
) -> PathsByPassage:
    """Return the paths to all passages of a walk, without bridges."""
    near = neighbourhood.mentions
    mentions = MentionColumns(near.passages, near.entities, near.passages, near.counts, near.is_own)
    return PathsByPassage(_find_paths(question, neighbourhood, active, mentions, {}, recipe))


def _find_paths(
    question: GraphQuery,
    neighbourhood: Neighbourhood,
    active: Activation,
    mentions: MentionColumns,
    over: Mapping[str, Crossing],
    recipe: Recipe,
) -> dict[str, FindPath]:
    """Return the path to each candidate over its best bridge, or to the most active entity that it mentions.

    If only the graph found a candidate, its path may be longer, or start at an entity of the best hybrid passages.
    `mentions` are those of the candidates.
    """
    near, named, wider = _find_trails(question, neighbourhood, recipe)
    listed = {scored.id for ranking in question.rankings.values() for scored in ranking}
    trails = {passage: named if passage in listed else wider for passage in {*mentions.of, *over}}
    rows = neighbourhood.mentions
    best: dict[str, tuple[float, str]] = {}
    for entity, passage, is_own in zip(rows.entities, rows.passages, rows.is_own.tolist(), strict=True):
        if passage in trails and passage not in over and entity in trails[passage]:
            score = active[entity] * (OWN_MENTION if is_own else 1.0)
            if passage not in best or score > best[passage][0]:
                best[passage] = (score, entity)
    paths: dict[str, FindPath] = {id_: partial(trails[id_].find_path, entity) for id_, (_, entity) in best.items()}
    crossed = {id_: bridge for id_, bridge in over.items() if id_ not in listed or bridge.touches(near)}
    paths |= {id_: partial(_cross, near if id_ in listed else wider, bridge) for id_, bridge in crossed.items()}
    mentioned = group_pairs(zip(mentions.of, mentions.entities, strict=True))
    return {id_: partial(_cut, find, frozenset(mentioned[id_])) for id_, find in paths.items()}


def _cross(trails: Trails, bridge: Crossing) -> GraphPath:
    fact = bridge.facts.make(bridge.place)
    return trails.find_path_over(fact, fact.ends[bridge.end])


def _cut(find: FindPath, mentioned: frozenset[str]) -> GraphPath:
    """Return a path up to the first entity that the passage mentions: what follows would be a detour."""
    path = find()
    ends = [step.fact.object_id if step.is_forward else step.fact.subject_id for step in path.steps]
    last = next((place for place, end in enumerate(ends, 1) if end in mentioned), len(ends))
    return GraphPath(path.start, path.steps[:last])


def _find_direct_paths(question: GraphQuery, active: Activation, pool: Pool) -> dict[str, FindPath]:
    """Return the path to each candidate that mentions an entity of the question: a fact that it states of it, or none.

    Of several facts the most similar to the question is chosen, of several entities the most active.
    """
    starts, facts = question.starts, pool.facts
    mentions = zip(pool.mentions.entities, pool.mentions.of, strict=True)
    named = sorted((pair for pair in mentions if pair[0] in starts), key=lambda pair: active.get(pair[0], 0.0))
    paths: dict[str, FindPath] = {passage: partial(GraphPath, starts[entity]) for entity, passage in named}
    cosines = facts.compute_cosines(question.query)
    ends = zip(facts.subjects, facts.objects, facts.is_typed.tolist(), strict=True)
    stated = [
        place
        for place, (one, other, typed) in enumerate(ends)
        if typed and other and (one in starts or other in starts)
    ]
    for place in sorted(stated, key=lambda place: (cosines[place], facts.ids[place])):
        if facts.of[place] in paths:
            paths[facts.of[place]] = partial(_follow, facts, place, starts)
    return paths


def _follow(facts: FactColumns, place: int, starts: Mapping[str, str]) -> GraphPath:
    """Return the path over one fact, from an end that is a start."""
    is_forward = facts.subjects[place] in starts
    start = starts[facts.subjects[place] if is_forward else facts.objects[place]]
    return GraphPath(start, (Step(facts.make(place), is_forward=is_forward),))


def _find_trails(question: GraphQuery, neighbourhood: Neighbourhood, recipe: Recipe) -> tuple[Trails, Trails, Trails]:
    """Find trails of one step and of MAX_STEPS from the entities of the question, and longer ones, also from seeds."""
    facts, hops = neighbourhood.facts, recipe.walk.max_hops + 2
    adjacency = build_adjacency(facts, neighbourhood.fact_cosines.tolist())
    far = find_trails(question.starts, adjacency, hops=hops)
    seeds = map_end_names(facts, [id_ for id_ in neighbourhood.seeds if id_ not in far])
    wider = find_trails({**far.starts, **seeds}, adjacency, hops=hops) if seeds else far
    return far.shorten(1), far.shorten(MAX_STEPS), wider
