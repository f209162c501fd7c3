"""The injected faults are real, last as long as their block, and are undone after it."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tools.faults import Disk, Proxy, mount_small_disk, start_proxy, terminate_connections
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, Server, start_server
from tools.waiting import HANG_SECONDS

MEBIBYTE = 1 << 20
LONG = "SELECT repeat('x', 100000)"


@pytest.fixture
def proxy_and_url(postgres: Server) -> Iterator[tuple[Proxy, str]]:
    """Start a proxy, and return it with the URL of a database behind it."""
    with start_proxy(postgres.port) as made:
        yield made, made.build_url(postgres.url)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with mount_small_disk(128 * MEBIBYTE) as made:
        yield made


def test_proxy_forwards_everything(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url) as db:
        assert db.execute("SELECT length(repeat('x', 5000000))").fetchone() == (5_000_000,)
        assert len(db.execute("SELECT repeat('x', 5000000)").fetchone()[0]) == 5_000_000  # type: ignore[index]
        assert db.execute("SELECT length(%s)", ["y" * 5_000_000]).fetchone() == (5_000_000,)
    assert made.connections == 1


def test_proxy_counts_round_trips(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as db:
        before = made.round_trips
        for _ in range(5):
            db.execute(LONG, prepare=True)
        assert made.round_trips == before + 6  # the first prepares it, too
        with db.pipeline():
            for _ in range(5):
                db.execute("SELECT 1")
        assert made.round_trips == before + 7


def test_proxy_delays_answers(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as db:
        with made.delay(0.3):
            delayed = min(_measure_query(db) for _ in range(3))
        assert delayed >= 0.3
        assert min(_measure_query(db) for _ in range(20)) < delayed


def test_hanging_server_answers_after_hang(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as db:
        done = threading.Event()

        def ask() -> None:
            db.execute("SELECT 1")
            done.set()

        asking = threading.Thread(target=ask)
        with made.hang():
            asking.start()
            assert not done.wait(0.3)
            with pytest.raises(psycopg.errors.ConnectionTimeout):
                psycopg.connect(url, connect_timeout=2)
        assert done.wait(HANG_SECONDS)
        asking.join()


def test_proxy_cuts_answers(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as db, made.cut_answers(after=1_000):
        with pytest.raises(psycopg.OperationalError):
            db.execute(LONG)
        assert db.broken
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
    with psycopg.connect(url) as db:
        db.execute(LONG)


def test_proxy_cuts_every_connection(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
        made.cut()
        for cut in (one, other):
            with pytest.raises(psycopg.OperationalError):
                cut.execute("SELECT 1")
    psycopg.connect(url).close()


def test_proxy_refuses_connections(proxy_and_url: tuple[Proxy, str]) -> None:
    made, url = proxy_and_url
    with psycopg.connect(url, autocommit=True) as db, made.refuse():
        with pytest.raises(psycopg.OperationalError):
            db.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(url)
    psycopg.connect(url).close()


def test_connections_are_terminated_at_random(postgres: Server) -> None:
    with postgres.create_database() as url, terminate_connections(url, every=0.01) as gone:
        for _ in range(3):
            with (
                pytest.raises(psycopg.OperationalError, match=r"terminating connection|closed the connection"),
                psycopg.connect(url, autocommit=True) as db,
            ):
                db.execute("SELECT pg_sleep(10)")
    assert len(gone) >= 3


def test_server_recovers_from_full_disk(disk: Disk) -> None:
    with start_server(find_plain_build(), settings=DURABLE_SETTINGS, folder=disk.folder) as small:
        with psycopg.connect(small.url, autocommit=True) as db:
            db.execute("CREATE TABLE kept AS SELECT 1 AS id")
            disk.fill()
            with pytest.raises(psycopg.Error, match=r"No space left|terminated|closed"):
                db.execute("CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)")
        disk.clear()
        if not small.is_running:
            small.start()
        small.wait()
        with psycopg.connect(small.url) as db:
            assert db.execute("SELECT id FROM kept").fetchall() == [(1,)]
            db.execute("CREATE TABLE more (id int)")
        assert "No space left on device" in small.log.read_text()


def test_full_tablespace_refuses_writes_only(disk: Disk, postgres: Server) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as db:
        db.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'")
        db.execute("CREATE TABLE filling (said text) TABLESPACE small")
        disk.fill()
        for _ in range(2):
            with pytest.raises(psycopg.errors.DiskFull):
                db.execute("INSERT INTO filling SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
        disk.clear()
        db.execute("INSERT INTO filling SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
        assert db.execute("SELECT count(*) FROM filling").fetchone() == (2_000,)
        db.execute("DROP TABLE filling")
        db.execute("DROP TABLESPACE small")


def _measure_query(db: psycopg.Connection) -> float:
    started = time.perf_counter()
    db.execute("SELECT 1")
    return time.perf_counter() - started
