"""The deadline of the current request or job. Threads and tasks inherit it through a context variable.

A `Deadline` is the time at which a request must end, or the cancellation of a job. Work calls `check_deadline` between
two steps. A wait for another program is limited by `limit_wait`; if the wait takes no limit, `watch` ends it from
another thread. A write calls `commit_in_time` last: if the time is up, it raises, and the write is rolled back. This
module knows neither HTTP nor databases.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from threading import Condition, Lock, Thread
from typing import TypeVar

from waylore.errors import DeadlineExceeded, StoreUnavailable
from waylore.system import call_in_forks

MAX_RESERVE_SECONDS = 0.5  # waits for other programs end this long before the deadline, to leave time to answer
RESERVE_SHARE = 0.1  # but not more than this share of the whole time
ANSWER_SECONDS = 5.0  # time to answer after the first commit, which cannot be undone
MIN_WAIT_SECONDS = 0.001  # limit of a wait without time left: some libraries take 0 for no limit
T = TypeVar("T")


class Deadline:
    """The time at which work must end, in seconds from now; with None it ends only if it is cancelled."""

    def __init__(self, seconds: float | None = None) -> None:
        self._lock = Lock()
        self._is_cancelled = False
        self._commits = 0  # commits that run now
        self._has_committed = False
        self.waiting_for = ""  # the thing that the work waits for, or waited for when its time was up
        self.restart(seconds)

    def restart(self, seconds: float | None) -> None:
        """Give the work a new limit in seconds from now."""
        self._ends = inf if seconds is None else time.monotonic() + seconds
        self._reserve = 0.0 if seconds is None else min(MAX_RESERVE_SECONDS, RESERVE_SHARE * seconds)

    @property
    def remaining(self) -> float:
        """The remaining seconds; infinite without a limit."""
        return self._ends - time.monotonic()

    @property
    def wait_ends(self) -> float:
        """When a wait for another program must end, on the clock of `time.monotonic`."""
        return -inf if self._is_cancelled else self._ends - self._reserve

    @property
    def statement_seconds(self) -> float:
        """The time limit to pass to another program that enforces it itself; infinite without a limit."""
        return self._ends - 2 * self._reserve - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the work must end."""
        return self._is_cancelled or time.monotonic() >= self._ends

    @property
    def is_ending(self) -> bool:
        """Whether waits for other programs have ended or are about to end."""
        return time.monotonic() >= self.wait_ends - self._reserve

    def cancel(self) -> None:
        """End the work after its current step."""
        self._is_cancelled = True
        _watcher.look()

    def expire(self) -> bool:
        """End the work if its time is up and no commit is running. Return whether it has ended."""
        with self._lock:
            if self._commits or not self.is_over:
                return False
            self._is_cancelled = True
            return True

    def check(self) -> None:
        """If the work must end, raise DeadlineExceeded, or StoreUnavailable if it only waited."""
        if self.is_over:
            raise self.make_error()

    def make_error(self) -> DeadlineExceeded | StoreUnavailable:
        """Return the error for unfinished work: it took too long, or only waited."""
        if self._has_committed:
            return DeadlineExceeded("the time limit passed after a part was written; it is safe to repeat the call")
        if self.waiting_for:
            return StoreUnavailable(f"{self.waiting_for} did not come within the time limit; try again later")
        return DeadlineExceeded()

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Commit within the block. Raise DeadlineExceeded instead of entering it if the work must end."""
        with self._lock:
            self.check()
            self._commits += 1
        try:
            yield
            self._record_commit()
        finally:
            with self._lock:
                self._commits -= 1

    def _record_commit(self) -> None:
        """Leave time to answer: a commit is not undone, so an error would be wrong."""
        with self._lock:
            self._ends += 0.0 if self._has_committed else ANSWER_SECONDS
            self._has_committed = True

    @contextmanager
    def activate(self) -> Iterator["Deadline"]:
        """Make this the deadline of the block, and of the threads and tasks that inherit its context."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def get_deadline() -> Deadline | None:
    """Return the deadline of the current work; None if it has none."""
    return _current.get()


