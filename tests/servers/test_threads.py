"""The check after each test finds what a test has not closed, and waits for threads that are about to end."""

import threading
from contextlib import closing
from pathlib import Path

import pytest
from tools.postgres.server import Server

import threads
from cells.cells import create_federation, open_stores
from databases import make_name
from threads import find_left_threads, share_federation
from waylore.store.postgres.store import PostgresStore
from waylore.testing.world import KING, MODEL


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "HANG_SECONDS", 0.1)


def test_open_pool_is_found(postgres: Server) -> None:
    before = set(threading.enumerate())
    with postgres.create_database() as url, closing(PostgresStore(url, make_name("own"))):
        assert "waylore-worker-0" in find_left_threads(before)
    assert find_left_threads(before) == []


def test_open_federation_is_found_unless_it_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    with share_federation(create_federation(tmp_path, {"a": [KING]}, MODEL)) as federation:
        with open_stores(federation, "a") as store:
            store.statistics()
        assert find_left_threads(before) == []
        with monkeypatch.context() as patch:
            patch.setattr(threads, "_shared", set())
            assert "waylore cell east" in find_left_threads(before)


def test_ending_thread_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "HANG_SECONDS", 60.0)
    before = set(threading.enumerate())
    threading.Timer(0.2, lambda: None).start()
    assert find_left_threads(before) == []
