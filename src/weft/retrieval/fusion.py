"""Merges rankings into one, keeping for every candidate what each search gave it.

A candidate that only one search found keeps that search's share: nothing is dropped for being found by
words alone. Pure arithmetic: it knows neither store nor models.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from weft.config import Hybrid
from weft.types import Placement, Ranking


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate with its score and where each search placed it."""

    id: str
    score: float
    placements: tuple[Placement, ...]


def fuse(rankings: Mapping[str, Ranking], config: Hybrid) -> tuple[Fused, ...]:
    """One ranking of all candidates, best first, ties broken by identity."""
    weights = {"dense": config.vector_weight, "lexical": config.text_weight}
    placed: dict[str, list[Placement]] = defaultdict(list)
    for search, ranking in rankings.items():
        shares = _by_score(search, ranking) if config.fusion == "weighted" else _by_rank(ranking, config.rrf_k)
        for rank, (scored, share) in enumerate(zip(ranking, shares, strict=True), start=1):
            weighted = weights.get(search, 1.0) * share
            placed[scored.id].append(Placement(search, rank, scored.score, weighted))
    fused = [Fused(id_, sum(p.share for p in ps), tuple(ps)) for id_, ps in placed.items()]
    return tuple(sorted(fused, key=lambda f: (-f.score, f.id)))


def _by_score(search: str, ranking: Ranking) -> list[float]:
    """Scores scaled to 0..1: BM25 from its own zero, so that a rare word's last hit keeps its share."""
    scores = [scored.score for scored in ranking]
    low, high = 0.0 if search == "lexical" else min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _by_rank(ranking: Ranking, k: int) -> list[float]:
    """S15: 1 / (k + rank)."""
    return [1.0 / (k + rank) for rank in range(1, len(ranking) + 1)]
