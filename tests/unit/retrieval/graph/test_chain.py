"""The two judgements of a chain are logistic models, and the package ships a weight for every feature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.recipes import CHAIN
from waylore.retrieval.graph.chain import compute_log_odds
from waylore.retrieval.graph.features import COVERAGE_FEATURES, FIRST_FEATURES, SECOND_FEATURES


def test_weights_match_features() -> None:
    assert dict(CHAIN.chain.first).keys() == {"bias", *FIRST_FEATURES}
    assert dict(CHAIN.chain.second).keys() == {"bias", *SECOND_FEATURES}
    assert dict(CHAIN.chain.long_first).keys() == {"bias", *(FIRST_FEATURES.keys() - COVERAGE_FEATURES)}
    assert dict(CHAIN.chain.long_second).keys() == {"bias", *(SECOND_FEATURES.keys() - COVERAGE_FEATURES)}
    assert SECOND_FEATURES.keys() > COVERAGE_FEATURES


def test_features_belong_to_known_searches() -> None:
    assert set(SECOND_FEATURES.values()) == {"vector", "keyword", "walk", "chain"}
    assert SECOND_FEATURES.items() >= FIRST_FEATURES.items()


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_log_odds_sum_bias_and_weighted_features(weights: list[float], values: list[float]) -> None:
    bias, one, other = weights
    columns = {"cosine": np.array(values[:3]), "keyword": np.array(values[3:])}
    odds = compute_log_odds(columns, (("cosine", one), ("bias", bias), ("keyword", other)))
    expected = [bias + one * a + other * b for a, b in zip(values[:3], values[3:], strict=True)]
    assert odds.tolist() == pytest.approx(expected)
    assert columns["cosine"].tolist() == values[:3]
