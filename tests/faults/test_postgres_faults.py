"""A PostgreSQL server is killed, cut off, full or stopped under load: samples of `benchmarks.faults`."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from benchmarks.faults import servers
from benchmarks.faults.load import SECRET, Report
from benchmarks.faults.servers import SAMPLE, LoadSize, open_collection
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, HOST, Server, start_server
from tools.waiting import HANG_SECONDS, wait_until

from waylore.errors import StoreUnavailable
from waylore.store.postgres import connections
from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER


def check_report(report: Report, *places: str) -> None:
    """Check that nothing is lost or wrong, errors name their cause and place, and service resumes."""
    assert report.store_check.lost == ()
    assert report.wrong == []
    assert report.find_unexplained(places) == []
    assert report.recovered < HANG_SECONDS
    assert sum(r.is_answered for r in report.requests) > len(report.requests) / 2


FAULTS = [
    servers.kill_server,
    servers.cut_connections,
    pytest.param(servers.terminate_backends, marks=pytest.mark.full),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_service_resumes_and_nothing_is_lost(fault: Callable[[LoadSize], Report]) -> None:
    report = fault(SAMPLE)
    check_report(report, f"{HOST}:")
    assert all(type(r.error) is StoreUnavailable for r in report.requests if r.error)


def test_full_disk_fails_writes_and_allows_reads() -> None:
    report = servers.fill_disk(SAMPLE)
    check_report(report, f"{HOST}:")
    failed = [r for r in report.requests if r.error]
    assert {r.kind for r in failed} == {"write"}
    assert all("is out of space" in str(r.error) and "nothing was written" in str(r.error) for r in failed)
    first, last = min(r.ended for r in failed), max(r.begun for r in failed)
    during = [r for r in report.requests if r.kind != "write" and first < r.begun < last]
    assert during
    assert all(r.is_answered for r in during)
    assert any(r.kind == "write" and r.is_answered and r.begun > report.since for r in report.requests)


def test_waiting_requests_run_when_the_server_returns() -> None:
    """The pool stops reconnecting after a while; waiting requests must not depend on a later one."""
    with (
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        open_collection(one.url, SAMPLE) as (_, store, _),
    ):
        version = store.version()
        one.kill()
        with ThreadPoolExecutor(3) as threads:
            waiting = [threads.submit(store.version) for _ in range(3)]
            wait_until(lambda: store._server.pool._failures >= 2)  # psycopg's pool has given up, and once more
            one.start()
            assert [each.result() for each in waiting] == [version] * 3


def test_unreachable_server_is_reported_with_reason() -> None:
    with start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one, open_impatient(one) as store:
        one.kill()
        for verb in (store.version, store.statistics, lambda: store.forget(["0" * 32], author=OWNER)):
            with pytest.raises(StoreUnavailable, match=rf"{HOST}:{one.port}.*cannot be reached.*refused") as caught:
                verb()
            assert SECRET not in str(caught.value)
        one.start()
        assert read_version(store) == 0


def open_impatient(server: Server) -> closing[PostgresStore]:
    """Open a store whose calls wait half a second for a connection, and close it after the block."""
    return closing(PostgresStore(servers.add_password(server.url), "notes", wait_seconds=0.5))


def read_version(store: PostgresStore) -> int:
    """Read the version of a store whose server is back. Only "still connecting" may delay it."""

    def try_to_read() -> list[int]:
        try:
            return [store.version()]
        except StoreUnavailable as error:
            if "still connecting" not in str(error):
                raise
            return []

    return wait_until(try_to_read)[0]


def test_pool_stops_connecting_when_no_request_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_PAUSE_SECONDS", connections.FIRST_PAUSE_SECONDS)

    def is_quiet() -> bool:
        """Return whether the pool does not connect for longer than the pause between two of its attempts."""
        before = store._server.pool.get_stats()["connections_num"]
        time.sleep(2 * (connections.MAX_RECONNECT_SECONDS + connections.MAX_PAUSE_SECONDS))
        return store._server.pool.get_stats()["connections_num"] == before

    with start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one, open_impatient(one) as store:
        one.kill()
        with pytest.raises(StoreUnavailable):
            store.version()
        wait_until(is_quiet)
        one.start()
        assert read_version(store) == 0
