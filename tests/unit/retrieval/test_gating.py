"""The gate follows the specification's arithmetic, and gives a reason for each way to stay shut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.config import Gate
from weft.retrieval.gating import gate


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
