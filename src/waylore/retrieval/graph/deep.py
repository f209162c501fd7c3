"""Search deep: ask again for what the best candidates of `chain` leave open, and judge a third time.

The rewrites of a question (`rewrites.py`) are embedded in one call and search the whole collection. The candidates of
`chain` and the new ones are judged together, by the second judgement and by how near rewrites come to each. The more
candidates share a page, the less rewrites count, because they did harm there; if most do, the question is not asked
again. Without an embedder, or if its call fails, the answer is that of `chain`, and the result says so.
"""

from collections.abc import Mapping, Sequence

from waylore.config import Weights
from waylore.protocols import BatchEmbedder, Vectors, embed_queries
from waylore.recipes import Recipe
from waylore.retrieval.graph.chain import (
    ChainWalk,
    Judgement,
    build_pool,
    compute_log_odds,
    judge,
    load_candidates,
    make_result,
    rank_without_vectors,
    read_candidates,
    walk_from_question,
)
from waylore.retrieval.graph.features import (
    ODDS,
    SECOND_FEATURES,
    Pool,
    compute_long_share,
    correct_weights,
    join_pools,
)
from waylore.retrieval.graph.rewrites import (
    REWRITE_FEATURES,
    Pairs,
    Rewrite,
    choose_rewrites,
    compute_rewrite_features,
    find_pairs,
)
from waylore.retrieval.graph.state import GraphQuery, GraphResult, Loaded
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.search import Placement, Query

NO_EMBEDDER = "rewrite: there is no embedder, so the answer is that of chain"
MAX_SINGLE_CALLS = 4  # of an embedder that embeds one question at a time


def search_deep(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Rank the candidates of `chain` and of rewrites by the probability that they are part of the answer."""
    question, chain_walk = yield from walk_from_question(question, recipe)
    query = question.query
    if query.vector is None:  # the result says why
        return rank_without_vectors(question, chain_walk, recipe)
    if question.embedder is None:
        question.trace.missing.append(NO_EMBEDDER)
    with question.trace.measure("pool"):
        pool, loaded = yield from load_candidates(question, chain_walk, recipe)
    with question.trace.measure("chain"):
        judgement = judge(pool, query, recipe)
    is_asked = question.embedder is not None and compute_long_share(pool) < 1.0
    rewrites = write_rewrites(question, chain_walk, judgement, recipe) if is_asked else []
    vectors = embed_rewrites(question, rewrites)
    if vectors is None:
        return make_result(question, chain_walk, judgement, loaded, recipe)
    stage = extend_pool(question, chain_walk, pool, vectors, recipe)
    extended = yield from question.trace.run_stage("search again", stage, default=None)
    if extended is None:
        return make_result(question, chain_walk, judgement, loaded, recipe)
    pool, more = extended
    with question.trace.measure("judge again"):
        rewrites = rewrites[: len(vectors)]
        third, best = judge_again(judgement, pool, query, rewrites, vectors, recipe)
    placements = _place_rewrites(pool, third, rewrites, best)
    return make_result(question, chain_walk, third, {**loaded, **more}, recipe, placements)


def write_rewrites(question: GraphQuery, chain_walk: ChainWalk, judgement: Judgement, recipe: Recipe) -> list[Rewrite]:
    """Choose the entities of the best candidates by which the question is asked again."""
    pairs = list_pairs(question, chain_walk, judgement, recipe)
    scores = compute_log_odds(pairs.columns, recipe.deep.choice)
    return choose_rewrites(question.query.text, judgement.pool, pairs, scores, recipe.deep)


def list_pairs(question: GraphQuery, chain_walk: ChainWalk, judgement: Judgement, recipe: Recipe) -> Pairs:
    """Return the best candidates with the entities that they lead to."""
    cosines = judgement.pool.facts.compute_cosines(question.query)
    active = chain_walk.result.entities
    return find_pairs(question.query.text, judgement.pool, judgement.odds, cosines, active, recipe.deep)


def embed_rewrites(question: GraphQuery, rewrites: Sequence[Rewrite]) -> Vectors | None:
    """Return a vector for each rewrite; None if there is none, or the embedder fails."""
    embedder = question.embedder
    if embedder is None or not rewrites:
        return None
    most = len(rewrites) if isinstance(embedder, BatchEmbedder) else MAX_SINGLE_CALLS
    texts = [rewrite.text for rewrite in rewrites[:most]]
    trace = question.trace
    return trace.call_model("embed again", lambda: embed_queries(embedder, texts), default=None, stage="rewrite")


def extend_pool(
    question: GraphQuery, chain_walk: ChainWalk, pool: Pool, vectors: Vectors, recipe: Recipe
) -> Reads[tuple[Pool, Loaded]]:
    """Return the candidates with those that rewrites find in the collection, and what was read of these."""
    where = question.query.where
    rankings = yield from read(Store.dense_many, list(vectors), top_k=recipe.deep.results, where=where)
    new = dict.fromkeys(scored.id for ranking in rankings for scored in ranking if scored.id not in pool.ids)
    if not new:
        return pool, {}
    rows = yield from read_candidates(question, list(new), recipe)
    if not rows.passages:
        return pool, {}
    return join_pools(pool, build_pool(question, chain_walk, rows, pool.coverage.counted)), rows.loaded


def judge_again(
    before: Judgement, pool: Pool, query: Query, rewrites: Sequence[Rewrite], vectors: Vectors, recipe: Recipe
) -> tuple[Judgement, Sequence[int]]:
    """Judge all candidates a third time, and return the number of the best rewrite of each.

    `before` is the judgement of the candidates of `chain`; rewrites found those that the pool has beyond these.
    """
    second = before if pool is before.pool else judge(pool, query, recipe)
    odds, known = second.odds, len(before.pool.ids)
    rewritten, best = compute_rewrite_features(pool, second.columns["cosine"], odds, rewrites, vectors, known, query)
    columns = {**second.columns, ODDS: odds, **rewritten}
    weights = combine_weights(second.weights, recipe.deep.third, compute_long_share(pool))
    searches = {**SECOND_FEATURES, **REWRITE_FEATURES}
    return Judgement(pool, second.bridges, columns, weights, second.best, searches), best.tolist()


def combine_weights(second: Weights, third: Weights, long: float) -> Weights:
    """Return the weights of all features, given those of the third judgement, for which the second one is a feature.

    `long` is how far candidates count as parts of long pages, for which the second judgement stays.
    """
    correction = tuple((name, (1.0 - long) * weight + long * (name == ODDS)) for name, weight in third)
    return correct_weights(second, correction)


def _place_rewrites(
    pool: Pool, judgement: Judgement, rewrites: Sequence[Rewrite], best: Sequence[int]
) -> Mapping[str, Placement]:
    """Return the rank of each candidate by its best rewrite, with that rewrite as the query."""
    cosines = judgement.columns["rewrite_cosine"].tolist()
    order = sorted(range(len(pool.ids)), key=lambda place: (-cosines[place], pool.ids[place]))
    return {
        pool.ids[place]: Placement("rewrite", rank, round(cosines[place], 6), 0.0, rewrites[best[place]].text)
        for rank, place in enumerate(order, start=1)
    }
