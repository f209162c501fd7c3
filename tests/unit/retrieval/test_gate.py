"""The gate follows the specification's arithmetic, and gives a reason for each way to stay shut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import Gate
from waylore.retrieval.gate import gate


def test_confidence_is_the_specifications() -> None:
    gated = gate("x" * 50, entities=1, best_cosine=0.8, facts=1, config=Gate())
    assert gated.confidence == pytest.approx(0.3 * 0.5 + 0.3 * 1 + 0.4 * 0.8)
    assert gated.is_open
    assert gate("x" * 500, entities=0, best_cosine=-1, facts=1, config=Gate()).confidence == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("entities", "facts", "cosine", "reason"),
    [
        (2, 0, 0.9, "the graph is empty"),
        (0, 9, 0.9, "the question names nothing that is known"),
        (2, 9, 0.1, "confidence 0.37 is under 0.50"),
        (2, 9, 0.9, ""),
    ],
)
def test_there_is_a_reason_for_each_way_to_stay_shut(
    entities: int, facts: int, cosine: float, reason: str
) -> None:
    gated = gate("Who is it?", entities=entities, best_cosine=cosine, facts=facts, config=Gate())
    assert gated.reason == reason
    assert gated.is_open == (reason == "")


@given(st.text(), st.integers(0, 9), st.floats(-1, 1), st.integers(0, 9))
def test_confidence_is_a_share(question: str, entities: int, cosine: float, facts: int) -> None:
    gated = gate(question, entities=entities, best_cosine=cosine, facts=facts, config=Gate())
    assert gated.confidence is not None
    assert 0.0 <= gated.confidence <= 1.0 + 1e-9


def test_without_vectors_the_other_two_decide_in_proportion() -> None:
    gated = gate("x" * 50, entities=1, best_cosine=None, facts=1, config=Gate())
    assert gated.confidence == pytest.approx((0.3 * 0.5 + 0.3 * 1) / 0.6)
    assert gate("x", entities=0, best_cosine=None, facts=1, config=Gate()).confidence == pytest.approx(0.255)


def test_a_gate_that_weighs_nothing_is_sure_of_nothing() -> None:
    weightless = Gate(specificity=0.0, recognition=0.0, min_confidence=0.1)
    gated = gate("Who is it?", entities=1, best_cosine=None, facts=1, config=weightless)
    assert gated.reason == "confidence 0.00 is under 0.10"


def test_just_enough_is_enough() -> None:
    config = Gate(specificity=0.25, recognition=0.25, quality=0.5, min_confidence=0.5)
    assert gate("x" * 100, entities=1, best_cosine=0.0, facts=1, config=config).is_open
    assert not gate("x" * 99, entities=1, best_cosine=0.0, facts=1, config=config).is_open


def test_what_is_missing_is_said_before_what_is_thin() -> None:
    unsure = {"best_cosine": 0.0, "config": Gate()}
    assert gate("?", entities=0, facts=0, **unsure).reason == "the graph is empty"  # type: ignore[arg-type]
    assert gate("?", entities=0, facts=1, **unsure).reason.startswith("the question names")  # type: ignore[arg-type]
