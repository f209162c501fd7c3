"""Merges rankings into one, keeping for every candidate what each search gave it.

A candidate that only one search found keeps that search's share: nothing is dropped for being found by
words alone, and nothing that hybrid search returned is dropped for the graph (promise 1). Pure arithmetic: it
knows neither store nor models.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.config import Hybrid, Merge
from waylore.types.search import Placement, Ranking


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate with its score and where each search placed it."""

    id: str
    score: float
    placements: tuple[Placement, ...]


def fuse(rankings: Mapping[str, Ranking], config: Hybrid, *, graph_weight: float = 1.0) -> tuple[Fused, ...]:
    """S1, S15: one ranking of all candidates, best first, ties broken by identity."""
    weights = {"dense": config.vector_weight, "lexical": config.text_weight}
    placed: dict[str, list[Placement]] = defaultdict(list)
    for search, ranking in rankings.items():
        shares = _by_score(search, ranking) if config.fusion == "weighted" else _by_rank(ranking, config.rrf_k)
        for rank, (scored, share) in enumerate(zip(ranking, shares, strict=True), start=1):
            weighted = weights.get(search, graph_weight) * share
            placed[scored.id].append(Placement(search, rank, scored.score, weighted))
    return ordered(placed)


def weighed(hybrid: Sequence[Fused], graph: Ranking, config: Merge) -> tuple[Fused, ...]:
    """S5: so much of the hybrid score and so much of the graph's."""
    placed = {f.id: [replace(p, share=config.hybrid_weight * p.share) for p in f.placements] for f in hybrid}
    for rank, scored in enumerate(graph, start=1):
        share = config.graph_weight * scored.score
        placed.setdefault(scored.id, []).append(Placement("graph", rank, scored.score, share))
    return ordered(placed)


def additive(
    hybrid: Sequence[Fused],
    candidates: Sequence[Fused],
    reached: Collection[str],
    *,
    top_k: int,
    added: int,
) -> tuple[Fused, ...]:
    """The hybrid top K, all of it, and at most `added` more that the graph `reached`, in one order."""
    kept = {f.id for f in hybrid[:top_k]}
    fresh = [f.id for f in candidates if f.id in reached and f.id not in kept]
    kept.update(fresh[:added])
    return tuple(f for f in candidates if f.id in kept)


def ordered(placed: Mapping[str, Sequence[Placement]]) -> tuple[Fused, ...]:
    """Candidates by the sum of their shares, rounded so that a tie is one on every engine."""
    fused = [Fused(id_, round(sum(p.share for p in ps), 9), tuple(ps)) for id_, ps in placed.items()]
    return tuple(sorted(fused, key=lambda f: (-f.score, f.id)))


def _by_score(search: str, ranking: Ranking) -> list[float]:
    """Scores scaled to 0..1: BM25 from its own zero, so that a rare word's last hit keeps its share."""
    scores = [scored.score for scored in ranking]
    low, high = 0.0 if search == "lexical" else min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _by_rank(ranking: Ranking, k: int) -> list[float]:
    """S15: 1 / (k + rank)."""
    return [1.0 / (k + rank) for rank in range(1, len(ranking) + 1)]
