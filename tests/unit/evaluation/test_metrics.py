"""Measures against values worked out by hand."""

import numpy as np
import pytest

from waylore.evaluation.metrics import difference, interval, recall, reciprocal_rank


@pytest.mark.parametrize(("k", "expected"), [(1, 0.0), (2, 0.5), (3, 0.5), (9, 1.0)])
def test_recall_is_the_share_of_gold_found(k: int, expected: float) -> None:
    assert recall(["x", "a", "y", "b"], frozenset("ab"), k) == expected


def test_reciprocal_rank_is_of_the_first_gold() -> None:
    assert reciprocal_rank(["x", "a", "b"], frozenset("ab")) == 0.5
    assert reciprocal_rank(["x"], frozenset("ab")) == 0.0


def test_an_interval_holds_its_mean_and_narrows_with_more_questions() -> None:
    few, many = (interval(np.array([0.0, 1.0] * n)) for n in (10, 1_000))
    assert few.low < 0.5 < few.high
    assert few.mean == many.mean == 0.5
    assert many.high - many.low < few.high - few.low


def test_a_difference_is_over_the_same_questions() -> None:
    random = np.random.default_rng(1)
    hard = random.random(300)
    apart = difference(hard + 0.1, hard)
    assert apart.low == pytest.approx(0.1)
    assert difference(hard, hard).high == 0.0
