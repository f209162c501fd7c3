"""Faults of one PostgreSQL server under load: killed, cut off in mid-answer, backends ended, a disk that is full."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import psycopg
from tools.faults import proxy, small_disk, terminating
from tools.postgres import SAFE, Server, plain, server

from benchmarks.faults import notes
from benchmarks.faults.load import SECRET, Load, Report
from benchmarks.faults.notes import Ledger, settled
from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Size:
    """How long a fault is tried, and under how much load."""

    seconds: float = 20.0  # of load before, between and after what goes wrong, all together
    times: int = 3  # that something is killed or cut
    notes: int = 300  # that are there before
    searches: float = 40.0  # a second
    writes: float = 10.0  # a second


FULL = Size()
SAMPLE = Size(seconds=3.0, times=1, notes=40, searches=20.0, writes=10.0)


def with_password(url: str) -> str:
    """The address with a password in it, which nobody is asked for and no error may tell."""
    return url.replace("postgres@", f"postgres:{SECRET}@")


@contextmanager
def opened(url: str, size: Size) -> Iterator[tuple[Waylore, PostgresStore, Load]]:
    """A collection with its first notes, and the load that it is to bear."""
    store = PostgresStore(with_password(url), "notes")
    with notes.opened(store) as waylore:
        load = Load([(waylore, Ledger())], searches=size.searches, writes=size.writes)
        load.fill(size.notes)
        yield waylore, store, load


def reported(fault: str, waylore: Waylore, store: PostgresStore, load: Load, since: float) -> Report:
    """What the callers saw, and what is there now."""
    found = settled(waylore, store, load.waylores[0][1])
    return load.report(fault, found, since)


def killed(size: Size) -> Report:
    """The server is killed with SIGKILL and started again, while it is read and written."""
    with server(plain(), settings=SAFE) as one, opened(one.url, size) as (waylore, store, load):
        pause = size.seconds / (size.times + 1)
        starts = []
        with load.running():
            for _ in range(size.times):
                time.sleep(pause)
                one.kill()
                begun = time.monotonic()
                one.start()
                starts.append(time.monotonic() - begun)
                since = time.monotonic()
            time.sleep(pause)
        report = reported(f"server killed, started again ({size.times}x)", waylore, store, load, since)
        report.notes.append(f"the server itself took {max(starts):.1f} s to start")
        return report


def away(size: Size) -> Report:
    """The server is killed and stays away for longer than a caller's patience lasts elsewhere, then starts."""
    with server(plain(), settings=SAFE) as one, opened(one.url, size) as (waylore, store, load):
        load.searches, load.writes = load.searches / 8, load.writes / 8  # all that comes meanwhile waits
        with load.running():
            time.sleep(1.0)
            one.kill()
            time.sleep(size.seconds / 2)
            one.start()
            since = time.monotonic()
            time.sleep(size.seconds / 2)
        return reported(f"server away for {size.seconds / 2:g} s", waylore, store, load, since)


def cut(size: Size) -> Report:
    """Connections are cut in the middle of an answer, again and again."""
    chance = Random(5)
    with (
        server(plain(), settings=SAFE) as one,
        proxy(one.port) as between,
        opened(between.url(one.url), size) as (waylore, store, load),
    ):
        pause = size.seconds / (3 * size.times + 1)
        with load.running():
            for _ in range(3 * size.times):
                time.sleep(pause)
                with between.cutting(after=chance.randrange(1, 30_000)):
                    time.sleep(0.2)
                since = time.monotonic()
            time.sleep(pause)
        return reported(f"cut in mid-answer ({3 * size.times}x)", waylore, store, load, since)


def terminated(size: Size) -> Report:
    """`pg_terminate_backend` on a connection at random, ten times a second."""
    with server(plain(), settings=SAFE) as one, opened(one.url, size) as (waylore, store, load):
        with load.running():
            with terminating(one.url, every=0.1) as gone:
                time.sleep(2 * size.seconds / 3)
            since = time.monotonic()
            time.sleep(size.seconds / 3)
        return reported(f"pg_terminate_backend ({len(gone)}x)", waylore, store, load, since)


def full_disk(size: Size) -> Report:
    """The disk of the tables is full, then has room again; the server's log is on another one."""
    with (
        small_disk(64 * MEBIBYTE) as disk,
        server(plain(), settings=SAFE) as one,
        opened(_database_on(one, str(disk.folder)), size) as (waylore, store, load),
    ):
        with load.running():
            time.sleep(size.seconds / 4)
            disk.fill()
            _until_refused(waylore, load)
            time.sleep(size.seconds / 2)
            disk.clear()
            since = time.monotonic()
            time.sleep(size.seconds / 4)
        report = reported("disk of the tables full", waylore, store, load, since)
        report.notes.append(next(str(r.error) for r in load.requests if r.error))
        return report


def full_server(size: Size) -> Report:
    """The only disk of a server is full: it ends, and is started again when there is room."""
    with (
        small_disk(160 * MEBIBYTE) as disk,
        server(plain(), settings=SAFE, folder=disk.folder) as one,
        opened(one.url, size) as (waylore, store, load),
    ):
        load.searches, load.writes = load.searches / 4, load.writes / 2
        with load.running():
            time.sleep(1.0)
            disk.fill()
            time.sleep(size.seconds / 2)
            disk.clear()
            ended = not one.is_running
            if ended:
                one.launch()
            one.wait()
            since = time.monotonic()
            time.sleep(size.seconds / 4)
        report = reported("disk of tables and log full", waylore, store, load, since)
        report.notes.append("the server ended" if ended else "the server went on")
        return report


def _until_refused(waylore: Waylore, load: Load) -> None:
    """Write until that is refused: a table may have room of its own for a while."""
    ledger = load.waylores[0][1]
    chance = Random(3)
    while not any(r.kind == "write" and r.error for r in load.requests):
        note, is_acknowledged = ledger.begin(chance), False
        try:
            waylore.add(note.text, uri=note.uri, facts=note.facts)
            is_acknowledged = True
        except StoreUnavailable:
            time.sleep(0.05)
        finally:
            ledger.end(note, is_acknowledged=is_acknowledged)


def _database_on(one: Server, folder: str) -> str:
    with psycopg.connect(one.url, autocommit=True) as db:
        db.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        db.execute("CREATE DATABASE small TABLESPACE small")
    return one.url_of("small")
