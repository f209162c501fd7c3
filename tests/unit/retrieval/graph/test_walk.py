"""Spreading is personalised PageRank, and the trust in a fact follows the specification."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import TrustConfig
from waylore.retrieval.graph.activation import score_facts
from waylore.retrieval.graph.walk import compute_weights, spread
from waylore.types.columns import to_fact_columns
from waylore.types.knowledge import Fact

NOW = datetime(2024, 6, 1, tzinfo=UTC)
FACT = Fact("f", "a", "A", "knows", "B", "b", weight=10, source="conversation", status="staged", recorded_at=NOW)
edges = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0.01, 10)).filter(lambda e: e[0] != e[1]),
    min_size=1,
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 1.0),
        ({"confidence": 0.8}, 0.8),
        ({"source": "user_edit"}, 2.0),
        ({"source": "file"}, 1.5),
        ({"source": "system"}, 1.2),
        ({"status": "confirmed"}, 1.2),
        ({"access_count": 9, "last_accessed": NOW}, 1.5),
        ({"recorded_at": NOW - timedelta(weeks=1)}, 1.0),
        ({"recorded_at": NOW - timedelta(weeks=3)}, 0.95**2),
        ({"recorded_at": NOW - timedelta(weeks=99), "last_accessed": NOW}, 1.0),
    ],
)
def test_trust_follows_specification(change: dict[str, object], expected: float) -> None:
    fact = replace(FACT, **change)  # type: ignore[arg-type]
    assert score_facts(to_fact_columns({"": [fact]}), TrustConfig(), NOW) == pytest.approx([expected])
    unused = to_fact_columns({"": [replace(fact, access_count=0, last_accessed=None)]})
    for weight in (5.0, 10.0):
        walked = compute_weights(to_fact_columns({"": [replace(fact, weight=weight)]}), TrustConfig(), NOW)
        assert walked == pytest.approx(weight / 10 * score_facts(unused, TrustConfig(), NOW))


@given(edges, st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda s: sum(s) > 0.01))
def test_spread_equals_personalised_pagerank(links: list[tuple[int, int, float]], start: list[float]) -> None:
    """Compare with the closed form: restart * (I - (1 - restart) W)^-1 start."""
    seed = np.array(start) / sum(start)
    adjacency = np.zeros((6, 6))
    for one, other, weight in links:
        adjacency[one, other] += weight
        adjacency[other, one] += weight
    degree = adjacency.sum(axis=1, keepdims=True)
    flow = np.divide(adjacency, degree, out=np.zeros_like(adjacency), where=degree > 0).T
    exact = 0.5 * np.linalg.solve(np.eye(6) - 0.5 * flow, seed)
    first, second, weights = (np.array(column) for column in zip(*links, strict=True))
    assert np.allclose(spread(first, second, weights, np.array(start), restart=0.5, rounds=40), exact, atol=1e-6)


def test_activation_stays_without_edges() -> None:
    start = np.array([0.2, 0.8])
    nowhere = np.empty(0, np.int64)
    assert spread(nowhere, nowhere, np.empty(0), start, restart=0.5, rounds=12) is start
