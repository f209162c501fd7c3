"""Merge rankings into one and record the share of each search in every candidate's score.

A candidate that only one search found keeps the share of that search. No candidate is dropped because only
keywords found it, and no hybrid candidate is dropped for a graph candidate (promise 1). Pure arithmetic: it
reads neither the store nor a model.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.config import HybridConfig, MergeConfig
from waylore.types.search import Placement, Ranking


@dataclass(frozen=True, slots=True)
class FusedCandidate:
    """A candidate with its score and its placement in each search."""

    id: str
    score: float
    placements: tuple[Placement, ...]


def fuse(
    rankings: Mapping[str, Ranking], config: HybridConfig, *, graph_weight: float = 1.0
) -> tuple[FusedCandidate, ...]:
    """Return one ranking of all candidates, best first, with ties broken by id (S1, S15)."""
    weights = {"vector": config.vector_weight, "keyword": config.text_weight}
    placed: dict[str, list[Placement]] = defaultdict(list)
    for search, ranking in rankings.items():
        shares = _scale_scores(search, ranking) if config.fusion == "weighted" else _score_ranks(ranking, config.rrf_k)
        for rank, (scored, share) in enumerate(zip(ranking, shares, strict=True), start=1):
            weighted = weights.get(search, graph_weight) * share
            placed[scored.id].append(Placement(search, rank, scored.score, weighted))
    return sort_by_score(placed)


def combine_weighted(
    hybrid: Sequence[FusedCandidate], graph: Ranking, config: MergeConfig
) -> tuple[FusedCandidate, ...]:
    """Return the weighted sum of the hybrid and the graph scores (S5)."""
    placed = {f.id: [replace(p, share=config.hybrid_weight * p.share) for p in f.placements] for f in hybrid}
    for rank, scored in enumerate(graph, start=1):
        share = config.graph_weight * scored.score
        placed.setdefault(scored.id, []).append(Placement("graph", rank, scored.score, share))
    return sort_by_score(placed)


def add_graph_passages(
    hybrid: Sequence[FusedCandidate],
    candidates: Sequence[FusedCandidate],
    reached: Collection[str],
    *,
    top_k: int,
    max_added: int,
) -> tuple[FusedCandidate, ...]:
    """Return the hybrid top K and at most `max_added` others that the graph `reached`, in one order."""
    chosen = {candidate.id for candidate in hybrid[:top_k]}
    new = [candidate.id for candidate in candidates if candidate.id in reached and candidate.id not in chosen]
    chosen.update(new[:max_added])
    return tuple(candidate for candidate in candidates if candidate.id in chosen)


def sort_by_score(placed: Mapping[str, Sequence[Placement]]) -> tuple[FusedCandidate, ...]:
    """Sort candidates by the sum of their shares, rounded so that ties are equal on every engine."""
    fused = [FusedCandidate(id_, round(sum(p.share for p in ps), 9), tuple(ps)) for id_, ps in placed.items()]
    return tuple(sorted(fused, key=lambda f: (-f.score, f.id)))


def _scale_scores(search: str, ranking: Ranking) -> list[float]:
    """Scale scores to 0..1. BM25 starts at zero, so that the last hit of a rare word keeps its share."""
    scores = [scored.score for scored in ranking]
    low, high = 0.0 if search == "keyword" else min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _score_ranks(ranking: Ranking, k: int) -> list[float]:
    """Return 1 / (k + rank) for each rank (S15)."""
    return [1.0 / (k + rank) for rank in range(1, len(ranking) + 1)]
