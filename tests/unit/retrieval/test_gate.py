"""The gate follows the specification's arithmetic and gives a reason whenever it stays closed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import GateConfig
from waylore.retrieval.gate import decide


def test_confidence_follows_specification() -> None:
    decision = decide("x" * 50, entities=1, best_cosine=0.8, has_facts=True, config=GateConfig())
    assert decision.confidence == pytest.approx(0.3 * 0.5 + 0.3 * 1 + 0.4 * 0.8)
    assert decision.is_open
    assert decide(
        "x" * 500, entities=0, best_cosine=-1, has_facts=True, config=GateConfig()
    ).confidence == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("entities", "has_facts", "cosine", "reason"),
    [
        (2, False, 0.9, "the graph has no facts"),
        (0, True, 0.9, "the question names no known entity"),
        (2, True, 0.1, "confidence 0.37 is below 0.50"),
        (2, True, 0.9, ""),
    ],
)
def test_closed_gate_has_reason(entities: int, has_facts: bool, cosine: float, reason: str) -> None:
    decision = decide("Who is it?", entities=entities, best_cosine=cosine, has_facts=has_facts, config=GateConfig())
    assert decision.reason == reason
    assert decision.is_open == (reason == "")


@given(st.text(), st.integers(0, 9), st.floats(-1, 1), st.booleans())
def test_confidence_is_between_zero_and_one(question: str, entities: int, cosine: float, has_facts: bool) -> None:
    decision = decide(question, entities=entities, best_cosine=cosine, has_facts=has_facts, config=GateConfig())
    assert decision.confidence is not None
    assert 0.0 <= decision.confidence <= 1.0 + 1e-9


def test_confidence_without_vectors_is_scaled() -> None:
    decision = decide("x" * 50, entities=1, best_cosine=None, has_facts=True, config=GateConfig())
    assert decision.confidence == pytest.approx((0.3 * 0.5 + 0.3 * 1) / 0.6)
    assert decide("x", entities=0, best_cosine=None, has_facts=True, config=GateConfig()).confidence == pytest.approx(
        0.255
    )


def test_confidence_is_zero_without_weights() -> None:
    weightless = GateConfig(specificity=0.0, recognition=0.0, min_confidence=0.1)
    decision = decide("Who is it?", entities=1, best_cosine=None, has_facts=True, config=weightless)
    assert decision.reason == "confidence 0.00 is below 0.10"


def test_minimum_confidence_opens_gate() -> None:
    config = GateConfig(specificity=0.25, recognition=0.25, quality=0.5, min_confidence=0.5)
    assert decide("x" * 100, entities=1, best_cosine=0.0, has_facts=True, config=config).is_open
    assert not decide("x" * 99, entities=1, best_cosine=0.0, has_facts=True, config=config).is_open


def test_missing_facts_and_entities_precede_low_confidence() -> None:
    unsure = {"best_cosine": 0.0, "config": GateConfig()}
    assert decide("?", entities=0, has_facts=False, **unsure).reason == "the graph has no facts"  # type: ignore[arg-type]
    assert decide("?", entities=0, has_facts=True, **unsure).reason.startswith("the question names")  # type: ignore[arg-type]
