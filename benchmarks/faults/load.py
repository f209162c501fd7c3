"""So many requests a second, each judged when its answer comes: what was asked, how long it took, what was wrong.

Requests are sent when they are due, whether or not earlier ones were answered, as callers who know nothing of
each other send them, but for what is due while THREADS of them wait. A request ends in an answer, in an error, or in a wrong answer; an answer that says what
was missing is partial, and judged by what it shows. What goes wrong on purpose is done by others meanwhile.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from benchmarks.faults.notes import EMBEDDER, Ledger, Note, Settled, contribution, note_of
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound, WayloreError
from waylore.indexing import pipeline
from waylore.types.search import Found

THREADS = 200  # that wait for answers at once
SECRET = "hunter2"  # the password in addresses, which no error may tell


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is over."""

    kind: str
    begun: float
    ended: float
    error: Exception | None = None
    wrong: str = ""
    missing: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    @property
    def is_answered(self) -> bool:
        return self.error is None


@dataclass(slots=True)
class Report:
    """What callers saw of a fault. `since` is when it was over."""

    fault: str
    requests: Sequence[Request]
    settled: Settled
    since: float
    notes: list[str] = field(default_factory=list)

    @property
    def errors(self) -> Counter[str]:
        """Errors by what they are and what caused them."""
        return Counter(kind_of(r.error) for r in self.requests if r.error)

    @property
    def wrong(self) -> list[str]:
        return [*(r.wrong for r in self.requests if r.wrong), *self.settled.wrong]

    @property
    def partial(self) -> int:
        return sum(bool(r.missing) for r in self.requests)

    @property
    def rate(self) -> float:
        """Requests that ended, a second."""
        return len(self.requests) / (max(r.ended for r in self.requests) - min(r.begun for r in self.requests))

    @property
    def recovered(self) -> float:
        """Seconds from the end of the fault until requests were answered again, and none failed any more."""
        after = [r for r in self.requests if r.ended >= self.since]
        failed = [r.ended for r in after if r.error or r.missing]
        good = [r.ended for r in after if r.is_answered and not r.missing]
        if not good:
            return float("inf")
        return max([min(good), *failed]) - self.since

    def unexplained(self, places: Sequence[str]) -> list[str]:
        """Errors that are not ours, do not say where, or tell a password."""
        told = [(r.error, str(r.error)) for r in self.requests if r.error]
        return [
            f"{type(error).__name__}: {text}"
            for error, text in told
            if not isinstance(error, WayloreError) or SECRET in text or not any(p in text for p in places)
        ]


def kind_of(error: Exception) -> str:
    """An error by its name and that of its cause."""
    cause = error.__cause__
    return type(error).__name__ + (f" ({type(cause).__name__})" if cause else "")


