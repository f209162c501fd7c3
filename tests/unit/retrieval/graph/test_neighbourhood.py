"""The score of a neighbour follows the specification (S4), number for number."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.retrieval.graph.neighbourhood import score_passage


@pytest.mark.parametrize(
    ("weight", "hops", "mentions", "expected"),
    [
        (10.0, 1, 0, 0.7),
        (10.0, 1, 31, 1.0),
        (10.0, 1, 10**6, 1.0),
        (10.0, 1, 1, 0.76),
        (10.0, 2, 31, 0.5),
        (10.0, 3, 31, 0.25),
        (5.0, 1, 31, 0.5),
        (8.0, 2, 3, 0.8 * 0.5 * (0.7 + 0.3 * 2 / 5)),
    ],
)
def test_score_follows_specification(weight: float, hops: int, mentions: int, expected: float) -> None:
    assert score_passage(weight=weight, hops=hops, mentions=mentions) == pytest.approx(expected)


@given(st.floats(1, 10), st.integers(1, 3), st.integers(0, 10_000))
def test_score_equals_formula(weight: float, hops: int, mentions: int) -> None:
    expected = weight / 10 * (1 / 2 ** (hops - 1)) * (0.7 + 0.3 * min(log2(mentions + 1) / 5, 1))
    assert score_passage(weight=weight, hops=hops, mentions=mentions) == pytest.approx(expected)
    assert 0.0 < expected <= 1.0
