"""Merge rankings into one and record the share of each search in every candidate's score.

A candidate that only one search found keeps the share of that search, and with the anchored fusion also has its score
in the other one. No candidate is dropped because only keywords found it, and no hybrid candidate is dropped for a graph
candidate (promise 1). Pure arithmetic: it reads neither the store nor a model.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from waylore.config import HybridConfig, MergeConfig
from waylore.types.columns import Numbers
from waylore.types.search import Placement, Ranking


class FusedCandidate(NamedTuple):
    """A candidate with its score and its placement in each search."""

    id: str
    score: float
    placements: tuple[Placement, ...]


def fuse(
    rankings: Mapping[str, Ranking], config: HybridConfig, *, graph_weight: float = 1.0
) -> tuple[FusedCandidate, ...]:
    """Return one ranking of all candidates by the rankings alone, best first, ties by id (S1, S15).

    Scores are scaled within each ranking; with the fusion "rrf" ranks count instead.
    """
    weights = {"vector": config.vector_weight, "keyword": config.text_weight}
    placed: dict[str, list[Placement]] = defaultdict(list)
    for search, ranking in rankings.items():
        shares = _score_ranks(ranking, config.rrf_k) if config.fusion == "rrf" else _scale_scores(search, ranking)
        for rank, (scored, share) in enumerate(zip(ranking, shares, strict=True), start=1):
            weighted = weights.get(search, graph_weight) * share
            placed[scored.id].append(Placement(search, rank, scored.score, weighted))
    return sort_by_score(placed)


def fuse_anchored(
    rankings: Mapping[str, Ranking],
    fetched: Mapping[str, Mapping[str, float]],
    config: HybridConfig,
    *,
    unit: float,
) -> tuple[FusedCandidate, ...]:
    """Return one ranking of all candidates by both scores of each, measured from the best, ties by id.

    `fetched` has the scores, by search, of candidates that a ranking does not list. The first `config.candidates` of
    each ranking form a block. It comes before the next block, so that longer rankings do not change the result. The
    best scores are taken from the first block, and a rank in a later block than that of the candidate does not count.
    """
    ranks = {search: {id_: rank for rank, (id_, _) in enumerate(ranking, 1)} for search, ranking in rankings.items()}
    blocks = _number_blocks(ranks.values(), config.candidates)
    placed: dict[str, list[Placement]] = {id_: [] for id_ in blocks}
    for search, ranking in rankings.items():
        scores = {**fetched.get(search, {}), **dict(ranking)}
        best = max((score for id_, score in scores.items() if blocks[id_] == 0), default=0.0)
        values = np.fromiter(scores.values(), np.float64, len(scores))
        shares = _measure_vectors(values, best, unit) if search == "vector" else _measure_words(values, best)
        shares *= config.vector_weight if search == "vector" else config.text_weight
        for (id_, score), share in zip(scores.items(), shares.tolist(), strict=True):
            rank = ranks[search].get(id_)
            if rank is not None and rank > (blocks[id_] + 1) * config.candidates:
                rank = None
            placed[id_].append(Placement(search, rank, score, share, "", best))
    return tuple(sorted(sort_by_score(placed), key=lambda candidate: blocks[candidate.id]))


def combine_weighted(
    hybrid: Sequence[FusedCandidate], graph: Ranking, config: MergeConfig
) -> tuple[FusedCandidate, ...]:
    """Return the weighted sum of the hybrid and the graph scores (S5)."""
    placed = {f.id: list(scale(f, config.hybrid_weight).placements) for f in hybrid}
    for rank, scored in enumerate(graph, start=1):
        share = config.graph_weight * scored.score
        placed.setdefault(scored.id, []).append(Placement("graph", rank, scored.score, share))
    return sort_by_score(placed)


def scale(candidate: FusedCandidate, factor: float) -> FusedCandidate:
    """Return a candidate whose shares are multiplied by a factor."""
    placements = tuple(
        [
            Placement(search, rank, score, factor * share, query, best)
            for search, rank, score, share, query, best, _ in candidate.placements
        ]
    )
    return FusedCandidate(candidate.id, round(sum([p.share for p in placements]), 9), placements)


def sort_by_score(placed: Mapping[str, Sequence[Placement]]) -> tuple[FusedCandidate, ...]:
    """Sort candidates by the sum of their shares, rounded so that ties are equal on every engine."""
    fused = [FusedCandidate(id_, round(sum([p.share for p in ps]), 9), tuple(ps)) for id_, ps in placed.items()]
    return tuple(sorted(fused, key=lambda f: (-f.score, f.id)))


def _number_blocks(ranks: Iterable[Mapping[str, int]], size: int) -> dict[str, int]:
    """Return the first block of `size` places in which each candidate is listed, from 0 on."""
    blocks: dict[str, int] = {}
    for id_, rank in (item for of_search in ranks for item in of_search.items()):
        block = (rank - 1) // size
        blocks[id_] = min(blocks.get(id_, block), block)
    return blocks


def _measure_vectors(scores: Numbers, best: float, unit: float) -> Numbers:
    """Return how near cosines are to the best, from 1 down to 0 at one unit below it."""
    return np.clip(1.0 - (best - scores) / unit, 0.0, 1.0)


def _measure_words(scores: Numbers, best: float) -> Numbers:
    """Return the ratio of BM25 scores to the best."""
    return np.minimum(scores / best, 1.0) if best > 0 else np.zeros(len(scores))


def _scale_scores(search: str, ranking: Ranking) -> list[float]:
    """Scale scores to 0..1. BM25 starts at zero, so that the last hit of a rare word keeps its share."""
    scores = [scored.score for scored in ranking]
    low, high = 0.0 if search == "keyword" else min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _score_ranks(ranking: Ranking, k: int) -> list[float]:
    """Return 1 / (k + rank) for each rank (S15)."""
    return [1.0 / (k + rank) for rank in range(1, len(ranking) + 1)]
