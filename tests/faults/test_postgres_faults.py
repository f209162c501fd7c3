"""A PostgreSQL server that is killed, cut off, full or away under load: samples of `benchmarks.faults`."""

import threading
import time
from collections.abc import Callable

import pytest
from benchmarks.faults import servers
from benchmarks.faults.load import SECRET, Report
from benchmarks.faults.servers import SAMPLE, Size, opened
from tools.postgres import HOST, SAFE, plain, server

from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore

PATIENCE = 10.0  # seconds within which service must resume; a loaded machine takes part of them


def check(report: Report, *places: str) -> None:
    """Nothing lost, nothing wrong, every error says what happened and where, and service resumed by itself."""
    assert report.settled.lost == ()
    assert report.wrong == []
    assert report.unexplained(places) == []
    assert report.recovered < PATIENCE
    assert sum(r.is_answered for r in report.requests) > len(report.requests) / 2


@pytest.mark.parametrize("fault", [servers.killed, servers.cut, servers.terminated])
def test_nothing_is_lost_or_wrong_and_service_resumes(fault: Callable[[Size], Report]) -> None:
    report = fault(SAMPLE)
    check(report, f"{HOST}:")
    assert all(type(r.error) is StoreUnavailable for r in report.requests if r.error)


def test_a_full_disk_refuses_writes_says_so_and_is_read_on() -> None:
    report = servers.full_disk(SAMPLE)
    check(report, f"{HOST}:")
    refused = [r for r in report.requests if r.error]
    assert {r.kind for r in refused} == {"write"}
    assert all("no room left" in str(r.error) and "nothing was written" in str(r.error) for r in refused)
    during = [
        r for r in report.requests if r.kind != "write" and refused[0].ended < r.begun < refused[-1].begun
    ]
    assert during
    assert all(r.is_answered for r in during)
    assert any(r.kind == "write" and r.is_answered and r.begun > report.since for r in report.requests)


def test_whoever_waits_is_served_when_the_server_is_back() -> None:
    """The pool gives up after a while; those who wait must not have to wait for somebody to come after them."""
    with server(plain(), settings=SAFE) as one, opened(one.url, SAMPLE) as (_, store, _):
        one.kill()
        served: list[float] = []

        def wait() -> None:
            store.version()
            served.append(time.monotonic())

        waiting = [threading.Thread(target=wait) for _ in range(3)]
        for each in waiting:
            each.start()
        time.sleep(4.0)
        one.start()
        since = time.monotonic()
        for each in waiting:
            each.join()
    assert len(served) == 3
    assert max(served) - since < PATIENCE


def test_a_server_that_stays_away_is_said_to() -> None:
    with server(plain(), settings=SAFE) as one:
        store = PostgresStore(servers.with_password(one.url), "notes", wait_seconds=0.5)
        one.kill()
        for verb in (store.version, store.statistics, lambda: store.forget(["0" * 32])):
            with pytest.raises(
                StoreUnavailable, match=rf"{HOST}:{one.port}.*cannot be reached.*refused"
            ) as told:
                verb()
            assert SECRET not in str(told.value)
        one.start()
        assert store.version() == 0
        store.close()
