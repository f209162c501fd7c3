"""Search the neighbourhood: passages that mention entities related to those of the question (S4).

The score is weight/10 x 1/2^(hops-1) x (0.7 + 0.3 min(log2(mentions+1)/5, 1)), as specified. The weight is that
of the fact that leads to the entity; mentions is the number of passages that mention it. The caps of the walk
apply. This search does not spread activation and does not compare passages with the question.
"""

from collections.abc import Iterable
from math import log2

from waylore.config import WalkConfig
from waylore.recipes import Recipe
from waylore.retrieval.fusion import combine_weighted
from waylore.retrieval.graph.paths import Trails, build_adjacency, find_trails
from waylore.retrieval.graph.state import GraphQuery, GraphResult, add_same_entities
from waylore.retrieval.graph.walk import read_entity_facts
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.columns import to_fact_columns
from waylore.types.knowledge import Entity, Fact
from waylore.types.search import GraphPath, Query, Ranking, Scored


def search_neighbourhood(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Add passages of related entities to the hybrid ranking, by the score of S4."""
    question = yield from add_same_entities(question, recipe)
    with question.trace.measure("walk"):
        facts = yield from read_facts_around(question.query, list(question.starts), recipe.walk)
        adjacency = build_adjacency(to_fact_columns({"": facts}), [f.weight * f.confidence for f in facts])
        trails = find_trails(question.starts, adjacency, hops=recipe.walk.max_hops)
    with question.trace.measure("mentions"):
        ranking, paths = yield from _rank_passages(question, trails, recipe)
    candidates = combine_weighted(question.hybrid, ranking, recipe.merge)
    return GraphResult(question.links, candidates, question.hybrid, paths, facts)


def read_facts_around(query: Query, entities: list[str], config: WalkConfig) -> Reads[tuple[Fact, ...]]:
    """Read the facts within `max_hops` of entities, the nearest first, with one read per hop."""
    known: dict[str, Fact] = {}
    walked, frontier = set(entities), entities
    for _ in range(config.max_hops):
        listed = yield from read_entity_facts(query, frontier, config)
        new = {f.id: f for id_ in sorted(listed) for f in listed[id_] if f.id not in known}  # the same on every engine
        known |= new
        ends = _rank_ends(new.values())
        frontier = [end for end in ends if end not in walked][: config.frontier]
        walked.update(frontier)
    return tuple(known.values())[: config.max_facts]


def score_passage(*, weight: float, hops: int, mentions: int) -> float:
    """Return the score of a passage that mentions an entity `hops` facts away (S4)."""
    return weight / 10 * 0.5 ** (hops - 1) * (0.7 + 0.3 * min(log2(mentions + 1) / 5, 1.0))


def _rank_ends(facts: Iterable[Fact]) -> list[str]:
    best = sorted(facts, key=lambda f: (-f.weight * f.confidence, f.id))
    return list(dict.fromkeys(end for fact in best for end in fact.ends))


def _rank_passages(question: GraphQuery, trails: Trails, recipe: Recipe) -> Reads[tuple[Ranking, dict[str, GraphPath]]]:
    """Rank the passages of related entities, each by its best entity. Passages about an entity come first."""
    paths = {id_: trails.find_path(id_) for id_ in trails.before}
    nearest = sorted(paths, key=lambda id_: (len(paths[id_].steps), id_))[: recipe.walk.max_entities]
    per_entity, where = recipe.walk.passages_per_entity, question.query.where
    entities, listed = yield from read_together(
        read(Store.entities, nearest, where=where),
        read(Store.passages_of_entities, [*question.starts, *nearest], per_entity=per_entity, where=where),
    )
    scores = {id_: _score_entity(entity, paths[id_]) for id_, entity in entities.items()}
    mentions = [m for id_ in scores for m in listed.get(id_, ())]
    best = {
        m.passage_id: m.entity_id for m in sorted(mentions, key=lambda m: (scores[m.entity_id], m.is_own, m.entity_id))
    }
    scored = [Scored(passage, scores[id_]) for passage, id_ in best.items()]
    ranked = [s for s in scored if s.score >= recipe.gate.min_graph_score]
    passage_paths = {passage: paths[id_] for passage, id_ in best.items()}
    named = [m for id_ in question.starts for m in listed.get(id_, ()) if m.is_own]
    passage_paths |= {m.passage_id: trails.find_path(m.entity_id) for m in named}
    return tuple(sorted(ranked, key=lambda s: (-s.score, s.id))), passage_paths


def _score_entity(entity: Entity, path: GraphPath) -> float:
    return round(score_passage(weight=path.facts[-1].weight, hops=len(path.steps), mentions=entity.passages), 6)
