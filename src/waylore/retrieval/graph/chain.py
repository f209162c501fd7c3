"""Search by chain: walk the graph, then rank the reached passages along the facts that led to them.

A passage two hops away rarely resembles the question, so plain search misses it. It does resemble the question
plus the fact that leads there. So the candidates of the walk and of hybrid search are ranked by a logistic
model over a few features (`features.py`), applied twice. `waylore.evaluation.fit` fits its weights on training
questions. No model is called: every vector was stored. Without vectors, the weighted sum of S5 is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from waylore.config import Weights
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate, combine_weighted, scale, sort_by_score
from waylore.retrieval.graph.coverage import find_coverage
from waylore.retrieval.graph.features import (
    SECOND_FEATURES,
    Columns,
    Places,
    Pool,
    blend_weights,
    compute_features,
    compute_second_features,
    find_bridges,
)
from waylore.retrieval.graph.linking import find_same_entities, load_merged_entities, weigh_seeds
from waylore.retrieval.graph.routes import Crossing, find_paths, find_walk_paths
from waylore.retrieval.graph.state import GraphQuery, GraphResult
from waylore.retrieval.graph.walk import (
    Neighbourhood,
    WalkResult,
    gather,
    read_entity_facts,
    read_passage_facts,
    walk,
)
from waylore.retrieval.hybrid import rank_hybrid
from waylore.retrieval.order import KEPT_SHARE
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.columns import FactColumns, MentionColumns, Numbers, join_facts, join_mentions, unique_facts
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.search import Placement, Ranking, Scored, TermCounts


@dataclass(frozen=True, slots=True)
class LocalFacts:
    """Facts and mentions of the best hybrid passages, and facts of the entities that the question names."""

    passages: frozenset[str]
    stated: FactColumns
    mentioned: MentionColumns
    linked: FactColumns

    @property
    def facts(self) -> FactColumns:
        """All facts, each once."""
        return unique_facts([self.stated, self.linked])


@dataclass(frozen=True, slots=True)
class ChainWalk:
    """A finished walk: the rows it read and the passages it reached.

    It started at the best of `listed`, the hybrid candidates in the order of the lists, to which the weights are
    fitted.
    """

    listed: tuple[FusedCandidate, ...]
    local: LocalFacts
    neighbourhood: Neighbourhood
    result: WalkResult


def search_chain(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Rank the candidates of the walk and of hybrid search by the probability that they are part of the answer."""
    question, chain_walk = yield from walk_from_question(question, recipe)
    if question.query.vector is None:
        ranking = _scale_to_best(chain_walk.result.passages[: recipe.chain.walked])
        candidates = _drop_unlikely(question, combine_weighted(question.hybrid, ranking, recipe.merge), recipe)
        paths = find_walk_paths(question, chain_walk.neighbourhood, chain_walk.result.entities, recipe)
        facts = _select_facts(question, chain_walk.neighbourhood, recipe)
        return GraphResult(question.links, candidates, question.hybrid, paths, facts)
    with question.trace.measure("pool"):
        pool, loaded = yield from load_candidates(question, chain_walk, recipe)
    with question.trace.measure("chain"):
        bridges = find_bridges(pool, common=recipe.chain.common)
        columns, best = compute_features(pool, question.query.vector, bridges)
        first, weights = blend_weights(recipe.chain, pool)
        columns = compute_second_features(columns, compute_log_odds(columns, first), bridges, pool.coverage)
        judged = _rank_candidates(question, chain_walk, pool, columns, weights)
        candidates = _drop_unlikely(question, _add_unjudged(question, judged), recipe)
    with question.trace.measure("paths"):
        over = {
            pool.ids[place]: Crossing(pool.facts, int(bridges.fact[number]), int(bridges.end[number]))
            for place, number in best.items()
        }
        paths = find_paths(question, chain_walk.neighbourhood, chain_walk.result.entities, pool, over, recipe)
    facts = _select_facts(question, chain_walk.neighbourhood, recipe)
    return GraphResult(question.links, candidates, question.hybrid, paths, facts, loaded)


def compute_log_odds(columns: Columns, weights: Weights) -> Numbers:
    """Return the log-odds of a logistic model: the sum of each feature times its weight."""
    odds = np.full(len(columns["cosine"]), dict(weights)["bias"])
    for name, weight in weights:
        odds += weight * columns[name] if name != "bias" else 0.0
    return odds


