"""Chain: walks the graph, then ranks what it reached along the fact that led to it.

A passage two hops away rarely resembles the question; that is why plain search misses it. It does resemble
the question plus the fact that leads there. So candidates from the walk and from hybrid search are ranked by a
logistic model over a few features (`features.py`), with weights that `weft.evaluation.fitting` fitted on
training questions. No model is called: every vector was stored. Without vectors, S5's sum takes its place.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.config import Chain, Recipe
from weft.retrieval.asking import Asked, Reached
from weft.retrieval.features import FEATURES, Bridge, Numbers, Pool, bridges, features
from weft.retrieval.fusion import Fused, ordered, weighed
from weft.retrieval.linking import local_facts, seeds
from weft.retrieval.paths import followed, paths_from
from weft.retrieval.walking import Neighbourhood, Walked, gather, walk
from weft.store.base import Store
from weft.types import Fact, FactPath, Mention, Placement, Ranking, Scored


@dataclass(frozen=True, slots=True)
class Journey:
    """A walk that was made: what it read and what it reached."""

    near: Neighbourhood
    walked: Walked


def chain(store: Store, asked: Asked, recipe: Recipe) -> Reached:
    """Candidates of the walk and of hybrid search, by how likely each is a part of the answer."""
    journey = walked_from(store, asked, recipe)
    if asked.query.vector is None:
        ranking = _share_of_best(journey.walked.passages[: recipe.chain.walked])
        candidates = weighed(asked.hybrid, ranking, recipe.merge)
        return Reached(candidates, _paths(asked, journey, {}, recipe), _told(asked, journey.near))
    with asked.trace.stage("pool"):
        pool = pooled(store, asked, journey, recipe.chain)
    with asked.trace.stage("chain"):
        columns, best = features(pool, asked.query.vector, bridges(pool, common=recipe.chain.common))
        candidates = _ranked(asked, journey, pool, columns, recipe.chain)
        leading = {pool.ids[place]: bridge for place, bridge in best.items()}
        return Reached(candidates, _paths(asked, journey, leading, recipe), _told(asked, journey.near))


def walked_from(store: Store, asked: Asked, recipe: Recipe) -> Journey:
    """Walk from what the question names and from the facts that bear on it most."""
    hybrid = [Scored(f.id, f.score) for f in asked.hybrid[: recipe.linking.hybrid_passages]]
    with asked.trace.stage("local facts"):
        facts = local_facts(store, asked.query, asked.links, hybrid, recipe.linking)
        start = seeds(store, asked.query, asked.links, facts, recipe.linking)
    with asked.trace.stage("gather"):
        near = gather(store, asked.query, start, facts, hybrid, config=recipe.walk)
    with asked.trace.stage("walk"):
        return Journey(near, walk(near, hybrid, config=recipe.walk, trust=recipe.trust, now=asked.now))


def pooled(store: Store, asked: Asked, journey: Journey, config: Chain) -> Pool:
    """Read what the candidates state and mention: the best of the walk, and hybrid search's own."""
    activation = {s.id: s.score for s in journey.walked.passages}
    wanted = [s.id for s in journey.walked.passages[: config.walked]]
    wanted += [f.id for f in asked.hybrid[: config.hybrid]]
    where = asked.query.where
    passages = store.passages(list(dict.fromkeys(wanted)), where=where, vectors=True)
    vectors = {id_: p.vector for id_, p in passages.items() if p.vector is not None}
    ids = [id_ for id_ in dict.fromkeys(wanted) if id_ in vectors]
    per_passage = config.facts_per_passage
    facts = store.facts_of_passages(ids, per_passage=per_passage, as_of=asked.query.as_of, where=where)
    mentions = store.entities_of_passages(ids, per_passage=config.entities_per_passage, where=where)
    words = {s.id: s.score for s in _share_of_best(asked.rankings["lexical"])}
    return Pool(
        ids=tuple(ids),
        vectors=np.stack([vectors[id_] for id_ in ids]),
        lexical=np.array([words.get(id_, 0.0) for id_ in ids]),
        activation=np.array([activation.get(id_, 0.0) for id_ in ids]),
        facts=tuple(facts.get(id_, ()) for id_ in ids),
        mentions=tuple(mentions.get(id_, ()) for id_ in ids),
        named=frozenset(asked.starts),
    )


