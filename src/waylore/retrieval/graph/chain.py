"""Search by chain: walk the graph, then rank the reached passages along the facts that led to them.

A passage two hops away rarely resembles the question, so plain search misses it. It does resemble the question
plus the fact that leads there. So the candidates of the walk and of hybrid search are ranked by a logistic
model over a few features (`features.py`), applied twice. `waylore.evaluation.fit` fits its weights on training
questions. No model is called: every vector was stored. Without vectors, the weighted sum of S5 is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from types import MappingProxyType

import numpy as np

from waylore.config import Weights
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate, combine_weighted, number_ranks, rank_by_score, scale_all, share_out
from waylore.retrieval.graph.coverage import find_coverage
from waylore.retrieval.graph.features import (
    SECOND_FEATURES,
    Bridges,
    Columns,
    Places,
    Pool,
    blend_weights,
    compute_features,
    compute_long_share,
    compute_second_features,
    find_bridges,
)
from waylore.retrieval.graph.linking import find_same_entities, load_merged_entities, weigh_seeds
from waylore.retrieval.graph.routes import Crossing, find_paths, find_walk_paths
from waylore.retrieval.graph.state import GraphQuery, GraphResult, Loaded
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
from waylore.types.knowledge import Fact, Passage
from waylore.types.search import Placement, Query, Ranking, Scored, TermCounts, make_ranking


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
class CandidateRows:
    """Candidates with their facts and mentions, and all passages that were read, each with its document."""

    passages: tuple[Passage, ...]
    facts: FactColumns
    mentions: MentionColumns
    loaded: Loaded


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """Candidates with their features, and the weights by which they are judged.

    `best` has the number of the best bridge by candidate. `searches` has the search that each feature belongs to.
    """

    pool: Pool
    bridges: Bridges
    columns: Columns
    weights: Weights
    best: Mapping[int, int]
    searches: Mapping[str, str] = field(default_factory=lambda: SECOND_FEATURES)

    @property
    def odds(self) -> Numbers:
        """The log-odds of each candidate."""
        return compute_log_odds(self.columns, self.weights)


def search_chain(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Rank the candidates of the walk and of hybrid search by the probability that they are part of the answer."""
    question, chain_walk = yield from walk_from_question(question, recipe)
    if question.query.vector is None:
        return rank_without_vectors(question, chain_walk, recipe)
    with question.trace.measure("pool"):
        pool, loaded = yield from load_candidates(question, chain_walk, recipe)
    with question.trace.measure("chain"):
        judgement = judge(pool, question.query, recipe)
    return make_result(question, chain_walk, judgement, loaded, recipe)


def rank_without_vectors(question: GraphQuery, chain_walk: ChainWalk, recipe: Recipe) -> GraphResult:
    """Rank the candidates by the weighted sum of S5."""
    ranking = _scale_to_best(chain_walk.result.passages[: recipe.chain.walked])
    combined = combine_weighted(question.hybrid, ranking, recipe.merge)
    candidates = _add_hybrid(question, combined, recipe)
    paths = find_walk_paths(question, chain_walk.neighbourhood, chain_walk.result.entities, recipe)
    facts = _select_facts(question, chain_walk.neighbourhood, recipe)
    return GraphResult(question.links, candidates, question.hybrid, paths, facts)


def judge(pool: Pool, query: Query, recipe: Recipe) -> Judgement:
    """Judge the candidates twice, the second time together with those at the other ends of their bridges."""
    bridges = find_bridges(pool, common=recipe.chain.common)
    columns, best = compute_features(pool, query, bridges)
    first, second = blend_weights(recipe.chain, compute_long_share(pool))
    columns = compute_second_features(columns, compute_log_odds(columns, first), bridges, pool.coverage)
    return Judgement(pool, bridges, columns, second, best)


def make_result(
    question: GraphQuery,
    chain_walk: ChainWalk,
    judgement: Judgement,
    loaded: Loaded,
    recipe: Recipe,
    rewritten: Mapping[str, Placement] = MappingProxyType({}),
) -> GraphResult:
    """Return the judged candidates with their paths. `rewritten` has the placements of rewrites, by candidate."""
    with question.trace.measure("rank"):
        judged = _rank_candidates(question, chain_walk, judgement, rewritten)
        candidates = _add_hybrid(question, judged, recipe)
    with question.trace.measure("paths"):
        pool, bridges = judgement.pool, judgement.bridges
        over = {
            pool.ids[place]: Crossing(pool.facts, int(bridges.fact[number]), int(bridges.end[number]))
            for place, number in judgement.best.items()
        }
        paths = find_paths(question, chain_walk.neighbourhood, chain_walk.result.entities, pool, over, recipe)
    facts = _select_facts(question, chain_walk.neighbourhood, recipe)
    return GraphResult(question.links, candidates, question.hybrid, paths, facts, loaded)