@dataclass(eq=False, slots=True)
class Load:
    """Requests to collections, at a rate, until it is stopped."""

    waylores: Sequence[tuple[Waylore, Ledger]]  # each is written by its own ledger
    reader: Waylore | None = None  # who is asked for all of them; by default each for its own
    searches: float = 40.0
    writes: float = 10.0
    methods: Sequence[str] = ("chain", "hybrid", "keyword", "keyword", "get")
    seed: int = 7
    requests: list[Request] = field(default_factory=list)
    unsent: int = 0  # because too many were waiting for answers already
    _waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(THREADS))
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Send requests while the block lasts, and wait for their answers after it."""
        with ThreadPoolExecutor(THREADS) as threads:
            paces = [
                threading.Thread(target=self._pace, args=(threads, rate, send, self.seed + i))
                for i, (rate, send) in enumerate(((self.searches, self._search), (self.writes, self._write)))
                if rate
            ]
            for pace in paces:
                pace.start()
            try:
                yield self
            finally:
                self._over.set()
                for pace in paces:
                    pace.join()

    def report(self, fault: str, settled: Settled, since: float) -> Report:
        """What the callers saw."""
        unsent = [f"{self.unsent} requests were not sent, for {THREADS} were waiting"] * bool(self.unsent)
        return Report(fault, self.requests, settled, since, unsent)

    def fill(self, notes: int) -> None:
        """Write so many notes first, each collection's in one transaction."""
        for waylore, ledger in self.waylores:
            first = [ledger.begin(Random(0), is_new=True) for _ in range(notes)]
            pipeline.write(waylore._store, EMBEDDER, [contribution(note) for note in first])
            for note in first:
                ledger.end(note, is_acknowledged=True)

    def _pace(
        self, threads: ThreadPoolExecutor, rate: float, send: Callable[[Random], None], seed: int
    ) -> None:
        chance, due = Random(seed), time.monotonic()
        while not self._over.wait(max(due - time.monotonic(), 0.0)):
            if self._waiting.acquire(blocking=False):
                threads.submit(send, Random(chance.random()))
            else:
                self.unsent += 1
            due += 1 / rate

    def _search(self, chance: Random) -> None:
        waylore, ledger = chance.choice(list(self.waylores))
        method = chance.choice(list(self.methods))
        self._send(
            method, lambda: ask(self.reader or waylore, [o for _, o in self.waylores], ledger, method, chance)
        )

    def _write(self, chance: Random) -> None:
        waylore, ledger = chance.choice(list(self.waylores))
        self._send("write", lambda: write(waylore, ledger, chance))

    def _send(self, kind: str, run: Callable[[], tuple[str, tuple[str, ...]]]) -> None:
        begun = time.monotonic()
        try:
            wrong, missing = run()
            request = Request(kind, begun, time.monotonic(), None, wrong, missing)
        except Exception as error:  # noqa: BLE001 - whatever reaches a caller is what we look for
            request = Request(kind, begun, time.monotonic(), error)
        self.requests.append(request)
        self._waiting.release()


def write(waylore: Waylore, ledger: Ledger, chance: Random) -> tuple[str, tuple[str, ...]]:
    """Write a note, and remember whether it was acknowledged."""
    note, is_acknowledged = ledger.begin(chance), False
    try:
        is_acknowledged = waylore.add(note.text, uri=note.uri, facts=note.facts) == note.id
    finally:
        ledger.end(note, is_acknowledged=is_acknowledged)
    return "" if is_acknowledged else f"{note} got another identity", ()


def ask(
    waylore: Waylore, ledgers: Sequence[Ledger], ledger: Ledger, method: str, chance: Random
) -> tuple[str, tuple[str, ...]]:
    """Ask for a note that was acknowledged; say what is wrong with the answer, and what it says is missing."""
    note = ledger.known(chance)
    if note is None:
        return "", ()
    floors = [(each, each.floor()) for each in ledgers]
    if method == "get":
        return _got(waylore, ledger, note, ledger.floor()), ()
    found = waylore.search(note.marker if method == "keyword" else note.text, method=method)
    strange = [
        hit.passage.text
        for hit in found.hits
        if not (shown := note_of(hit.passage.text))
        or not any(each.explains(shown, floor) for each, floor in floors)
    ]
    if strange:
        return f"{note} was asked for, and shown was {strange[0]!r}", found.missing
    return _missed(found, ledger, note), found.missing


def _missed(found: Found, ledger: Ledger, note: Note) -> str:
    """A note that was there all along must be found, unless the answer says that something is missing."""
    is_found = any(hit.passage.text == note.text for hit in found.hits)
    if is_found or found.missing or not ledger.is_still(note):
        return ""
    return f"{note} was acknowledged and is not among {[hit.passage.text for hit in found.hits]}"


def _got(waylore: Waylore, ledger: Ledger, note: Note, floor: dict[int, int]) -> str:
    try:
        got = waylore.get(note.id)
    except NotFound:
        return f"{note} was acknowledged and is not there"
    shown = note_of(got.passages[0].text)
    if shown is None or not ledger.explains(shown, floor) or got.digest != contribution(shown).digest:
        return f"{note} was asked for, and {got} came"
    return ""