def walk_from_question(question: GraphQuery, recipe: Recipe) -> Reads[tuple[GraphQuery, ChainWalk]]:
    """Walk from the entities that the question names, under any name, and from the facts most similar to it."""
    listed = question.hybrid  # in the order of the lists until the scores are read
    hybrid = [Scored(f.id, f.score) for f in listed[: recipe.linking.hybrid_passages]]
    with question.trace.measure("local facts"):
        question, local = yield from _read_local_facts(question, [scored.id for scored in hybrid], recipe)
        facts = local.facts
        start = weigh_seeds(question.query, question.links, facts, recipe.linking)
    with question.trace.measure("gather"):
        neighbourhood = yield from gather(
            question.query,
            start,
            facts,
            hybrid,
            local.mentioned,
            config=recipe.walk,
            resolution=recipe.resolution,
            read_before=question.starts,
        )
    with question.trace.measure("walk"):
        result = walk(neighbourhood, hybrid, config=recipe.walk, trust=recipe.trust, now=question.now)
    return question, ChainWalk(listed, local, neighbourhood, result)


def _read_local_facts(
    question: GraphQuery, best: Sequence[str], recipe: Recipe
) -> Reads[tuple[GraphQuery, LocalFacts]]:
    """Read facts and mentions of the best hybrid passages, and facts of the linked entities under any name.

    The scores that the order of hybrid search needs are read in the same trip.
    """
    query, walk = question.query, recipe.walk
    own = replace(walk, facts_per_entity=recipe.linking.facts_per_entity)
    hybrid, same, stated, mentioned, linked = yield from read_together(
        rank_hybrid(query, question.all_rankings, question.hybrid, recipe, question.trace),
        find_same_entities(query, question.links, recipe.resolution),
        read_passage_facts(query, best, walk, per_passage=recipe.linking.facts_per_passage),
        read(Store.entities_of_passages, best, per_passage=walk.entities_per_passage, where=query.where),
        read_entity_facts(query, [link.entity.id for link in question.links], own),
    )
    links = same.links
    if same.same_as:
        others, other_facts = yield from read_together(
            load_merged_entities(query, same), read_entity_facts(query, list(same.same_as), own)
        )
        links, linked = (*links, *others), join_facts([linked, other_facts])
    question = replace(question, links=links, hybrid=hybrid)
    linked = linked.take([place for place, id_ in enumerate(linked.of) if id_ in question.starts])
    return question, LocalFacts(frozenset(best), stated, mentioned, linked)


