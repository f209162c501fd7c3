"""Search passages by vector and by keywords, and rank the candidates of both.

For the anchored fusion, the score of each candidate in the search that does not list it is read first. If this read
fails, the last score of the list is used instead (promise 9), and the result reports the failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from waylore.config import HybridConfig
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate, fuse, fuse_anchored
from waylore.retrieval.scale import DEFAULT_UNIT
from waylore.retrieval.trace import Trace
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_nothing, read_together
from waylore.types.search import Query, Ranking


def search_vectors(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Return passages by cosine, best first. Without a vector of the question the ranking is empty."""
    if query.vector is None:
        return ()
    return (yield from read(Store.dense, query.vector, top_k=top_k, where=query.where))


def search_keywords(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Return passages by BM25, best first."""
    return read(Store.lexical, query.text, top_k=top_k, where=query.where)


def cut_lists(rankings: Mapping[str, Ranking], recipe: Recipe) -> dict[str, Ranking]:
    """Return the part of the rankings that does not depend on the number of hits, if the fusion is anchored."""
    first = recipe.hybrid.candidates if recipe.hybrid.fusion == "anchored" else None
    return {search: ranking[:first] for search, ranking in rankings.items()}


def rank_lists(rankings: Mapping[str, Ranking], recipe: Recipe) -> tuple[FusedCandidate, ...]:
    """Return the candidates in the order that the lists alone give, by scaled scores or reciprocal ranks.

    With the anchored fusion only graph searches start from this order, so without them it is empty.
    """
    if recipe.hybrid.fusion == "anchored" and not recipe.graph:
        return ()
    return fuse(rankings, _weigh_searches(rankings, recipe.hybrid))


def rank_hybrid(
    query: Query,
    rankings: Mapping[str, Ranking],
    as_listed: tuple[FusedCandidate, ...],
    recipe: Recipe,
    trace: Trace,
) -> Reads[tuple[FusedCandidate, ...]]:
    """Return the candidates in the order of the recipe's fusion, and read the scores that it needs.

    `as_listed` is the result of `rank_lists`, which is the order of all fusions but the anchored one.
    """
    if recipe.hybrid.fusion != "anchored":
        return as_listed
    listed, worded = rankings["vector"], rankings["keyword"]
    is_complete = len(listed) < recipe.hybrid.count_candidates(recipe.top_k)  # the others have no vector
    far = [] if is_complete else _list_others(worded, listed)
    wordless = _list_others(listed, worded)  # the list of words may leave out passages that share a common word only
    cosines = read_nothing() if query.vector is None else read(Store.cosines, query.vector, far, where=query.where)
    scores = read(Store.word_scores, query.text, wordless, where=query.where)
    near, words = yield from read_together(
        _read_scores(listed, far, cosines, trace), _read_scores(worded, wordless, scores, trace)
    )
    config = _weigh_searches(rankings, recipe.hybrid)
    unit = query.scale.unit if query.scale else DEFAULT_UNIT
    return fuse_anchored(rankings, {"vector": near, "keyword": words}, config, unit=unit)


def _weigh_searches(rankings: Mapping[str, Ranking], config: HybridConfig) -> HybridConfig:
    """Return the configuration. If only keywords were searched, they make up the whole score."""
    return config if rankings["vector"] else replace(config, text_weight=1.0)


def _list_others(ranking: Ranking, other: Ranking) -> list[str]:
    """Return the ids of a ranking that the other ranking does not list; none if that one is empty."""
    known = {scored.id for scored in other}
    return [scored.id for scored in ranking if scored.id not in known] if known else []


def _read_scores(
    listed: Ranking, missing: Sequence[str], stage: Reads[Mapping[str, float] | None], trace: Trace
) -> Reads[Mapping[str, float]]:
    """Run a stage that reads missing scores. If it fails, return the last score of the list for each."""
    if not missing:
        return {}
    found = yield from trace.run_stage("scores", stage, default=None)
    return dict.fromkeys(missing, listed[-1].score) if found is None else found
