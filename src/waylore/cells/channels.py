"""The line to a cell: reads in threads of its own, with a limit of time, a second try, and a breaker.

A cell that hangs fills its own threads and no others'. A read that fails, or is later than the cell's reads
usually are, is tried a second time, and the first answer counts. After some failures in a row the cell is left
alone for a while; then one read tries it. (pybreaker counts what a call raises, but what fails here is mostly
a call that does not come back, so the breaker is our own.) Threads are daemons: Python's own pool would wait
for a hanging one when the process ends. Nothing here knows what is asked; writes do not go this way.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from waylore.config import Cells
from waylore.errors import StoreError, StoreUnavailable

T = TypeVar("T")
RECENT = 128  # reads by which it is told what is late
ABANDONED = 64  # threads that hang in one cell, above which no more are risked
Task = tuple["Future[Any]", Callable[[], Any]]


class Workers:
    """Daemon threads that run what is submitted, started as they are needed."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._counting = threading.Lock()
        self._under_way = 0
        self.threads: list[threading.Thread] = []

    def submit(self, verb: Callable[[], T]) -> "Future[T]":
        """Have a thread run it."""
        future: Future[T] = Future()
        with self._counting:
            self._under_way += 1
            self._tasks.put((future, verb))
            if len(self.threads) < min(self._under_way, self._most):
                thread = threading.Thread(target=self._run, name=f"waylore {self._name}", daemon=True)
                self.threads.append(thread)
                thread.start()
        return future

    def end(self) -> None:
        """Let threads end when they are done with what they do."""
        for _ in self.threads:
            self._tasks.put(None)

    def _run(self) -> None:
        while task := self._tasks.get():
            future, verb = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(verb())
                except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
                    future.set_exception(error)
            del task, future, verb  # an idle thread holds on to nothing
            with self._counting:
                self._under_way -= 1


class Breaker:
    """Leaves a cell alone after failures in a row, and lets one read try it again after a rest."""

    def __init__(self, config: Cells) -> None:
        self._config = config
        self._failures = 0
        self._next_try = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the cell is left alone, but for one try."""
        return self._failures >= self._config.failures

    def allows(self) -> bool:
        """Whether to ask the cell now."""
        now = time.monotonic()
        if self.is_open and now < self._next_try:
            return False
        self._next_try = now + self._config.rest_seconds
        return True

    def succeeded(self) -> None:
        """The cell has answered."""
        self._failures = 0

    def failed(self) -> bool:
        """The cell has not answered; True if it is left alone from now on."""
        self._failures += 1
        self._next_try = time.monotonic() + self._config.rest_seconds
        return self.is_open


class Line:
    """The way to one cell, or to the catalogue, by its name.

    `generation` grows when its threads are given up: connections should be, too.
    """

    def __init__(self, name: str, config: Cells) -> None:
        self.name = name
        self.config = config
        self.generation = 0
        self._breaker = Breaker(config)
        self._workers = Workers(name, config.threads)
        self._abandoned: list[threading.Thread] = []
        self._took: deque[float] = deque(maxlen=RECENT)
        self._lock = threading.Lock()

    def ask(self, verb: Callable[[], T], *, tries: int = 2) -> "Asked[T]":
        """Begin to ask the cell something; only what may be done twice may be tried twice."""
        with self._lock:
            self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
            is_allowed = len(self._abandoned) < ABANDONED and self._breaker.allows()
            return Asked(self, self._workers, verb, most=tries if is_allowed else 0)

    def usual(self) -> float:
        """How long all but one in twenty reads took lately, or the least that is worth a second try."""
        took = sorted(self._took)
        return max(self.config.hedge_seconds, took[len(took) * 95 // 100] if took else 0.0)

    def succeeded(self, seconds: float) -> None:
        """The cell has answered within so many seconds."""
        with self._lock:
            self._took.append(seconds)
            self._breaker.succeeded()

    def failed(self, workers: Workers) -> None:
        """The cell has not answered; if that was once too often, the threads that wait for it are given up."""
        with self._lock:
            if self._breaker.failed() and workers is self._workers:
                self._workers.end()
                self._abandoned += self._workers.threads
                self._workers = Workers(self.name, self.config.threads)
                self.generation += 1

    def end(self) -> None:
        """Let the threads end."""
        self._workers.end()


class Asked(Generic[T]):
    """A read under way: one try, a second if the first fails or is late, and an end to waiting."""

    def __init__(self, line: Line, workers: Workers, verb: Callable[[], T], *, most: int) -> None:
        self._line = line
        self._workers = workers
        self._verb = verb
        self._most = most
        self._begun = time.monotonic()
        self._late = self._begun + line.usual()
        self._deadline = self._begun + line.config.read_seconds
        self._answer: T | None = None
        self.tries: list[Future[T]] = []
        self.error: Exception | None = None
        self.is_settled = False
        if most:
            self.tries.append(workers.submit(verb))
        else:
            self._fail(StoreUnavailable(f"{line.name} has failed too often and is left alone for a while"))

    @property
    def answer(self) -> T:
        """What the cell said; raises what went wrong, if something did."""
        if self.error is not None:
            raise self.error
        return self._answer  # type: ignore[return-value]

    def look(self) -> float:
        """Settle it if it can be, send a second try if that is due; return when to look again."""
        done = [attempt for attempt in self.tries if attempt.done()]
        answered = [attempt for attempt in done if attempt.exception() is None]
        now = time.monotonic()
        if answered:
            self._answer = answered[0].result()
            self.is_settled = True
            self._line.succeeded(now - self._begun)
        elif foreign := [a.exception() for a in done if not isinstance(a.exception(), StoreError)]:
            self._settle(foreign[0])
        elif len(done) == self._most or now >= self._deadline:
            self._give_up(done)
        elif len(self.tries) < self._most and (done or now >= self._late):
            self.tries.append(self._workers.submit(self._verb))
        return self._deadline if len(self.tries) == self._most else min(self._late, self._deadline)

    def _give_up(self, done: Sequence["Future[T]"]) -> None:
        for attempt in self.tries:
            attempt.cancel()
        self._line.failed(self._workers)
        cause = done[0].exception() if done else None
        seconds = self._line.config.read_seconds
        why = str(cause) if cause else f"did not answer within {seconds:g} s"
        self._fail(StoreUnavailable(f"{self._line.name}: {why}"), cause)

    def _fail(self, error: Exception, cause: BaseException | None = None) -> None:
        error.__cause__ = cause
        self._settle(error)

    def _settle(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, Exception):
            raise error
        self.error = error
        self.is_settled = True


def settle(asked: Sequence[Asked[T]]) -> None:
    """Wait until every read has its answer or its error."""
    while waiting := [each for each in asked if not each.is_settled]:
        again = min(each.look() for each in waiting)
        tries = [attempt for each in waiting if not each.is_settled for attempt in each.tries]
        pending = [attempt for attempt in tries if not attempt.done()]
        if pending and len(pending) == len(tries):
            wait(pending, timeout=max(again - time.monotonic(), 0.0), return_when=FIRST_COMPLETED)
