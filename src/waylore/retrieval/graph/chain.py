"""Chain: walks the graph, then ranks what it reached along the fact that led to it.

A passage two hops away rarely resembles the question; that is why plain search misses it. It does resemble
the question plus the fact that leads there. So candidates from the walk and from hybrid search are ranked by a
logistic model over a few features (`features.py`), applied twice, with weights that
`waylore.evaluation.fit` fitted on training questions. No model is called: every vector was stored. Without
vectors, S5's sum takes its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from waylore.config import Chain, Weights
from waylore.recipes import Recipe
from waylore.retrieval.fusion import Fused, ordered, weighed
from waylore.retrieval.graph.features import (
    SECOND,
    Bridges,
    Columns,
    Numbers,
    Pool,
    bridges,
    features,
    second_features,
)
from waylore.retrieval.graph.linking import merged, same, seeds
from waylore.retrieval.graph.paths import Trails, adjacency, trails
from waylore.retrieval.graph.state import Asked, Reached
from waylore.retrieval.graph.walk import Neighbourhood, Walked, facts_in, facts_of, gather, walk
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, together
from waylore.types.knowledge import Document, Fact, Mention, Passage
from waylore.types.search import FactPath, Placement, Ranking, Scored

Crossed: TypeAlias = tuple[Fact, str]  # the fact of a bridge, and the entity that it leads to


@dataclass(frozen=True, slots=True)
class Local:
    """What is near the question: facts that the best hybrid passages state, what they mention, known facts."""

    stated: Mapping[str, tuple[Fact, ...]]
    mentioned: Mapping[str, tuple[Mention, ...]]
    linked: Mapping[str, tuple[Fact, ...]]  # of the entities that the question names

    @property
    def facts(self) -> dict[str, Fact]:
        """All facts by identity."""
        return {f.id: f for facts in (*self.stated.values(), *self.linked.values()) for f in facts}


@dataclass(frozen=True, slots=True)
class Journey:
    """A walk that was made: what it read and what it reached."""

    local: Local
    near: Neighbourhood
    walked: Walked


def chain(asked: Asked, recipe: Recipe) -> Reads[Reached]:
    """Candidates of the walk and of hybrid search, by how likely each is a part of the answer."""
    asked, journey = yield from walked_from(asked, recipe)
    if asked.query.vector is None:
        ranking = _share_of_best(journey.walked.passages[: recipe.chain.walked])
        candidates = _likely(asked, weighed(asked.hybrid, ranking, recipe.merge), recipe)
        paths = _paths(asked, journey, [candidate.id for candidate in candidates], {}, recipe)
        return Reached(asked.links, candidates, paths, _told(asked, journey.near))
    with asked.trace.stage("pool"):
        pool, shown = yield from pooled(asked, journey, recipe)
    with asked.trace.stage("chain"):
        found = bridges(pool, common=recipe.chain.common)
        columns, best = features(pool, asked.query.vector, found)
        columns = second_features(columns, log_odds(columns, recipe.chain.first), found)
        candidates = _likely(asked, _ranked(asked, journey, pool, columns, recipe.chain), recipe)
    with asked.trace.stage("paths"):
        leading = {pool.ids[place]: _crossed(found, number) for place, number in best.items()}
        paths = _paths(asked, journey, pool.ids, leading, recipe)
    return Reached(asked.links, candidates, paths, _told(asked, journey.near), shown)


def log_odds(columns: Columns, weights: Weights) -> Numbers:
    """A logistic model's judgement: the sum of what each feature weighs."""
    odds = np.full(len(columns["cosine"]), dict(weights)["bias"])
    for name, weight in weights:
        odds += weight * columns[name] if name != "bias" else 0.0
    return odds


def walked_from(asked: Asked, recipe: Recipe) -> Reads[tuple[Asked, Journey]]:
    """Walk from what the question names, under whatever name, and from the facts that bear on it most."""
    hybrid = [Scored(f.id, f.score) for f in asked.hybrid[: recipe.linking.hybrid_passages]]
    with asked.trace.stage("local facts"):
        asked, local = yield from _local(asked, [scored.id for scored in hybrid], recipe)
        facts = local.facts
        start = seeds(asked.query, asked.links, facts, recipe.linking)
    with asked.trace.stage("gather"):
        near = yield from gather(
            asked.query,
            start,
            facts,
            hybrid,
            local.mentioned,
            config=recipe.walk,
            resolution=recipe.resolution,
            read_before=local.linked,
        )
    with asked.trace.stage("walk"):
        walked = walk(near, hybrid, config=recipe.walk, trust=recipe.trust, now=asked.now)
    return asked, Journey(local, near, walked)


