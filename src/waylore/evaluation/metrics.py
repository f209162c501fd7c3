"""How well rankings answer questions: recall, all-gold, reciprocal rank, and how sure we may be of it.

Recall at k is the mean over questions of |gold in the first k| / |gold|, as HippoRAG's papers have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 2_000
Scores = npt.NDArray[np.float64]


def recall(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """The share of the gold that stands in the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: frozenset[str]) -> float:
    """One over the rank of the first gold; 0 where there is none."""
    return next((1.0 / rank for rank, id_ in enumerate(ranked, start=1) if id_ in gold), 0.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and where 95 % of resampled means lie."""

    mean: float
    low: float
    high: float


def interval(scores: Scores, *, seed: int = 0) -> Interval:
    """The bootstrap interval of a mean over questions."""
    means = _resampled(scores, seed)
    return Interval(float(scores.mean()), *(float(x) for x in np.percentile(means, (2.5, 97.5))))


def difference(one: Scores, other: Scores, *, seed: int = 0) -> Interval:
    """The interval of `one - other` over the same questions; they differ if it does not hold 0."""
    return interval(one - other, seed=seed)


def _resampled(scores: Scores, seed: int) -> Scores:
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(scores), (RESAMPLES, len(scores)))
    means: Scores = scores[drawn].mean(axis=1)
    return means
