"""Start servers for all tests, at the first test that needs one, and set up pytest and Hypothesis.

Property tests have no deadline, so that a slow machine fails none. A test that raises `MissingRequirement` is
skipped on a contributor's machine and fails in CI. A failed test shows the last log lines of its servers.
"""

import os
import threading
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from tools.postgres.builds import MissingRequirement, find_plain_build, find_textsearch_build
from tools.postgres.server import Server, start_server, start_servers

from cells.cells import create_on_servers
from databases import start_shared_server
from threads import find_left_threads, share_federation
from waylore.cells.members import Federation

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # so that processes of tests do not compile every module again
pytest.register_assert_rewrite("waylore.testing")
settings.register_profile("waylore", deadline=None, max_examples=12)
settings.register_profile("quick", deadline=None, max_examples=10)  # of `just quick`
settings.register_profile("full", deadline=None)  # `just full` passes --hypothesis-profile=full
settings.load_profile("waylore")


@pytest.fixture(autouse=True)
def check_threads() -> Iterator[None]:
    """Fail a test that leaves threads behind. Fixtures of a module or session have started theirs before."""
    before = set(threading.enumerate())
    yield
    left = find_left_threads(before)
    assert not left, f"the test has left threads behind; close what has started them: {', '.join(left)}"


@pytest.fixture(scope="session")
def postgres() -> Server:
    """Return a server of PostgreSQL with pgvector; use a `create_database()` of it, and do not stop it."""
    return start_shared_server()


@pytest.fixture(scope="session")
def textsearch_postgres() -> Iterator[Server]:
    """Start a server of PostgreSQL with pgvector and pg_textsearch."""
    with start_server(find_textsearch_build()) as started:
        yield started


@pytest.fixture(scope="session")
def three_postgres() -> Iterator[tuple[Server, ...]]:
    """Start three servers for the cells of a federation."""
    with start_servers(find_plain_build(), 3) as started:
        yield started


@pytest.fixture(scope="session")
def three_cells(three_postgres: tuple[Server, ...]) -> Iterator[Federation]:
    """Create a federation of the three servers; each test uses collections of its own (`make_name`)."""
    with share_federation(create_on_servers([server.url for server in three_postgres])) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo and call.excinfo.errisinstance(MissingRequirement) and not os.environ.get("CI"):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, str(call.excinfo.value))
    if report.failed and isinstance(item, pytest.Function):
        used = [u for u in item.funcargs.values() if isinstance(u, Server | tuple)]
        for one in (s for u in used for s in (u if isinstance(u, tuple) else (u,)) if isinstance(s, Server)):
            report.sections.append((f"log of the server on port {one.port}", one.read_log_tail()))
    return report