def _local(asked: Asked, best: Sequence[str], recipe: Recipe) -> Reads[tuple[Asked, Local]]:
    """What the best hybrid passages state and mention, and what is known of linked entities under any name."""
    query, walk = asked.query, recipe.walk
    own = replace(walk, facts_per_entity=recipe.linking.facts_per_entity)
    named, stated, mentioned, linked = yield from together(
        same(query, asked.links, recipe.resolution),
        facts_in(query, best, walk, per_passage=recipe.linking.facts_per_passage),
        read(Store.entities_of_passages, best, per_passage=walk.entities_per_passage, where=query.where),
        facts_of(query, [found.entity.id for found in asked.links], own),
    )
    links = named.links
    if named.over:
        others, also = yield from together(merged(query, named), facts_of(query, list(named.over), own))
        links, linked = (*links, *others), {**linked, **also}
    ids = dict.fromkeys(found.entity.id for found in links)
    told = {id_: linked.get(id_, ()) for id_ in ids}
    return replace(asked, links=links), Local({id_: stated.get(id_, ()) for id_ in best}, mentioned, told)


def pooled(
    asked: Asked, journey: Journey, recipe: Recipe
) -> Reads[tuple[Pool, dict[str, tuple[Passage, Document]]]]:
    """Read the candidates with what they state and mention: the best of the walk, and hybrid search's own."""
    config, query, local = recipe.chain, asked.query, journey.local
    walked = [s.id for s in journey.walked.passages[: config.walked]]
    own = [f.id for f in asked.hybrid[: max(config.hybrid, recipe.top_k)]]
    wanted = list(dict.fromkeys([*walked, *own]))
    others = [id_ for id_ in wanted if id_ not in local.stated]
    passages, sources, stated, mentioned = yield from together(
        read(Store.passages, wanted, where=query.where, vectors=True),
        read(Store.sources, wanted, where=query.where),
        facts_in(query, others, recipe.walk, per_passage=config.facts_per_passage),
        read(Store.entities_of_passages, others, per_passage=config.entities_per_passage, where=query.where),
    )
    shown = {id_: (passage, sources[id_]) for id_, passage in passages.items() if id_ in sources}
    facts, mentions = {**local.stated, **stated}, {**local.mentioned, **mentioned}
    return _pool(asked, journey, [passages[id_] for id_ in wanted if id_ in passages], facts, mentions), shown


def _pool(
    asked: Asked,
    journey: Journey,
    passages: Sequence[Passage],
    facts: Mapping[str, tuple[Fact, ...]],
    mentions: Mapping[str, tuple[Mention, ...]],
) -> Pool:
    """Candidates side by side; those without a vector are left out."""
    vectors = {p.id: p.vector for p in passages if p.vector is not None}
    activation = {s.id: s.score for s in journey.walked.passages}
    words = {s.id: s.score for s in _share_of_best(asked.rankings["lexical"])}
    return Pool(
        ids=tuple(vectors),
        vectors=np.stack(list(vectors.values())),
        lexical=np.array([words.get(id_, 0.0) for id_ in vectors]),
        activation=np.array([activation.get(id_, 0.0) for id_ in vectors]),
        facts=tuple(facts.get(id_, ()) for id_ in vectors),
        mentions=tuple(mentions.get(id_, ()) for id_ in vectors),
        named=frozenset(asked.starts),
    )


def _ranked(asked: Asked, journey: Journey, pool: Pool, columns: Columns, config: Chain) -> tuple[Fused, ...]:
    """Candidates by probability, each search with its share of it."""
    probability = 1.0 / (1.0 + np.exp(-log_odds(columns, config.second)))
    lifts = _lifts(columns, config.second)
    whole = sum(lifts.values())
    shares = {search: probability * lift / whole for search, lift in lifts.items()}
    found = {
        "dense": asked.rankings["dense"],
        "lexical": asked.rankings["lexical"],
        "walk": journey.walked.passages,
        "chain": _by(pool, columns["bridge_cosine"]),
    }
    places = {name: {s.id: (rank, s.score) for rank, s in enumerate(r, 1)} for name, r in found.items()}
    return ordered({id_: _placements(id_, i, places, shares) for i, id_ in enumerate(pool.ids)})


