"""Retrieval keeps its promises on every engine."""

from collections.abc import Iterator

import pytest

from retrieval.worlds import ENGINE


@pytest.fixture(scope="module", autouse=True, params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """The engine of every world that a test of this folder makes."""
    token = ENGINE.set(request.param)
    yield
    ENGINE.reset(token)