def _ranked(
    asked: Asked, journey: Journey, pool: Pool, columns: Mapping[str, Numbers], config: Chain
) -> tuple[Fused, ...]:
    """Candidates by probability, each search with its share of it."""
    weights = dict(config.weights)
    odds = weights["bias"] + sum(weights[name] * columns[name] for name in FEATURES)
    probability = 1.0 / (1.0 + np.exp(-odds))
    lifts = _lifts(columns, weights)
    whole = np.maximum(sum(lifts.values()), 1e-9)
    shares = {search: probability * lift / whole for search, lift in lifts.items()}
    found = {
        "dense": asked.rankings["dense"],
        "lexical": asked.rankings["lexical"],
        "walk": journey.walked.passages,
        "chain": _by(pool, columns["bridge_cosine"]),
    }
    places = {name: {s.id: (rank, s.score) for rank, s in enumerate(r, 1)} for name, r in found.items()}
    return ordered({id_: _placements(id_, i, places, shares) for i, id_ in enumerate(pool.ids)})


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


def _lifts(columns: Mapping[str, Numbers], weights: Mapping[str, float]) -> dict[str, Numbers]:
    """How far each search lifts the log-odds of each candidate over those of the least of them."""
    lifts: dict[str, Numbers] = defaultdict(lambda: np.zeros(len(columns["cosine"])))
    for name, search in FEATURES.items():
        effect = weights[name] * columns[name]
        lifts[search] = lifts[search] + effect - effect.min()
    return lifts


def _by(pool: Pool, scores: Numbers) -> Ranking:
    """Candidates that have a score, best first."""
    scored = [Scored(id_, score) for id_, score in zip(pool.ids, scores.tolist(), strict=True) if score]
    return tuple(sorted(scored, key=lambda s: (-s.score, s.id)))


def _share_of_best(ranking: Sequence[Scored]) -> Ranking:
    best = max((s.score for s in ranking), default=0.0) or 1.0
    return tuple(Scored(s.id, s.score / best) for s in ranking)


def _paths(
    asked: Asked, journey: Journey, leading: Mapping[str, Bridge], recipe: Recipe
) -> dict[str, FactPath]:
    """To each passage the path of its best bridge, or of the most active entity that it mentions."""
    known = _known(asked, journey.near, recipe)
    active = journey.walked.entities
    foremost: dict[str, Mention] = {}
    for mention in journey.near.mentions:
        best = foremost.get(mention.passage_id)
        if mention.entity_id in known and (best is None or _pull(mention, active) > _pull(best, active)):
            foremost[mention.passage_id] = mention
    paths = {passage: known[mention.entity_id] for passage, mention in foremost.items()}
    return paths | {passage: _over(bridge, known) for passage, bridge in leading.items()}


def _known(asked: Asked, near: Neighbourhood, recipe: Recipe) -> dict[str, FactPath]:
    """Paths to entities: from what the question names, else from where the walk began."""
    facts, hops = near.facts.values(), recipe.walk.max_hops + 1
    names = {f.object_id: f.object for f in facts} | {f.subject_id: f.subject for f in facts}
    begun = {id_: names[id_] for id_ in near.seeds if id_ in names}
    lent = paths_from(begun, facts, near.fact_cosines, hops=hops)
    return lent | paths_from(asked.starts, facts, near.fact_cosines, hops=hops)


def _pull(mention: Mention, active: Mapping[str, float]) -> float:
    return active[mention.entity_id] * (4.0 if mention.is_own else 1.0)


def _over(bridge: Bridge, known: Mapping[str, FactPath]) -> FactPath:
    """The path over a bridge, unless its end is where the question starts anyway."""
    at_once = known.get(bridge.entity_id)
    if at_once is not None and not at_once.steps:
        return at_once
    others = [end for end in bridge.fact.ends if end != bridge.entity_id]
    before = known.get(others[0]) if others else None
    if before is not None and bridge.fact.id in {f.id for f in before.facts}:
        before = None
    return followed(before, bridge.fact, bridge.entity_id)


def _told(asked: Asked, near: Neighbourhood) -> tuple[Fact, ...]:
    """Facts of what the question names, those that bear on it most first."""
    about = [f for f in near.facts.values() if not asked.starts.keys().isdisjoint(f.ends)]
    return tuple(sorted(about, key=lambda f: (-near.fact_cosines[f.id], f.id)))
