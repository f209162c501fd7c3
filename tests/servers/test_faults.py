"""The faults that other tests inject are real ones, hold while their block lasts, and are undone after it."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tools.faults import Disk, Proxy, proxy, small_disk, terminating
from tools.postgres import SAFE, Server, plain, server

MEBIBYTE = 1 << 20
LONG = "SELECT repeat('x', 100000)"


@pytest.fixture
def between(postgres: Server) -> Iterator[tuple[Proxy, str]]:
    """A proxy, and the address of a database over it."""
    with proxy(postgres.port) as made:
        yield made, made.url(postgres.url)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with small_disk(128 * MEBIBYTE) as made:
        yield made


def test_a_proxy_lets_everything_through(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url) as db:
        assert db.execute("SELECT length(repeat('x', 5000000))").fetchone() == (5_000_000,)
        assert len(db.execute("SELECT repeat('x', 5000000)").fetchone()[0]) == 5_000_000  # type: ignore[index]
        assert db.execute("SELECT length(%s)", ["y" * 5_000_000]).fetchone() == (5_000_000,)
    assert made.connections == 1


def test_a_proxy_counts_how_often_a_client_waits(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as db:
        before = made.turns
        for _ in range(5):
            db.execute(LONG, prepare=True)
        assert made.turns == before + 6  # the first prepares it, too
        with db.pipeline():
            for _ in range(5):
                db.execute("SELECT 1")
        assert made.turns == before + 7


def test_answers_are_delayed(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as db:
        with made.delaying(0.3):
            assert _seconds(db) >= 0.3
        assert _seconds(db) < 0.3


def test_a_hanging_server_takes_connections_and_answers_later(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as db:
        done = threading.Event()

        def ask() -> None:
            db.execute("SELECT 1")
            done.set()

        asking = threading.Thread(target=ask)
        with made.hanging():
            asking.start()
            assert not done.wait(0.3)
            with pytest.raises(psycopg.errors.ConnectionTimeout):
                psycopg.connect(url, connect_timeout=2)
        assert done.wait(5)
        asking.join()


def test_an_answer_is_cut_in_its_middle(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as db, made.cutting(after=1_000):
        with pytest.raises(psycopg.OperationalError):
            db.execute(LONG)
        assert db.broken
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
    with psycopg.connect(url) as db:
        db.execute(LONG)


def test_every_connection_is_cut_once(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
        made.cut()
        for cut in (one, other):
            with pytest.raises(psycopg.OperationalError):
                cut.execute("SELECT 1")
    psycopg.connect(url).close()


def test_connections_are_refused(between: tuple[Proxy, str]) -> None:
    made, url = between
    with psycopg.connect(url, autocommit=True) as db, made.refusing():
        with pytest.raises(psycopg.OperationalError):
            db.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(url)
    psycopg.connect(url).close()


def test_connections_are_terminated_at_random(postgres: Server) -> None:
    with postgres.database() as url, terminating(url, every=0.01) as gone:
        for _ in range(3):
            with (
                pytest.raises(psycopg.errors.AdminShutdown),
                psycopg.connect(url, autocommit=True) as db,
            ):
                db.execute("SELECT pg_sleep(10)")
    assert len(gone) >= 3


def test_a_full_disk_is_full_and_a_server_on_it_recovers(disk: Disk) -> None:
    with server(plain(), settings=SAFE, folder=disk.folder) as small:
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


def test_a_tablespace_on_a_full_disk_refuses_and_the_server_goes_on(disk: Disk, postgres: Server) -> None:
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


def _seconds(db: psycopg.Connection) -> float:
    started = time.perf_counter()
    db.execute("SELECT 1")
    return time.perf_counter() - started
