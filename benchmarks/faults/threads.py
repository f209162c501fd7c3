"""Many threads of one process on one server: how throughput grows, what limits it, and that no connection leaks."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import psutil
import psycopg
from tools.postgres import Server, plain, server

from benchmarks.faults.load import ask
from benchmarks.faults.notes import Ledger
from benchmarks.faults.servers import Size, opened
from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore

THREADS = (1, 2, 4, 8, 16, 24)
BUSY = 0.85  # of a core, or of all of them, counts as busy: also what others use
CONNECTED = """
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()
"""

LOCK = "LOCK TABLE waylore.collections IN ACCESS EXCLUSIVE MODE"


@dataclass(frozen=True, slots=True)
class Throughput:
    """What so many threads achieved, and how many cores each side used meanwhile."""

    threads: int
    searches: float  # a second
    python: float
    postgres: float
    idle: float
    wrong: tuple[str, ...]

    @property
    def limit(self) -> str:
        """Who has no more to give."""
        if self.python >= BUSY:
            return "Python, one core"
        cores = len(os.sched_getaffinity(0))
        return "the machine has no core left" if self.idle < (1 - BUSY) * cores else "waiting for answers"


@dataclass(frozen=True, slots=True)
class Crowd:
    """What came of all numbers of threads, and the connections to the server before, during and after."""

    throughputs: Sequence[Throughput]
    before: int
    most: int
    after: int
    is_whole: bool  # whether the pool had all of its connections back


def crowded(size: Size, numbers: Sequence[int] = THREADS) -> Crowd:
    """Search from 1, 2, 4, … threads at once, each as fast as it can."""
    with server(plain()) as one:
        before, found, most = _connected(one), [], 0
        with opened(one.url, size) as (waylore, store, load):
            for number in numbers:
                found.append(
                    _throughput(one, waylore, load.waylores[0][1], number, size.seconds / len(numbers))
                )
                most = max(most, _connected(one))
            is_whole = _until(lambda: _in_use(store) == 0)
        # The server takes a moment to see that one is gone, also of those who ask it.
        after = before if _until(lambda: _connected(one) == before) else _connected(one)
        return Crowd(found, before, most, after, is_whole)


def _throughput(one: Server, waylore: Waylore, ledger: Ledger, number: int, seconds: float) -> Throughput:
    over, wrong, counts = threading.Event(), list[str](), [0] * number

    def work(own: int) -> None:
        chance = Random(own)
        while not over.is_set():
            wrong.extend(filter(None, [ask(waylore, [ledger], ledger, "chain", chance)[0]]))
            counts[own] += 1

    before, begun = _cores(one), time.monotonic()
    with ThreadPoolExecutor(number) as threads:
        running = [threads.submit(work, own) for own in range(number)]
        time.sleep(seconds)
        over.set()
        for each in running:
            each.result()
    after, took = _cores(one), time.monotonic() - begun
    python, postgres, idle = ((b - a) / took for a, b in zip(before, after, strict=True))
    return Throughput(number, sum(counts) / took, python, postgres, idle, tuple(wrong))


def _cores(one: Server) -> tuple[float, float, float]:
    """Seconds of processor that this process and the server with all its processes used so far, and none did."""
    own = psutil.Process().cpu_times()
    assert one._process
    first = psutil.Process(one._process.pid)
    total = 0.0
    for process in [first, *first.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system
    return own.user + own.system, total, psutil.cpu_times().idle


def _connected(one: Server) -> int:
    with psycopg.connect(one.url) as db:
        return int(db.execute(CONNECTED).fetchall()[0][0])


def _in_use(store: PostgresStore) -> int:
    """Connections that are lent by the pool; uses are counted after the answer, so some may be for a moment."""
    stats = store._server.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def _until(is_so: Callable[[], bool], patience: float = 10.0) -> bool:
    latest = time.monotonic() + patience
    while not is_so() and time.monotonic() < latest:
        time.sleep(0.05)
    return is_so()


@dataclass(frozen=True, slots=True)
class Refused:
    """What one is told who finds no connection free, and after how long."""

    message: str
    seconds: float


def exhausted(connections: int = 2, wait_seconds: float = 1.0) -> Refused:
    """All connections wait for a lock that a stranger holds; the next one who asks is refused, and served later."""
    with server(plain()) as one:
        store = PostgresStore(one.url, "notes", connections=connections, wait_seconds=wait_seconds)
        with Waylore(store) as waylore, ThreadPoolExecutor(connections) as threads:
            waylore.add("note")
            with psycopg.connect(one.url) as stranger:
                stranger.execute(LOCK)
                held = [threads.submit(store.lexical, "note", top_k=1) for _ in range(connections)]
                time.sleep(0.5)  # until both have a connection, and wait
                refused = _refused(waylore)
            assert all(len(each.result()) == 1 for each in held)
            assert waylore.search("note", count_use=False).hits
            return refused


def _refused(waylore: Waylore) -> Refused:
    begun = time.monotonic()
    try:
        waylore.search("note", count_use=False)
    except StoreUnavailable as error:
        return Refused(str(error), time.monotonic() - begun)
    return Refused("", 0.0)
