"""For all tests: real servers, started when the first test asks for them, and a slow machine fails no property.

The conformance suite explains its assertions. A test that needs what this machine has not (`NotHere`) is
skipped on a contributor's machine and fails in CI. A test that fails shows what its servers wrote last.
"""

import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from tools.postgres import NotHere, Server, plain, server, servers, textsearch

from cells.cells import on_servers
from databases import running
from waylore.cells.members import Federation

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start need not compile everything anew
pytest.register_assert_rewrite("waylore.testing")
settings.register_profile("waylore", deadline=None)
settings.load_profile("waylore")


@pytest.fixture(scope="session")
def postgres() -> Server:
    """PostgreSQL with pgvector, for all tests; take a `database()` of it, and leave it running."""
    return running()


@pytest.fixture(scope="session")
def textsearch_postgres() -> Iterator[Server]:
    """PostgreSQL with pgvector and pg_textsearch, for all tests."""
    with server(textsearch()) as started:
        yield started


@pytest.fixture(scope="session")
def three_postgres() -> Iterator[tuple[Server, ...]]:
    """Three servers, to be the cells of a federation."""
    with servers(plain(), 3) as started:
        yield started


@pytest.fixture(scope="session")
def three_cells(three_postgres: tuple[Server, ...]) -> Iterator[Federation]:
    """The three servers as a federation, for all tests: each has collections of its own (`fresh_name`)."""
    made = on_servers([server.url for server in three_postgres])
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo and call.excinfo.errisinstance(NotHere) and not os.environ.get("CI"):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, str(call.excinfo.value))
    if report.failed and isinstance(item, pytest.Function):
        used = [u for u in item.funcargs.values() if isinstance(u, Server | tuple)]
        for one in (s for u in used for s in (u if isinstance(u, tuple) else (u,)) if isinstance(s, Server)):
            report.sections.append((f"log of the server on port {one.port}", one.last_words()))
    return report
