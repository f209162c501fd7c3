"""A channel to one cell: runs reads in its own threads, with a time limit, a second attempt and a breaker.

A cell that hangs blocks only the threads of its own channel. If a read fails, or takes longer than the cell's reads
usually take, a second attempt starts and the first answer counts. After several failures in a row the circuit breaker
stops reads of the cell for a while, then lets one read through to test it. (pybreaker counts exceptions, but most
failures here are calls that never return, so the breaker is our own.) The threads are daemons, because Python's
ThreadPoolExecutor would wait for a hanging thread when the process ends. A channel runs any read; writes do not use it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from waylore.config import CellsConfig
from waylore.deadline import limit_wait
from waylore.errors import StoreError, StoreUnavailable

T = TypeVar("T")
MAX_RECENT_READS = 128  # number of recent read times for the 95th percentile
MAX_ABANDONED_THREADS = 64  # maximum threads that hang in one cell; then no more reads are started
Task = tuple["Future[Any]", Callable[[], Any]]


class Workers:
    """Daemon threads that run submitted calls. They are started on demand."""

    def __init__(self, name: str, max_threads: int) -> None:
        self._name = name
        self._max_threads = max_threads
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        self.threads: list[threading.Thread] = []

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """Run a call in a thread."""
        future: Future[T] = Future()
        with self._lock:
            self._unfinished += 1
            self._tasks.put((future, partial(copy_context().run, call)))
            if len(self.threads) < min(self._unfinished, self._max_threads):
                thread = threading.Thread(target=self._run, name=f"waylore {self._name}", daemon=True)
                self.threads.append(thread)
                thread.start()
        return future

    def stop(self) -> None:
        """End each thread after its current call. Does not wait for the threads."""
        for _ in self.threads:
            self._tasks.put(None)

    def _run(self) -> None:
        while task := self._tasks.get():
            future, call = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 (it is raised where the answer is read)
                    future.set_exception(error)
            del task, future, call  # an idle thread must not keep the last result alive
            with self._lock:
                self._unfinished -= 1


class CircuitBreaker:
    """Stops reads of a cell after failures in a row, then lets one read through after each rest."""

    def __init__(self, config: CellsConfig) -> None:
        self._config = config
        self._failures = 0
        self._next_try = 0.0

    @property
    def is_open(self) -> bool:
        """Whether reads are stopped, except for one read after each rest."""
        return self._failures >= self._config.failures

    def allows_read(self) -> bool:
        """Return whether the cell may be read now."""
        now = time.monotonic()
        if self.is_open and now < self._next_try:
            return False
        self._next_try = now + self._config.rest_seconds
        return True

    def record_success(self) -> None:
        """Close the breaker: the cell has answered."""
        self._failures = 0

    def record_failure(self) -> bool:
        """Count a failure. Return True if the breaker is open now."""
        self._failures += 1
        self._next_try = time.monotonic() + self._config.rest_seconds
        return self.is_open


class Channel:
    """Runs the reads of one cell, or of the catalogue.

    When the threads of a channel are abandoned because they hang, `generation` grows. Stores that were opened
    in an earlier generation should be opened again, because their connections may hang, too.
    """

    def __init__(self, name: str, config: CellsConfig) -> None:
        self.name = name
        self.config = config
        self.generation = 0
        self._breaker = CircuitBreaker(config)
        self._workers = Workers(name, config.threads)
        self._abandoned: list[threading.Thread] = []
        self._read_seconds: deque[float] = deque(maxlen=MAX_RECENT_READS)
        self._lock = threading.Lock()

    def start_read(self, call: Callable[[], T], *, attempts: int = 2) -> "PendingRead[T]":
        """Start a call in the cell. Pass `attempts=1` for a call that must not run twice."""
        with self._lock:
            self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
            is_allowed = len(self._abandoned) < MAX_ABANDONED_THREADS and self._breaker.allows_read()
            return PendingRead(self, self._workers, call, max_attempts=attempts if is_allowed else 0)

    def get_hedge_delay(self) -> float:
        """Return the 95th percentile of recent read times, at least `hedge_seconds`."""
        recent = sorted(self._read_seconds)
        return max(self.config.hedge_seconds, recent[len(recent) * 95 // 100] if recent else 0.0)

    def record_success(self, seconds: float) -> None:
        """Record an answer of the cell after `seconds`."""
        with self._lock:
            self._read_seconds.append(seconds)
            self._breaker.record_success()

    def record_failure(self, workers: Workers) -> None:
        """Record that the cell has not answered. If that opens the breaker, abandon the waiting threads."""
        with self._lock:
            if self._breaker.record_failure() and workers is self._workers:
                self._workers.stop()
                self._abandoned += self._workers.threads
                self._workers = Workers(self.name, self.config.threads)
                self.generation += 1

    def stop(self) -> None:
        """End the threads, each after its current call."""
        self._workers.stop()


class PendingRead(Generic[T]):
    """A read in progress: one attempt, a second one if the first fails or is late, and a deadline for both."""

    def __init__(self, channel: Channel, workers: Workers, call: Callable[[], T], *, max_attempts: int) -> None:
        self._channel = channel
        self._workers = workers
        self._call = call
        self._max_attempts = max_attempts
        self._started = time.monotonic()
        self._hedge_at = self._started + channel.get_hedge_delay()
        self._deadline = self._started + limit_wait(channel.config.read_seconds)
        self._answer: T | None = None
        self.attempts: list[Future[T]] = []
        self.error: Exception | None = None
        self.is_settled = False
        if max_attempts:
            self.attempts.append(workers.submit(call))
        else:
            self._fail(
                StoreUnavailable(
                    f"{channel.name} failed too often and is not read for {channel.config.rest_seconds:g} s"
                )
            )

    @property
    def answer(self) -> T:
        """The answer of the cell. Raises the error if the read failed."""
        if self.error is not None:
            raise self.error
        return self._answer  # type: ignore[return-value]

    def poll(self) -> float:
        """Take an answer or an error, or start the second attempt if it is due. Return the time of the next poll."""
        done = [attempt for attempt in self.attempts if attempt.done()]
        answered = [attempt for attempt in done if attempt.exception() is None]
        now = time.monotonic()
        if answered:
            self._answer = answered[0].result()
            self.is_settled = True
            self._channel.record_success(now - self._started)
        elif not_from_store := [a.exception() for a in done if not isinstance(a.exception(), StoreError)]:
            self._settle(not_from_store[0])  # a mistake of the caller, not of the cell
        elif len(done) == self._max_attempts or now >= self._deadline:
            self._give_up(done)
        elif len(self.attempts) < self._max_attempts and (done or now >= self._hedge_at):
            self.attempts.append(self._workers.submit(self._call))
        is_last_attempt = len(self.attempts) == self._max_attempts
        return self._deadline if is_last_attempt else min(self._hedge_at, self._deadline)

    def _give_up(self, done: Sequence["Future[T]"]) -> None:
        for attempt in self.attempts:
            attempt.cancel()
        self._channel.record_failure(self._workers)
        cause = done[0].exception() if done else None
        seconds = self._channel.config.read_seconds
        reason = str(cause) if cause else f"did not answer within {seconds:g} s"
        self._fail(StoreUnavailable(f"{self._channel.name}: {reason}"), cause)

    def _fail(self, error: Exception, cause: BaseException | None = None) -> None:
        error.__cause__ = cause
        self._settle(error)

    def _settle(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, Exception):
            raise error
        self.error = error
        self.is_settled = True


def settle(reads: Sequence[PendingRead[T]]) -> None:
    """Wait until every read has an answer or an error."""
    while unsettled := [read for read in reads if not read.is_settled]:
        next_poll = min(read.poll() for read in unsettled)
        attempts = [attempt for read in unsettled if not read.is_settled for attempt in read.attempts]
        running = [attempt for attempt in attempts if not attempt.done()]
        if running and len(running) == len(attempts):
            wait(running, timeout=max(next_poll - time.monotonic(), 0.0), return_when=FIRST_COMPLETED)
