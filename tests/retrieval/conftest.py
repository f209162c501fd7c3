"""Run the tests of retrieval in a file, on a server with and without pg_textsearch, and on three servers."""

from collections.abc import Iterator

import pytest

from retrieval.worlds import CELLS, ENGINE, TEXTSEARCH
from waylore.store.postgres import search as searching


@pytest.fixture(scope="module", autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the engine of every world that a test of this folder creates."""
    token = ENGINE.set(request.param)
    if request.param == "cells":
        CELLS.set(request.getfixturevalue("three_cells"))
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "textsearch":
            TEXTSEARCH.set(request.getfixturevalue("textsearch_postgres").url)
            patch.setattr(searching, "MIN_TEXTSEARCH_PASSAGES", 0)  # worlds are small
        yield
    ENGINE.reset(token)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every engine, unless its module creates its own stores."""
    makes_worlds = hasattr(metafunc.module, "fill_store")
    every = ["sqlite", "postgres", "textsearch", "cells"]
    metafunc.parametrize("engine", every if makes_worlds else ["sqlite"], indirect=True, scope="module")
