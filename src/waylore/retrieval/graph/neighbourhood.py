"""Neighbourhood: passages that mention what is related to what the question names (S4), scored as specified.

weight/10 x 1/2^(hops-1) x (0.7 + 0.3 min(log2(mentions+1)/5, 1)), where the weight is that of the fact that
leads to the entity, and mentions are the passages that mention it. Bounded by the walk's caps; it does not
spread activation, and it does not look at the question again.
"""

from collections.abc import Iterable
from math import log2

from waylore.config import Walk
from waylore.recipes import Recipe
from waylore.retrieval.fusion import weighed
from waylore.retrieval.graph.paths import Trails, adjacency, trails
from waylore.retrieval.graph.state import Asked, Reached, resolved
from waylore.retrieval.graph.walk import facts_of
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, together
from waylore.types.knowledge import Entity, Fact
from waylore.types.search import FactPath, Query, Ranking, Scored


def neighbourhood(asked: Asked, recipe: Recipe) -> Reads[Reached]:
    """The hybrid ranking, and passages of related entities by S4's score."""
    asked = yield from resolved(asked, recipe)
    with asked.trace.stage("walk"):
        facts = yield from facts_around(asked.query, list(asked.starts), recipe.walk)
        joined = adjacency(facts, {f.id: f.weight * f.confidence for f in facts})
        known = trails(asked.starts, joined, hops=recipe.walk.max_hops)
    with asked.trace.stage("mentions"):
        ranking, paths = yield from _passages(asked, known, recipe)
    return Reached(asked.links, weighed(asked.hybrid, ranking, recipe.merge), paths, facts)


def facts_around(query: Query, entities: list[str], config: Walk) -> Reads[tuple[Fact, ...]]:
    """The facts within so many hops, the nearest first: one call a hop."""
    found: dict[str, Fact] = {}
    walked, frontier = set(entities), entities
    for _ in range(config.max_hops):
        listed = yield from facts_of(query, frontier, config)
        fresh = {f.id: f for fs in listed.values() for f in fs if f.id not in found}
        found |= fresh
        ends = _ends(fresh.values())
        frontier = [end for end in ends if end not in walked][: config.frontier]
        walked.update(frontier)
    return tuple(found.values())[: config.max_facts]


def score(*, weight: float, hops: int, mentions: int) -> float:
    """S4's score of a passage that mentions an entity so many hops away."""
    return weight / 10 * 0.5 ** (hops - 1) * (0.7 + 0.3 * min(log2(mentions + 1) / 5, 1.0))


def _ends(facts: Iterable[Fact]) -> list[str]:
    best = sorted(facts, key=lambda f: (-f.weight * f.confidence, f.id))
    return list(dict.fromkeys(end for fact in best for end in fact.ends))


def _passages(asked: Asked, known: Trails, recipe: Recipe) -> Reads[tuple[Ranking, dict[str, FactPath]]]:
    """Passages of related entities, each by the entity that gives it most; what it is about before others."""
    paths = {id_: known.to(id_) for id_ in known.before}
    nearest = sorted(paths, key=lambda id_: (len(paths[id_].steps), id_))[: recipe.walk.max_entities]
    per_entity, where = recipe.walk.passages_per_entity, asked.query.where
    entities, listed = yield from together(
        read(Store.entities, nearest, where=where),
        read(Store.passages_of_entities, [*asked.starts, *nearest], per_entity=per_entity, where=where),
    )
    worth = {id_: _worth(entity, paths[id_]) for id_, entity in entities.items()}
    mentions = [m for id_ in worth for m in listed.get(id_, ())]
    best = {
        m.passage_id: m.entity_id
        for m in sorted(mentions, key=lambda m: (worth[m.entity_id], m.is_own, m.entity_id))
    }
    scored = [Scored(passage, worth[id_]) for passage, id_ in best.items()]
    kept = [s for s in scored if s.score >= recipe.gate.min_graph_score]
    led = {passage: paths[id_] for passage, id_ in best.items()}
    named = [m for id_ in asked.starts for m in listed.get(id_, ()) if m.is_own]
    led |= {m.passage_id: known.to(m.entity_id) for m in named}
    return tuple(sorted(kept, key=lambda s: (-s.score, s.id))), led


def _worth(entity: Entity, path: FactPath) -> float:
    return round(score(weight=path.facts[-1].weight, hops=len(path.steps), mentions=entity.passages), 6)
