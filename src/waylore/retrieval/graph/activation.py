"""Search by activation: follow facts outward from the entities of a question to their passages (S12).

It starts at the entities nearest to the question and follows facts from subject to object for two hops, with at
most ten facts for each entity and thirty in all. Facts are scored by confidence, source, age, use and status.
No other search reads uses. Personal memories need this: facts first, and passages as their source. The caps
always hold, although the sketch in the specification lets facts exceed them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from waylore.config import TrustConfig, WalkConfig
from waylore.recipes import Recipe
from waylore.retrieval.fusion import combine_weighted
from waylore.retrieval.graph.paths import Trails, build_adjacency, find_trails
from waylore.retrieval.graph.state import GraphQuery, GraphResult, add_same_entities, attribute_facts
from waylore.retrieval.graph.walk import compute_trust, read_entity_facts
from waylore.store.reads import Reads
from waylore.types.columns import FactColumns, Numbers, to_fact_columns
from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Query, Ranking, Scored, Step

WIDER = 8  # times as many facts are read of an entity if most of its strongest facts lead to it


def search_activation(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Add the passages of the activated facts to the hybrid ranking, by the score of the facts."""
    question = yield from add_same_entities(question, recipe)
    with question.trace.measure("walk"):
        found = yield from read_activated_facts(question.query, list(question.starts), recipe.walk)
        facts = yield from attribute_facts(question.query, found)
    columns = to_fact_columns({"": facts})
    values = score_facts(columns, recipe.trust, question.now).tolist()
    scores = dict(zip(columns.ids, values, strict=True))
    ranked = sorted(facts, key=lambda f: (-scores[f.id], f.id))
    adjacency = build_adjacency(columns, values, both_ways=False)
    trails = find_trails(question.starts, adjacency, hops=recipe.walk.max_hops)
    ranking = _rank_passages(ranked, scores, recipe.gate.min_graph_score)
    paths = {fact.passage_id: _make_path(fact, trails) for fact in reversed(ranked)}
    candidates = combine_weighted(question.hybrid, ranking, recipe.merge)
    return GraphResult(question.links, candidates, question.hybrid, paths, tuple(ranked))


def read_activated_facts(query: Query, anchors: Sequence[str], config: WalkConfig) -> Reads[tuple[Fact, ...]]:
    """Read facts outward from the anchors, breadth first, the most certain first, with one or two reads per hop."""
    found: dict[str, Fact] = {}
    visited, frontier = set(anchors), list(anchors)
    for _ in range(config.max_hops):
        outward = yield from _read_outward(query, frontier, config)
        found |= {f.id: f for f in outward[: config.max_facts - len(found)] if f.id not in found}
        ends = dict.fromkeys(f.object_id for f in outward if f.object_id)
        frontier = [end for end in ends if end not in visited][: config.frontier]
        visited.update(frontier)
    return tuple(found.values())


def _read_outward(query: Query, entities: Sequence[str], config: WalkConfig) -> Reads[list[Fact]]:
    """Read the facts whose subjects are entities, strongest first, at most `facts_per_entity` of each entity.

    The store lists facts of both directions. So more facts are read of an entity if facts that lead to it take the
    places of others.
    """
    limit = config.facts_per_entity
    listed = dict((yield from read_entity_facts(query, entities, config)))
    if crowded := [id_ for id_, facts in listed.items() if _is_crowded(id_, facts, limit)]:
        listed |= yield from read_entity_facts(query, crowded, replace(config, facts_per_entity=WIDER * limit))
    return [f for id_ in entities for f in [f for f in listed.get(id_, ()) if f.subject_id == id_][:limit]]


def _is_crowded(entity: str, facts: Sequence[Fact], limit: int) -> bool:
    """Return whether the limit cuts the facts of an entity, and some of the listed ones lead to it."""
    known = [fact for fact in facts if fact.predicate]  # pairs come last
    return len(known) >= limit and any(fact.subject_id != entity for fact in known)


def score_facts(facts: FactColumns, trust: TrustConfig, now: datetime) -> Numbers:
    """Return the trust in each fact, which grows with its uses and decays from the last one on (S12)."""
    made = [facts.make(place) for place in range(facts.size)]
    usage = 1.0 + trust.usage * np.log10(np.array([fact.access_count for fact in made]) + 1)
    days = np.array([(now - (fact.last_accessed or fact.recorded_at)).days for fact in made])
    scores: Numbers = usage * compute_trust(facts, trust, days)
    return scores


def _rank_passages(ranked: Sequence[Fact], fact_scores: dict[str, float], min_score: float) -> Ranking:
    """Rank passages by the best fact that each of them states, as a share of the best fact of all."""
    best = max(fact_scores.values(), default=0.0) or 1.0
    scores: dict[str, float] = {}
    for fact in ranked:
        scores.setdefault(fact.passage_id, round(fact_scores[fact.id] / best, 6))
    chosen = [Scored(id_, score) for id_, score in scores.items() if score >= min_score]
    return tuple(sorted(chosen, key=lambda s: (-s.score, s.id)))


def _make_path(fact: Fact, trails: Trails) -> GraphPath:
    """Return the path to the passage that states a fact. The fact is its last step."""
    before = trails.find_path(fact.subject_id) if fact.subject_id in trails else GraphPath(fact.subject)
    return GraphPath(before.start, (*before.steps, Step(fact)))
