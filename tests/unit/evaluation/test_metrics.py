"""Metrics have the values that were computed by hand."""

import numpy as np
import pytest

from waylore.evaluation.metrics import (
    compute_difference,
    compute_interval,
    compute_recall,
    compute_reciprocal_rank,
)


@pytest.mark.parametrize(("k", "expected"), [(1, 0.0), (2, 0.5), (3, 0.5), (9, 1.0)])
def test_recall_is_share_of_gold(k: int, expected: float) -> None:
    assert compute_recall(["x", "a", "y", "b"], frozenset("ab"), k) == expected


def test_reciprocal_rank_uses_first_gold() -> None:
    assert compute_reciprocal_rank(["x", "a", "b"], frozenset("ab")) == 0.5
    assert compute_reciprocal_rank(["x"], frozenset("ab")) == 0.0


def test_interval_contains_mean_and_narrows() -> None:
    few, many = (compute_interval(np.array([0.0, 1.0] * n)) for n in (10, 1_000))
    assert few.low < 0.5 < few.high
    assert few.mean == many.mean == 0.5
    assert many.high - many.low < few.high - few.low


def test_difference_pairs_questions() -> None:
    random = np.random.default_rng(1)
    hard = random.random(300)
    apart = compute_difference(hard + 0.1, hard)
    assert apart.low == pytest.approx(0.1)
    assert compute_difference(hard, hard).high == 0.0
