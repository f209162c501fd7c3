"""Activation: from the entities nearest to the question over their facts to the passages that state them (S12).

Anchors, two hops along facts from subject to object, ten facts an entity and thirty in all; facts are scored by
confidence, source, age, use and status. It is what a personal memory asks for: facts first, passages as their
source. The caps hold, also where the specification's sketch lets facts exceed them.
"""

from collections.abc import Sequence

from waylore.config import Walk
from waylore.recipes import Recipe
from waylore.retrieval.fusion import weighed
from waylore.retrieval.graph.paths import Trails, adjacency, trails
from waylore.retrieval.graph.state import Asked, Reached, resolved
from waylore.retrieval.graph.walk import facts_of, trusted
from waylore.store.reads import Reads
from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Query, Ranking, Scored, Step


def activation(asked: Asked, recipe: Recipe) -> Reads[Reached]:
    """The hybrid ranking, and the passages of the activated facts by the facts' score."""
    asked = yield from resolved(asked, recipe)
    with asked.trace.stage("walk"):
        facts = yield from activated(asked.query, list(asked.starts), recipe.walk)
    worth = {f.id: trusted(f, recipe.trust, asked.now) for f in facts}
    ranked = sorted(facts, key=lambda f: (-worth[f.id], f.id))
    known = trails(asked.starts, adjacency(facts, worth, both_ways=False), hops=recipe.walk.max_hops)
    ranking = _passages(ranked, worth, recipe.gate.min_graph_score)
    paths = {fact.passage_id: _to_passage(fact, known) for fact in reversed(ranked)}
    return Reached(asked.links, weighed(asked.hybrid, ranking, recipe.merge), paths, tuple(ranked))


def activated(query: Query, anchors: Sequence[str], config: Walk) -> Reads[tuple[Fact, ...]]:
    """Facts outward from the anchors, breadth first, the surest first: one call a hop, never above the caps."""
    found: dict[str, Fact] = {}
    visited, frontier = set(anchors), list(anchors)
    for _ in range(config.max_hops):
        listed = yield from facts_of(query, frontier, config)
        outward = [f for id_ in frontier for f in listed.get(id_, ()) if f.subject_id == id_]
        found |= {f.id: f for f in outward[: config.max_facts - len(found)] if f.id not in found}
        ends = dict.fromkeys(f.object_id for f in outward if f.object_id)
        frontier = [end for end in ends if end not in visited][: config.frontier]
        visited.update(frontier)
    return tuple(found.values())


def _passages(ranked: Sequence[Fact], worth: dict[str, float], least: float) -> Ranking:
    """Passages by the best fact that they state, as a share of the best of all."""
    best = max(worth.values(), default=0.0) or 1.0
    scores: dict[str, float] = {}
    for fact in ranked:
        scores.setdefault(fact.passage_id, round(worth[fact.id] / best, 6))
    kept = [Scored(id_, score) for id_, score in scores.items() if score >= least]
    return tuple(sorted(kept, key=lambda s: (-s.score, s.id)))


def _to_passage(fact: Fact, known: Trails) -> FactPath:
    """The path to the passage that states a fact goes over that fact."""
    before = known.to(fact.subject_id) if fact.subject_id in known else FactPath(fact.subject)
    return FactPath(before.start, (*before.steps, Step(fact)))