def restart_deadline(seconds: float | None) -> None:
    """Give the current work a new limit in seconds from now; None removes the limit."""
    deadline = _current.get()
    if deadline is not None:
        deadline.restart(seconds)


def wait_for_thread(call: Callable[[], T]) -> Callable[[], T]:
    """Wrap a call for another thread. Until the thread begins it, the current work waits for a free thread."""
    deadline = _current.get()
    if deadline is None:
        return call

    def begin() -> T:
        deadline.check()
        deadline.waiting_for = ""
        return call()

    deadline.waiting_for = "a free thread"
    return begin


@contextmanager
def wait_for(what: str) -> Iterator[None]:
    """Record what the block waits for: the reason in the error if the time of the current work runs out."""
    deadline = _current.get() or Deadline()
    deadline.waiting_for = what
    try:
        yield
    finally:
        if not deadline.is_ending:
            deadline.waiting_for = ""


def check_deadline() -> None:
    """Raise DeadlineExceeded if the current work must end."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def check_each(items: Iterable[T]) -> Iterator[T]:
    """Yield items, and check the deadline before each of them."""
    for item in items:
        check_deadline()
        yield item


def is_over() -> bool:
    """Return whether the current work must end."""
    deadline = _current.get()
    return deadline is not None and deadline.is_over


def is_ending() -> bool:
    """Return whether the current work has no time left to wait for another program."""
    deadline = _current.get()
    return deadline is not None and deadline.is_ending


def limit_wait(seconds: float) -> float:
    """Return how long the current work may wait for another program: `seconds`, or the remaining time if shorter."""
    deadline = _current.get()
    if deadline is None:
        return seconds
    return max(min(seconds, deadline.wait_ends - time.monotonic()), MIN_WAIT_SECONDS)


@contextmanager
def commit_in_time() -> Iterator[None]:
    """Commit within the block. If the current work must end, raise DeadlineExceeded instead."""
    deadline = _current.get()
    if deadline is None:
        yield
        return
    with deadline.commit():
        yield


@contextmanager
def watch(end: Callable[[], None], what: str) -> Iterator[None]:
    """Call `end` from another thread if the time for waiting runs out while the block runs.

    It is never called after the block.
    """
    deadline = _current.get()
    if deadline is None:
        yield
        return
    _watcher.add(end, deadline, what)
    try:
        yield
    finally:
        _watcher.remove(end)


class _Watcher:
    """The thread of the process that ends waits whose time is up. It sleeps until the next one is due."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin without a thread. A forked process has the memory of its parent, but not the thread."""
        self._watched: dict[Callable[[], None], tuple[Deadline, str]] = {}
        self._condition = Condition()
        self._wakes_at = inf
        self._thread: Thread | None = None

    def add(self, end: Callable[[], None], deadline: Deadline, what: str) -> None:
        with self._condition:
            self._watched[end] = (deadline, what)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="waylore-deadlines", daemon=True)
                self._thread.start()
            self._wake_by(deadline.wait_ends)

    def remove(self, end: Callable[[], None]) -> None:
        with self._condition:
            self._watched.pop(end, None)

    def look(self) -> None:
        """Look for cancelled work now."""
        with self._condition:
            if self._watched:
                self._wake_by(-inf)

    def _wake_by(self, moment: float) -> None:
        if moment < self._wakes_at:
            self._wakes_at = moment
            self._condition.notify()

    def _run(self) -> None:
        with self._condition:  # held while a wait is ended, so that no removed wait is ended
            while True:
                seconds = self._wakes_at - time.monotonic()
                if seconds > 0:
                    self._condition.wait(None if seconds == inf else seconds)
                    continue
                self._end_due(time.monotonic())
                self._wakes_at = min((deadline.wait_ends for deadline, _ in self._watched.values()), default=inf)

    def _end_due(self, now: float) -> None:
        due = {end: each for end, each in self._watched.items() if each[0].wait_ends <= now}
        for end, (deadline, what) in due.items():
            del self._watched[end]
            deadline.waiting_for = what
            end()


_watcher = _Watcher()
call_in_forks(_watcher.reset)