def load_candidates(
    question: GraphQuery, chain_walk: ChainWalk, recipe: Recipe
) -> Reads[tuple[Pool, dict[str, tuple[Passage, Document]]]]:
    """Load the best candidates of the walk and of hybrid search with their facts and mentions.

    Those of hybrid search are the best by the lists alone. Its best third, which stays in the answer, is loaded too.
    """
    config, query, local = recipe.chain, question.query, chain_walk.local
    walked = [s.id for s in chain_walk.result.passages[: config.walked]]
    listed = [f.id for f in chain_walk.listed[: config.hybrid]]
    wanted = list(dict.fromkeys([*walked, *listed]))
    shown = list(dict.fromkeys([*wanted, *(f.id for f in question.hybrid[: recipe.top_k // KEPT_SHARE])]))
    others = [id_ for id_ in wanted if id_ not in local.passages]
    passages, sources, stated, mentioned, counted = yield from read_together(
        read(Store.passages, shown, where=query.where, vectors=True),
        read(Store.sources, shown, where=query.where),
        read_passage_facts(query, others, recipe.walk, per_passage=config.facts_per_passage),
        read(Store.entities_of_passages, others, per_passage=config.entities_per_passage, where=query.where),
        read(Store.count_terms, query.text, where=query.where),
    )
    loaded = {id_: (passage, sources[id_]) for id_, passage in passages.items() if id_ in sources}
    facts, mentions = join_facts([local.stated, stated]), join_mentions([local.mentioned, mentioned])
    candidates = [passages[id_] for id_ in wanted if id_ in passages]
    return _build_pool(question, chain_walk, candidates, facts, mentions, counted), loaded


def _build_pool(
    question: GraphQuery,
    chain_walk: ChainWalk,
    passages: Sequence[Passage],
    facts: FactColumns,
    mentions: MentionColumns,
    counted: TermCounts,
) -> Pool:
    """Put the candidates into columns. Candidates without a vector are left out."""
    vectors = {p.id: p.vector for p in passages if p.vector is not None}
    passages = [p for p in passages if p.id in vectors]
    activation = {s.id: s.score for s in chain_walk.result.passages}
    words = {s.id: s.score for s in _scale_to_best(question.rankings["keyword"])}
    stated, stating = _place_rows(facts.of, tuple(vectors))
    mentioned, mentioning = _place_rows(mentions.of, tuple(vectors))
    facts = facts.take(stated)
    return Pool(
        ids=tuple(vectors),
        vectors=np.stack(list(vectors.values())),
        keyword=np.array([words.get(id_, 0.0) for id_ in vectors]),
        activation=np.array([activation.get(id_, 0.0) for id_ in vectors]),
        facts=facts,
        stating=stating,
        mentions=mentions.take(mentioned),
        mentioning=mentioning,
        named=frozenset(question.starts),
        pages=len({p.document_id for p in passages}),
        coverage=find_coverage(counted, passages, facts),
    )


def _place_rows(of: Sequence[str], ids: Sequence[str]) -> tuple[list[int], Places]:
    """Return the rows that belong to one of the ids, in the order of these, and the place of the id of each."""
    place_of = dict(zip(ids, range(len(ids)), strict=True))
    rows = sorted((row for row, id_ in enumerate(of) if id_ in place_of), key=lambda row: place_of[of[row]])
    return rows, np.array([place_of[of[row]] for row in rows], np.int64)


def _rank_candidates(
    question: GraphQuery, chain_walk: ChainWalk, pool: Pool, columns: Columns, weights: Weights
) -> tuple[FusedCandidate, ...]:
    """Rank candidates by probability and give each search its share of it."""
    probability = 1.0 / (1.0 + np.exp(-compute_log_odds(columns, weights)))
    lifts = _compute_lifts(columns, weights)
    total = sum(lifts.values())
    shares = {search: probability * lift / total for search, lift in lifts.items()}
    rankings = {
        "vector": question.rankings["vector"],
        "keyword": question.rankings["keyword"],
        "walk": chain_walk.result.passages,
        "chain": _rank_by(pool, columns["bridge_cosine"]),
    }
    places = {name: {s.id: (rank, s.score) for rank, s in enumerate(r, 1)} for name, r in rankings.items()}
    return sort_by_score({id_: _make_placements(id_, i, places, shares) for i, id_ in enumerate(pool.ids)})


def _drop_unlikely(
    question: GraphQuery, candidates: Sequence[FusedCandidate], recipe: Recipe
) -> tuple[FusedCandidate, ...]:
    """Drop candidates below the minimum score that only the graph would add. The hybrid top K stays."""
    own = {candidate.id for candidate in question.hybrid[: recipe.top_k]}
    return tuple(
        candidate for candidate in candidates if candidate.id in own or candidate.score >= recipe.chain.min_graph_score
    )


def _add_unjudged(question: GraphQuery, judged: Sequence[FusedCandidate]) -> tuple[FusedCandidate, ...]:
    """Add the candidates of hybrid search that were not judged, below the others in their own order."""
    known = {candidate.id for candidate in judged}
    lowest = min((candidate.score for candidate in judged), default=1.0)
    rest = [candidate for candidate in question.hybrid if candidate.id not in known]
    return (*judged, *(scale(candidate, lowest) for candidate in rest))


def _make_placements(
    id_: str,
    place: int,
    places: Mapping[str, Mapping[str, tuple[int, float]]],
    shares: Mapping[str, Numbers],
) -> list[Placement]:
    """Return the placements of a candidate.

    The first search that found it also gets the shares of the searches that did not.
    """
    finders = [search for search in shares if id_ in places[search]]
    merits = dict.fromkeys(finders, 0.0)
    for search, share in shares.items():
        merits[search if search in merits else finders[0]] += float(share[place])
    return [Placement(search, *places[search][id_], round(share, 6)) for search, share in merits.items()]


def _compute_lifts(columns: Columns, weights: Weights) -> dict[str, Numbers]:
    """Return how far each search lifts the log-odds of each candidate above the lowest of them.

    If nothing lifts a candidate, for example because it is the only one, all searches get equal shares.
    """
    lifts = {search: np.full(len(columns["cosine"]), 1e-6) for search in SECOND_FEATURES.values()}
    for name, weight in weights:
        if name != "bias":
            effect = weight * columns[name]
            lifts[SECOND_FEATURES[name]] = lifts[SECOND_FEATURES[name]] + effect - effect.min()
    return lifts


def _rank_by(pool: Pool, scores: Numbers) -> Ranking:
    """Rank the candidates that have a score, best first."""
    scored = [Scored(id_, score) for id_, score in zip(pool.ids, scores.tolist(), strict=True) if score]
    return tuple(sorted(scored, key=lambda s: (-s.score, s.id)))


def _scale_to_best(ranking: Sequence[Scored]) -> Ranking:
    best = max((s.score for s in ranking), default=0.0) or 1.0
    return tuple(Scored(s.id, s.score / best) for s in ranking)


def _select_facts(question: GraphQuery, neighbourhood: Neighbourhood, recipe: Recipe) -> tuple[Fact, ...]:
    """Return the facts of the entities that the question names, the most similar to it first."""
    facts, cosines = neighbourhood.facts, neighbourhood.fact_cosines.tolist()
    ends = zip(facts.subjects, facts.objects, facts.is_typed.tolist(), strict=True)
    starts = question.starts
    named = [place for place, (one, other, typed) in enumerate(ends) if typed and (one in starts or other in starts)]
    best = sorted(named, key=lambda place: (-cosines[place], facts.ids[place]))
    return tuple(facts.make(place) for place in best[: recipe.merge.max_facts])
