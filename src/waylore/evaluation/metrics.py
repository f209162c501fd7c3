"""Measure rankings: recall, all-gold, reciprocal rank, and confidence intervals.

Recall at k is the mean over questions of |gold in the first k| / |gold|, as in HippoRAG's papers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 2_000
Scores = npt.NDArray[np.float64]


def compute_recall(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the share of the gold that is among the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def compute_reciprocal_rank(ranked: Sequence[str], gold: frozenset[str]) -> float:
    """Return one over the rank of the first gold, 0 if there is none."""
    return next((1.0 / rank for rank, id_ in enumerate(ranked, start=1) if id_ in gold), 0.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the range of 95 % of resampled means."""

    mean: float
    low: float
    high: float


def compute_interval(scores: Scores, *, seed: int = 0) -> Interval:
    """Return the bootstrap interval of a mean over questions."""
    means = _resample(scores, seed)
    return Interval(float(scores.mean()), *(float(x) for x in np.percentile(means, (2.5, 97.5))))


def compute_difference(one: Scores, other: Scores, *, seed: int = 0) -> Interval:
    """Return the interval of `one - other` over the same questions. If 0 is outside of it, the runs differ."""
    return compute_interval(one - other, seed=seed)


def _resample(scores: Scores, seed: int) -> Scores:
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(scores), (RESAMPLES, len(scores)))
    means: Scores = scores[drawn].mean(axis=1)
    return means
