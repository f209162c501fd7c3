"""Cause faults of one PostgreSQL server under load: killed, cut off, backends terminated, a full disk."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import psycopg
from tools.faults import mount_small_disk, start_proxy, terminate_connections
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, Server, start_server
from tools.waiting import wait_until

from benchmarks.faults import notes
from benchmarks.faults.load import SECRET, Load, Report
from benchmarks.faults.notes import Ledger, check_store
from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadSize:
    """The duration of a fault and the load during it."""

    seconds: float = 20.0  # of load before, during and after the fault, in all
    times: int = 3  # number of kills or cuts
    notes: int = 300  # stored at the start
    searches: float = 40.0  # per second
    writes: float = 10.0  # per second


FULL = LoadSize()
SAMPLE = LoadSize(seconds=3.0, times=1, notes=40, searches=20.0, writes=10.0)


def add_password(url: str) -> str:
    """Add a password to an address. The server does not check it, and no error may contain it."""
    return url.replace("postgres@", f"postgres:{SECRET}@")


@contextmanager
def open_collection(url: str, size: LoadSize) -> Iterator[tuple[Waylore, PostgresStore, Load]]:
    """Open a collection with its first notes, and prepare the load."""
    store = PostgresStore(add_password(url), "notes")
    with notes.open_collection(store) as waylore:
        load = Load([(waylore, Ledger())], searches=size.searches, writes=size.writes)
        load.fill(size.notes)
        yield waylore, store, load


def build_report(fault: str, waylore: Waylore, store: PostgresStore, load: Load, since: float) -> Report:
    """Check the store and build the report."""
    found = check_store(waylore, store, load.waylores[0][1])
    return load.report(fault, found, since)


def kill_server(size: LoadSize) -> Report:
    """Kill the server with SIGKILL and start it again while it is read and written."""
    with (
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        open_collection(one.url, size) as (waylore, store, load),
    ):
        pause = size.seconds / (size.times + 1)
        starts = []
        with load.run():
            for _ in range(size.times):
                time.sleep(pause)
                one.kill()
                begun = time.monotonic()
                one.start()
                starts.append(time.monotonic() - begun)
                since = time.monotonic()
            time.sleep(pause)
        report = build_report(f"server killed, started again ({size.times}x)", waylore, store, load, since)
        report.notes.append(f"the server itself took {max(starts):.1f} s to start")
        return report


def keep_server_away(size: LoadSize) -> Report:
    """Kill the server, leave it down for longer than usual timeouts, then start it again."""
    with (
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        open_collection(one.url, size) as (waylore, store, load),
    ):
        load.searches, load.writes = load.searches / 8, load.writes / 8  # because all of these requests wait
        with load.run():
            time.sleep(1.0)
            one.kill()
            time.sleep(size.seconds / 2)
            one.start()
            since = time.monotonic()
            time.sleep(size.seconds / 2)
        return build_report(f"server away for {size.seconds / 2:g} s", waylore, store, load, since)


def cut_connections(size: LoadSize) -> Report:
    """Cut connections in the middle of an answer, several times."""
    chance = Random(5)
    with (
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        start_proxy(one.port) as between,
        open_collection(between.build_url(one.url), size) as (waylore, store, load),
    ):
        pause = size.seconds / (3 * size.times + 1)
        with load.run():
            for _ in range(3 * size.times):
                time.sleep(pause)
                with between.cut_answers(after=chance.randrange(1, 30_000)):
                    time.sleep(0.2)
                since = time.monotonic()
            time.sleep(pause)
        return build_report(f"cut in mid-answer ({3 * size.times}x)", waylore, store, load, since)


def terminate_backends(size: LoadSize) -> Report:
    """Run `pg_terminate_backend` on a random connection ten times per second."""
    with (
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        open_collection(one.url, size) as (waylore, store, load),
    ):
        with load.run():
            with terminate_connections(one.url, every=0.1) as gone:
                time.sleep(2 * size.seconds / 3)
            since = time.monotonic()
            time.sleep(size.seconds / 3)
        return build_report(f"pg_terminate_backend ({len(gone)}x)", waylore, store, load, since)


def fill_disk(size: LoadSize) -> Report:
    """Fill the disk of the tables, then free it; the server's log is on another disk."""
    with (
        mount_small_disk(64 * MEBIBYTE) as disk,
        start_server(find_plain_build(), settings=DURABLE_SETTINGS) as one,
        open_collection(_create_database_on(one, str(disk.folder)), size) as (waylore, store, load),
    ):
        with load.run():
            time.sleep(size.seconds / 4)
            disk.fill()
            _write_until_refused(waylore, load)
            time.sleep(size.seconds / 2)
            _wait_for_reads_while_refused(load)
            disk.clear()
            since = time.monotonic()
            time.sleep(size.seconds / 4)
            wait_until(lambda: any(r.kind == "write" and r.is_answered and r.begun > since for r in load.requests))
        report = build_report("disk of the tables full", waylore, store, load, since)
        report.notes.append(next(str(r.error) for r in load.requests if r.error))
        return report


def fill_server_disk(size: LoadSize) -> Report:
    """Fill the only disk of a server, then free it; if the server ended, start it again."""
    with (
        mount_small_disk(160 * MEBIBYTE) as disk,
        start_server(find_plain_build(), settings=DURABLE_SETTINGS, folder=disk.folder) as one,
        open_collection(one.url, size) as (waylore, store, load),
    ):
        load.searches, load.writes = load.searches / 4, load.writes / 2
        with load.run():
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
        report = build_report("disk of tables and log full", waylore, store, load, since)
        report.notes.append("the server ended" if ended else "the server kept running")
        return report


def _wait_for_reads_while_refused(load: Load) -> None:
    """Wait until a write was refused, then a read began, and then another write was refused."""
    while True:
        refused = [r for r in load.requests if r.kind == "write" and r.error]
        first, last = min(r.ended for r in refused), max(r.begun for r in refused)
        if any(first < r.begun < last for r in load.requests if r.kind != "write"):
            return
        time.sleep(0.1)


def _write_until_refused(waylore: Waylore, load: Load) -> None:
    """Write until a write is refused; a table may have free space for a while."""
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


def _create_database_on(one: Server, folder: str) -> str:
    with psycopg.connect(one.url, autocommit=True) as db:
        db.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        db.execute("CREATE DATABASE small TABLESPACE small")
    return one.build_url("small")