def compute_log_odds(columns: Columns, weights: Weights) -> Numbers:
    """Return the log-odds of a logistic model: the sum of each feature times its weight."""
    bias = np.full((1, len(next(iter(columns.values())))), dict(weights)["bias"])
    odds: Numbers = np.add.reduce(
        np.concatenate([bias, weigh(columns, weights)]), axis=0
    )  # in the order of the weights
    return odds


def weigh(columns: Columns, weights: Weights) -> Numbers:
    """Return a row for each feature: its weight times its values."""
    named = [(name, weight) for name, weight in weights if name != "bias"]
    table = np.array([columns[name] for name, _ in named], np.float64).reshape(len(named), -1)
    rows: Numbers = table * np.array([weight for _, weight in named])[:, None]
    return rows


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


def load_candidates(question: GraphQuery, chain_walk: ChainWalk, recipe: Recipe) -> Reads[tuple[Pool, Loaded]]:
    """Load the best candidates of the walk and of hybrid search with their facts and mentions.

    Those of hybrid search are the best by the lists alone. Its best third, which stays in the answer, is loaded too.
    """
    config, local = recipe.chain, chain_walk.local
    walked = [s.id for s in chain_walk.result.passages[: config.walked]]
    listed = [f.id for f in chain_walk.listed[: config.hybrid]]
    wanted = list(dict.fromkeys([*walked, *listed]))
    others = [f.id for f in question.hybrid[: recipe.top_k // KEPT_SHARE] if f.id not in wanted]
    rows, counted = yield from read_together(
        read_candidates(question, wanted, recipe, others=others, known=local),
        read(Store.count_terms, question.query.text, where=question.query.where),
    )
    return build_pool(question, chain_walk, rows, counted), rows.loaded


def read_candidates(
    question: GraphQuery,
    wanted: Sequence[str],
    recipe: Recipe,
    *,
    others: Sequence[str] = (),
    known: LocalFacts | None = None,
) -> Reads[CandidateRows]:
    """Read candidates with their facts and mentions, and other passages alone. `known` has those that were read."""
    config, where = recipe.chain, question.query.where
    new = [id_ for id_ in wanted if known is None or id_ not in known.passages]
    passages, sources, stated, mentioned = yield from read_together(
        read(Store.passages, [*wanted, *others], where=where, vectors=True),
        read(Store.sources, [*wanted, *others], where=where),
        read_passage_facts(question.query, new, recipe.walk, per_passage=config.facts_per_passage),
        read(Store.entities_of_passages, new, per_passage=config.entities_per_passage, where=where),
    )
    return CandidateRows(
        tuple(passages[id_] for id_ in wanted if id_ in passages),
        join_facts([known.stated, stated]) if known else stated,
        join_mentions([known.mentioned, mentioned]) if known else mentioned,
        {id_: (passage, sources[id_]) for id_, passage in passages.items() if id_ in sources},
    )


def build_pool(question: GraphQuery, chain_walk: ChainWalk, rows: CandidateRows, counted: TermCounts) -> Pool:
    """Put the candidates into columns. Candidates without a vector are left out."""
    vectors = {p.id: p.vector for p in rows.passages if p.vector is not None}
    passages = [p for p in rows.passages if p.id in vectors]
    activation = {s.id: s.score for s in chain_walk.result.passages}
    words = {s.id: s.score for s in _scale_to_best(question.rankings["keyword"])}
    stated, stating = _place_rows(rows.facts.of, tuple(vectors))
    mentioned, mentioning = _place_rows(rows.mentions.of, tuple(vectors))
    facts = rows.facts.take(stated)
    return Pool(
        ids=tuple(vectors),
        vectors=np.stack(list(vectors.values())),
        keyword=np.array([words.get(id_, 0.0) for id_ in vectors]),
        activation=np.array([activation.get(id_, 0.0) for id_ in vectors]),
        facts=facts,
        stating=stating,
        mentions=rows.mentions.take(mentioned),
        mentioning=mentioning,
        named=frozenset(question.starts),
        documents=tuple(p.document_id for p in passages),
        coverage=find_coverage(counted, passages, facts),
    )


def _place_rows(of: Sequence[str], ids: Sequence[str]) -> tuple[Places, Places]:
    """Return the rows that belong to one of the ids, in the order of these, and the place of the id of each."""
    place_of = dict(zip(ids, range(len(ids)), strict=True))
    places = np.array([*map(place_of.get, of, repeat(-1))], np.int64)
    rows = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
    return rows, places[rows]


def _rank_candidates(
    question: GraphQuery, chain_walk: ChainWalk, judgement: Judgement, rewritten: Mapping[str, Placement]
) -> tuple[FusedCandidate, ...]:
    """Rank candidates by probability and give each search its share of it."""
    pool = judgement.pool
    probability = 1.0 / (1.0 + np.exp(-judgement.odds))
    lifts = _compute_lifts(judgement)
    total = sum(lifts.values())
    rankings = {
        "vector": question.rankings["vector"],
        "keyword": question.rankings["keyword"],
        "walk": chain_walk.result.passages,
        "chain": _rank_by(pool, judgement.columns["bridge_cosine"]),
    }
    ranks = number_ranks(rankings)
    found = {search: ranks.get(search, rewritten) for search in lifts}
    shares = {search: probability * lift / total for search, lift in lifts.items()}
    merits = share_out(pool.ids, found, shares)

    def place(id_: str) -> list[Placement]:
        number = place_of[id_]
        return [
            rewritten[id_]._replace(share=of[number])
            if search not in ranks
            else Placement(search, ranks[search][id_], rankings[search][ranks[search][id_] - 1].score, of[number])
            for search, of in merits.items()
            if id_ in found[search]
        ]

    place_of = dict(zip(pool.ids, range(len(pool.ids)), strict=True))
    scores = [round(sum(row), 9) for row in zip(*merits.values(), strict=True)]
    return rank_by_score(pool.ids, scores, place)


def _add_hybrid(question: GraphQuery, ranked: Sequence[FusedCandidate], recipe: Recipe) -> tuple[FusedCandidate, ...]:
    """Drop candidates below the minimum score, and add those of hybrid search below the others in their own order."""
    kept = [candidate for candidate in ranked if candidate.score >= recipe.chain.min_graph_score]
    known, dropped = {each.id for each in kept}, {each.id: each for each in ranked[len(kept) :]}
    lowest = min((candidate.score for candidate in kept), default=1.0)
    rest = [_add_places(each, dropped.get(each.id)) for each in question.hybrid if each.id not in known]
    return (*kept, *scale_all(rest, lowest))


def _add_places(candidate: FusedCandidate, dropped: FusedCandidate | None) -> FusedCandidate:
    """Add the ranks of a dropped candidate in the other searches, without a share of the score."""
    if dropped is None:
        return candidate
    known = {placement.search for placement in candidate.placements}
    others = [each._replace(share=0.0) for each in dropped.placements if each.search not in known]
    return candidate._replace(placements=(*candidate.placements, *others))


def _compute_lifts(judgement: Judgement) -> dict[str, Numbers]:
    """Return how far each search lifts the log-odds of each candidate above the lowest of them.

    If nothing lifts a candidate, for example because it is the only one, all searches get equal shares.
    """
    searches = judgement.searches
    effects = weigh(judgement.columns, judgement.weights)
    lowest = effects.min(axis=1)
    places: dict[str, list[int]] = {search: [] for search in searches.values()}
    for place, name in enumerate(name for name, _ in judgement.weights if name != "bias"):
        places[searches[name]].append(place)
    lifts = {}
    for search, own in places.items():
        rows = np.full((1 + 2 * len(own), effects.shape[1]), 1e-6)
        rows[1::2], rows[2::2] = effects[own], -lowest[own, None]
        lifts[search] = np.add.reduce(rows, axis=0)  # one after the other
    return lifts


def _rank_by(pool: Pool, scores: Numbers) -> Ranking:
    """Rank the candidates that have a score, best first."""
    found = sorted([(-score, id_) for id_, score in zip(pool.ids, scores.tolist(), strict=True) if score])
    return make_ranking([id_ for _, id_ in found], [-score for score, _ in found])


def _scale_to_best(ranking: Sequence[Scored]) -> Ranking:
    best = max((s.score for s in ranking), default=0.0) or 1.0
    return make_ranking([s.id for s in ranking], [s.score / best for s in ranking])


def _select_facts(question: GraphQuery, neighbourhood: Neighbourhood, recipe: Recipe) -> tuple[Fact, ...]:
    """Return the facts of the entities that the question names, the most similar to it first."""
    facts, cosines = neighbourhood.facts, neighbourhood.fact_cosines.tolist()
    ends = zip(facts.subjects, facts.objects, facts.is_typed.tolist(), strict=True)
    starts = question.starts
    named = [place for place, (one, other, typed) in enumerate(ends) if typed and (one in starts or other in starts)]
    best = sorted(named, key=lambda place: (-cosines[place], facts.ids[place]))
    return tuple(facts.make(place) for place in best[: recipe.merge.max_facts])
