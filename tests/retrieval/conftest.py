"""Retrieval keeps its promises in a file, on a server, and in a federation of three servers."""

from collections.abc import Iterator

import pytest

from retrieval.worlds import CELLS, ENGINE


@pytest.fixture(scope="module", autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """The engine of every world that a test of this folder makes."""
    token = ENGINE.set(request.param)
    if request.param == "cells":
        CELLS.set(request.getfixturevalue("three_cells"))
    yield
    ENGINE.reset(token)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every engine, but where a module makes stores of its own."""
    makes_worlds = hasattr(metafunc.module, "holding")
    metafunc.parametrize(
        "engine", ["sqlite", "postgres", "cells"] if makes_worlds else ["sqlite"], indirect=True, scope="module"
    )
