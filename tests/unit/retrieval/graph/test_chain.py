"""The two judgements of a chain are logistic models; the package ships a weight for every feature of each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.recipes import CHAIN
from waylore.retrieval.graph.chain import log_odds
from waylore.retrieval.graph.features import FIRST, SECOND


def test_every_feature_has_a_weight_and_no_weight_is_without_a_feature() -> None:
    assert dict(CHAIN.chain.first).keys() == {"bias", *FIRST}
    assert dict(CHAIN.chain.second).keys() == {"bias", *SECOND}


def test_features_belong_to_searches_that_can_place_a_hit() -> None:
    assert set(SECOND.values()) == {"dense", "lexical", "walk", "chain"}
    assert SECOND.items() >= FIRST.items()


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_log_odds_are_the_bias_and_what_each_feature_weighs(weights: list[float], values: list[float]) -> None:
    bias, one, other = weights
    columns = {"cosine": np.array(values[:3]), "lexical": np.array(values[3:])}
    odds = log_odds(columns, (("cosine", one), ("bias", bias), ("lexical", other)))
    expected = [bias + one * a + other * b for a, b in zip(values[:3], values[3:], strict=True)]
    assert odds.tolist() == pytest.approx(expected)
    assert columns["cosine"].tolist() == values[:3]
