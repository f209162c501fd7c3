"""Send requests at a rate, and check each answer when it arrives.

Requests are sent when they are due, whether or not earlier ones were answered, like those of independent
callers. Only if MAX_WAITING_REQUESTS are waiting, requests that become due are not sent. A request ends with an
answer, an error or a wrong answer. An answer that reports missing parts is partial, and only the hits that it
has are checked. Faults are caused by other modules.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from benchmarks.faults.notes import EMBEDDER, Ledger, Note, StoreCheck, index_note, parse_note
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound, WayloreError
from waylore.indexing import pipeline
from waylore.types.author import OWNER
from waylore.types.search import SearchResult

MAX_WAITING_REQUESTS = 200  # at the same time, each in a thread
SECRET = "hunter2"  # password in addresses, which no error may contain


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has ended."""

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
    """The requests of callers during a fault, and the check of the store. `since` is when the fault ended."""

    fault: str
    requests: Sequence[Request]
    store_check: StoreCheck
    since: float
    notes: list[str] = field(default_factory=list)

    @property
    def errors(self) -> Counter[str]:
        """The number of errors by their class and that of their cause."""
        return Counter(describe_error(r.error) for r in self.requests if r.error)

    @property
    def wrong(self) -> list[str]:
        return [*(r.wrong for r in self.requests if r.wrong), *self.store_check.wrong]

    @property
    def partial(self) -> int:
        return sum(bool(r.missing) for r in self.requests)

    @property
    def rate(self) -> float:
        """Ended requests per second."""
        return len(self.requests) / (max(r.ended for r in self.requests) - min(r.begun for r in self.requests))

    @property
    def recovered(self) -> float:
        """Seconds from the end of the fault until requests were answered and no more failed."""
        after = [r for r in self.requests if r.ended >= self.since]
        failed = [r.ended for r in after if r.error or r.missing]
        good = [r.ended for r in after if r.is_answered and not r.missing]
        if not good:
            return float("inf")
        return max([min(good), *failed]) - self.since

    def find_unexplained(self, places: Sequence[str]) -> list[str]:
        """Return errors that are no WayloreError, name none of the places, or contain the password."""
        errors = [(r.error, str(r.error)) for r in self.requests if r.error]
        return [
            f"{type(error).__name__}: {text}"
            for error, text in errors
            if not isinstance(error, WayloreError) or SECRET in text or not any(p in text for p in places)
        ]


def describe_error(error: Exception) -> str:
    """Return the class name of an error and of its cause."""
    cause = error.__cause__
    return type(error).__name__ + (f" ({type(cause).__name__})" if cause else "")


@dataclass(eq=False, slots=True)
class Load:
    """Sends requests to collections at a rate until it is stopped."""

    waylores: Sequence[tuple[Waylore, Ledger]]  # each collection with the ledger of its writes
    reader: Waylore | None = None  # searches all collections; None searches each on its own
    searches: float = 40.0
    writes: float = 10.0
    methods: Sequence[str] = ("chain", "hybrid", "keyword", "keyword", "get")
    seed: int = 7
    requests: list[Request] = field(default_factory=list)
    unsent: int = 0  # because too many requests were waiting
    _waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MAX_WAITING_REQUESTS))
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def run(self) -> Iterator["Load"]:
        """Send requests while the block runs, and wait for their answers at its end."""
        with ThreadPoolExecutor(MAX_WAITING_REQUESTS) as threads:
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

    def report(self, fault: str, store_check: StoreCheck, since: float) -> Report:
        """Build the report of a fault."""
        note = f"{self.unsent} requests were not sent, because {MAX_WAITING_REQUESTS} were waiting"
        return Report(fault, self.requests, store_check, since, [note] * bool(self.unsent))

    def fill(self, notes: int) -> None:
        """Write the first notes of each collection in one transaction."""
        for waylore, ledger in self.waylores:
            first = [ledger.begin(Random(0), is_new=True) for _ in range(notes)]
            pipeline.write(waylore._store, EMBEDDER, [index_note(note) for note in first], author=OWNER)
            for note in first:
                ledger.end(note, is_acknowledged=True)

    def _pace(self, threads: ThreadPoolExecutor, rate: float, send: Callable[[Random], None], seed: int) -> None:
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
            method,
            lambda: search_note(self.reader or waylore, [o for _, o in self.waylores], ledger, method, chance),
        )

    def _write(self, chance: Random) -> None:
        waylore, ledger = chance.choice(list(self.waylores))
        self._send("write", lambda: write_note(waylore, ledger, chance))

    def _send(self, kind: str, run: Callable[[], tuple[str, tuple[str, ...]]]) -> None:
        begun = time.monotonic()
        try:
            wrong, missing = run()
            request = Request(kind, begun, time.monotonic(), None, wrong, missing)
        except Exception as error:  # noqa: BLE001 - every error that reaches a caller is recorded
            request = Request(kind, begun, time.monotonic(), error)
        self.requests.append(request)
        self._waiting.release()


def write_note(waylore: Waylore, ledger: Ledger, chance: Random) -> tuple[str, tuple[str, ...]]:
    """Write a note and record whether it was acknowledged."""
    note, is_acknowledged = ledger.begin(chance), False
    try:
        is_acknowledged = waylore.add(note.text, uri=note.uri, facts=note.facts) == note.id
    finally:
        ledger.end(note, is_acknowledged=is_acknowledged)
    return "" if is_acknowledged else f"{note} got another id", ()


def search_note(
    waylore: Waylore, ledgers: Sequence[Ledger], ledger: Ledger, method: str, chance: Random
) -> tuple[str, tuple[str, ...]]:
    """Search for an acknowledged note; return the error in the answer, and what it reports as missing."""
    note = ledger.choose_acknowledged(chance)
    if note is None:
        return "", ()
    acknowledged = [(each, each.copy_acknowledged()) for each in ledgers]
    if method == "get":
        return _check_get(waylore, ledger, note, ledger.copy_acknowledged()), ()
    found = waylore.search(note.marker if method == "keyword" else note.text, method=method)
    strange = [
        hit.passage.text
        for hit in found.hits
        if not (shown := parse_note(hit.passage.text))
        or not any(each.is_allowed(shown, editions) for each, editions in acknowledged)
    ]
    if strange:
        return f"a search for {note} returned {strange[0]!r}", found.missing
    return _check_found(found, ledger, note), found.missing


def _check_found(found: SearchResult, ledger: Ledger, note: Note) -> str:
    """Return an error if a note that did not change is not found and the answer reports nothing missing."""
    is_found = any(hit.passage.text == note.text for hit in found.hits)
    if is_found or found.missing or not ledger.is_newest(note):
        return ""
    return f"{note} was acknowledged and is not among {[hit.passage.text for hit in found.hits]}"


def _check_get(waylore: Waylore, ledger: Ledger, note: Note, editions: dict[int, int]) -> str:
    try:
        got = waylore.get(note.id)
    except NotFound:
        return f"{note} was acknowledged and is not stored"
    shown = parse_note(got.passages[0].text)
    if shown is None or not ledger.is_allowed(shown, editions) or got.digest != index_note(shown).digest:
        return f"reading {note} returned {got}"
    return ""
