"""Search from many threads on one server: measure throughput and its limit, find leaked connections."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import psutil
import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server
from tools.waiting import HANG_SECONDS

from benchmarks.faults.load import search_note
from benchmarks.faults.notes import Ledger
from benchmarks.faults.servers import LoadSize, open_collection
from benchmarks.processes import count_seconds, list_trees
from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore

THREADS = (1, 2, 4, 8, 16, 24)
BUSY = 0.85  # share of a core, or of all cores, from which on it counts as busy; other programs count too
COUNT_CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()
"""
COUNT_LOCK_WAITERS = """
    SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""
LOCK_TABLE = "LOCK TABLE waylore.collections IN ACCESS EXCLUSIVE MODE"


@dataclass(frozen=True, slots=True)
class Throughput:
    """The searches per second of a number of threads, and the cores that each side used."""

    threads: int
    searches: float  # per second
    python: float
    postgres: float
    idle: float
    wrong: tuple[str, ...]

    @property
    def limit(self) -> str:
        """What limits the throughput."""
        if self.python >= BUSY:
            return "one core for Python"
        cores = len(os.sched_getaffinity(0))
        return "all cores are busy" if self.idle < (1 - BUSY) * cores else "waiting for answers"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The throughput by number of threads, and the connections to the server before, during and after."""

    throughputs: Sequence[Throughput]
    before: int
    most: int
    after: int
    is_whole: bool  # True if all connections were returned to the pool


def measure_crowd(size: LoadSize, numbers: Sequence[int] = THREADS) -> Crowd:
    """Search from 1, 2, 4, … threads at the same time, each as fast as possible."""
    with start_server(find_plain_build()) as one:
        # The server notices a closed connection after a moment, also those that waited for its start.
        _wait_until(lambda: _count_connections(one) == 0)
        before, found, most = _count_connections(one), [], 0
        with open_collection(one.url, size) as (waylore, store, load):
            for number in numbers:
                found.append(
                    _measure_throughput(one, waylore, load.waylores[0][1], number, size.seconds / len(numbers))
                )
                most = max(most, _count_connections(one))
            is_whole = _wait_until(lambda: _count_borrowed(store) == 0)
        after = before if _wait_until(lambda: _count_connections(one) == before) else _count_connections(one)
        return Crowd(found, before, most, after, is_whole)


def _measure_throughput(one: Server, waylore: Waylore, ledger: Ledger, number: int, seconds: float) -> Throughput:
    over, wrong, counts = threading.Event(), list[str](), [0] * number

    def work(own: int) -> None:
        chance = Random(own)
        while not over.is_set():
            wrong.extend(filter(None, [search_note(waylore, [ledger], ledger, "chain", chance)[0]]))
            counts[own] += 1

    before, begun = _read_processor_seconds(one), time.monotonic()
    with ThreadPoolExecutor(number) as threads:
        running = [threads.submit(work, own) for own in range(number)]
        time.sleep(seconds)
        over.set()
        for each in running:
            each.result()
    after, took = _read_processor_seconds(one), time.monotonic() - begun
    python, postgres, idle = ((b - a) / took for a, b in zip(before, after, strict=True))
    return Throughput(number, sum(counts) / took, python, postgres, idle, tuple(wrong))


def _read_processor_seconds(one: Server) -> tuple[float, float, float]:
    """Return the processor seconds of this process, of all server processes, and the idle seconds so far."""
    own = psutil.Process().cpu_times()
    assert one._process
    first = psutil.Process(one._process.pid)
    return own.user + own.system, count_seconds(list_trees([first])), psutil.cpu_times().idle


def _count_connections(one: Server) -> int:
    with psycopg.connect(one.url) as db:
        return int(db.execute(COUNT_CONNECTIONS).fetchall()[0][0])


def _count_lock_waiters(one: Server) -> int:
    with psycopg.connect(one.url) as db:
        return int(db.execute(COUNT_LOCK_WAITERS).fetchall()[0][0])


def _count_borrowed(store: PostgresStore) -> int:
    """Return the connections in use. Uses are counted after an answer, so there may be some for a moment."""
    stats = store._server.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def _wait_until(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + HANG_SECONDS
    while not check() and time.monotonic() < deadline:
        time.sleep(0.05)
    return check()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of a caller if all connections are in use, and after how many seconds it came."""

    message: str
    seconds: float


def exhaust_pool(connections: int = 2, wait_seconds: float = 1.0) -> Refusal:
    """Let all connections wait for a lock, and check that the next search is refused and works again later."""
    with start_server(find_plain_build()) as one:
        store = PostgresStore(one.url, "notes", connections=connections, wait_seconds=wait_seconds)
        with Waylore(store) as waylore, ThreadPoolExecutor(connections) as threads:
            waylore.add("note")
            with psycopg.connect(one.url) as holder:
                holder.execute(LOCK_TABLE)
                held = [threads.submit(store.lexical, "note", top_k=1) for _ in range(connections)]
                _wait_until(lambda: _count_lock_waiters(one) == connections)
                refused = _search_refused(waylore)
            assert all(len(each.result()) == 1 for each in held)
            assert waylore.search("note", record_use=False).hits
            return refused


def _search_refused(waylore: Waylore) -> Refusal:
    begun = time.monotonic()
    try:
        waylore.search("note", record_use=False)
    except StoreUnavailable as error:
        return Refusal(str(error), time.monotonic() - begun)
    return Refusal("", 0.0)