def _likely(asked: Asked, candidates: Sequence[Fused], recipe: Recipe) -> tuple[Fused, ...]:
    """Without those that only the graph would add and that score too little; the hybrid top K stays."""
    own = {f.id for f in asked.hybrid[: recipe.top_k]}
    return tuple(f for f in candidates if f.id in own or f.score >= recipe.chain.min_graph_score)


def _placements(
    id_: str,
    place: int,
    places: Mapping[str, Mapping[str, tuple[int, float]]],
    shares: Mapping[str, Numbers],
) -> list[Placement]:
    """Where each search placed a candidate; the first that found it is given what those that missed it gave."""
    finders = [search for search in shares if id_ in places[search]]
    merits = dict.fromkeys(finders, 0.0)
    for search, share in shares.items():
        merits[search if search in merits else finders[0]] += float(share[place])
    return [Placement(search, *places[search][id_], round(share, 6)) for search, share in merits.items()]


def _lifts(columns: Columns, weights: Weights) -> dict[str, Numbers]:
    """How far each search lifts the log-odds of each candidate over those of the least of them.

    A candidate that nothing lifts, as where there is no other, owes all searches alike.
    """
    lifts = {search: np.full(len(columns["cosine"]), 1e-6) for search in SECOND.values()}
    for name, weight in weights:
        if name != "bias":
            effect = weight * columns[name]
            lifts[SECOND[name]] = lifts[SECOND[name]] + effect - effect.min()
    return lifts


def _by(pool: Pool, scores: Numbers) -> Ranking:
    """Candidates that have a score, best first."""
    scored = [Scored(id_, score) for id_, score in zip(pool.ids, scores.tolist(), strict=True) if score]
    return tuple(sorted(scored, key=lambda s: (-s.score, s.id)))


def _share_of_best(ranking: Sequence[Scored]) -> Ranking:
    best = max((s.score for s in ranking), default=0.0) or 1.0
    return tuple(Scored(s.id, s.score / best) for s in ranking)


def _paths(
    asked: Asked, journey: Journey, ids: Sequence[str], leading: Mapping[str, Crossed], recipe: Recipe
) -> dict[str, FactPath]:
    """To each candidate the path of its best bridge, or of the most active entity that it mentions."""
    known = _known(asked, journey.near, recipe)
    active, wanted = journey.walked.entities, set(ids).difference(leading)
    foremost: dict[str, Mention] = {}
    for mention in journey.near.mentions:
        if mention.passage_id in wanted and mention.entity_id in known:
            best = foremost.get(mention.passage_id)
            if best is None or _pull(mention, active) > _pull(best, active):
                foremost[mention.passage_id] = mention
    paths = {passage: known.to(mention.entity_id) for passage, mention in foremost.items()}
    paths |= {passage: known.over(*crossed) for passage, crossed in leading.items()}
    named = [m for m in journey.near.mentions if m.is_own and m.entity_id in asked.starts]
    return paths | {m.passage_id: known.to(m.entity_id) for m in named if m.passage_id in paths}


def _known(asked: Asked, near: Neighbourhood, recipe: Recipe) -> Trails:
    """Trails from what the question names; what they do not reach, from where else the walk began."""
    facts, hops = near.facts.values(), recipe.walk.max_hops + 2
    joined = adjacency(facts, near.fact_cosines)
    named = trails(asked.starts, joined, hops=hops)
    names = {f.object_id: f.object for f in facts} | {f.subject_id: f.subject for f in facts}
    lent = {id_: names[id_] for id_ in near.seeds if id_ in names and id_ not in named}
    return trails({**asked.starts, **lent}, joined, hops=hops) if lent else named


def _pull(mention: Mention, active: Mapping[str, float]) -> float:
    return active[mention.entity_id] * (4.0 if mention.is_own else 1.0)


def _crossed(found: Bridges, number: int) -> Crossed:
    fact = found.facts[found.fact[number]]
    return fact, fact.ends[found.end[number]]


def _told(asked: Asked, near: Neighbourhood) -> tuple[Fact, ...]:
    """Facts of what the question names, those that bear on it most first."""
    about = [f for f in near.facts.values() if not asked.starts.keys().isdisjoint(f.ends)]
    return tuple(sorted(about, key=lambda f: (-near.fact_cosines[f.id], f.id)))
