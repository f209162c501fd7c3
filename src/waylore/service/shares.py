"""Threads that callers share: callers take turns, and no caller can occupy all threads or fill the queue.

A caller has at most a quarter of the threads while other callers need threads. A single caller has all of them except
for some extra threads, so a new caller never waits for the calls of another one. No library for Python does this in one
process: fair queues belong to brokers such as Temporal and Celery.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from waylore.deadline import wait_for_thread
from waylore.errors import StoreUnavailable

MAX_WAITING_CALLS = 16  # queued calls of one caller
MAX_QUEUED_CALLS = 256  # queued calls of all callers
ACTIVE_SECONDS = 2.0  # a caller counts as active this long after its last call
SERVICE = ""  # caller of the service's own calls, which are never refused
T = TypeVar("T")


class TooManyWaiting(StoreUnavailable):
    """Too many requests of yours are waiting; try again when some of them were answered."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call that waits or runs. Calls with the same `alone`, unless empty, do not run at the same time."""

    caller: str
    alone: str
    run: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class SharedThreads:
    """A pool of `threads` threads, and a quarter more for callers that have few calls running."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = threads
        self._share = max(1, threads // 4)
        self._all_threads = threads + threads // 4
        self._pool = ThreadPoolExecutor(self._all_threads, thread_name_prefix=name)
        self._waiting: dict[str, deque[_Call]] = {}  # by caller; the caller whose turn is next comes first
        self._running: Counter[str] = Counter()  # by caller
        self._running_alone: set[str] = set()
        self._last_seen: dict[str, float] = {}  # monotonic times by caller, oldest first
        self._lock = Lock()

    async def run(
        self, caller: str, call: Callable[[], T], *, alone: str = "", max_waiting: int = MAX_WAITING_CALLS
    ) -> T:
        """Run a call in a thread, with the context variables of the request."""
        call = partial(copy_context().run, wait_for_thread(call))
        return await asyncio.wrap_future(self.submit(caller, call, alone=alone, max_waiting=max_waiting))

    def submit(
        self, caller: str, call: Callable[[], T], *, alone: str = "", max_waiting: int = MAX_WAITING_CALLS
    ) -> Future[T]:
        """Queue a call, to run when it is its turn. Raise TooManyWaiting if too many calls of the caller wait."""
        added = _Call(caller, alone, call)
        with self._lock:
            self._check_waiting(caller, max_waiting)
            self._waiting.setdefault(caller, deque()).append(added)
            self._mark_active(caller)
            self._start_calls()
        return added.future

    def close(self) -> None:
        """Cancel waiting calls, and wait until the running ones end."""
        with self._lock:
            waiting = [call for queue in self._waiting.values() for call in queue]
            self._waiting.clear()
        for call in waiting:
            call.future.cancel()
        self._pool.shutdown(wait=True)

    def _check_waiting(self, caller: str, max_waiting: int) -> None:
        if caller == SERVICE:
            return
        if caller in self._waiting:  # cancelled requests in the queue do not count
            self._waiting[caller] = deque(call for call in self._waiting[caller] if not call.future.cancelled())
        count = len(self._waiting.get(caller, ()))
        if count >= max_waiting:
            raise TooManyWaiting(f"{count} requests of yours are waiting; try again when some were answered")
        if sum(map(len, self._waiting.values())) + self._running.total() >= MAX_QUEUED_CALLS:
            raise StoreUnavailable(f"{MAX_QUEUED_CALLS} requests are waiting; try again in a second")

    def _start_calls(self) -> None:
        while call := self._take_next():
            self._running[call.caller] += 1
            if call.alone:
                self._running_alone.add(call.alone)
            self._pool.submit(self._run, call)

    def _take_next(self) -> _Call | None:
        """Remove the next call that may start from its queue, and make its caller the last in turn."""
        for caller, queue in self._waiting.items():
            call = next((call for call in queue if call.alone not in self._running_alone), None)
            if call is not None and self._may_start(caller):
                queue.remove(call)
                del self._waiting[caller]
                if queue:
                    self._waiting[caller] = queue
                return call
        return None

    def _may_start(self, caller: str) -> bool:
        total = self._running.total()
        if self._running[caller] < self._share:
            return total < self._all_threads
        return total < self._threads and not self._is_needed_by_others(caller)

    def _is_needed_by_others(self, caller: str) -> bool:
        """Return whether another caller was active lately and has less than its share of the threads."""
        active = {*self._last_seen, *self._running, *self._waiting} - {caller, SERVICE}
        return any(self._running[other] < self._share for other in active)

    def _mark_active(self, caller: str) -> None:
        self._last_seen.pop(caller, None)
        now = self._last_seen[caller] = monotonic()
        while now - self._last_seen[oldest := next(iter(self._last_seen))] > ACTIVE_SECONDS:
            del self._last_seen[oldest]

    def _run(self, call: _Call) -> None:
        if not call.future.set_running_or_notify_cancel():
            self._finish(call)
            return
        try:
            result = call.run()
        except BaseException as error:  # noqa: BLE001 (the caller of the future gets every error)
            self._finish(call)
            call.future.set_exception(error)
        else:
            self._finish(call)
            call.future.set_result(result)

    def _finish(self, call: _Call) -> None:
        """Release the thread before the result is set, so that the next call of the same caller need not wait."""
        with self._lock:
            self._running[call.caller] -= 1
            if not self._running[call.caller]:
                del self._running[call.caller]
            self._running_alone.discard(call.alone)
            self._mark_active(call.caller)
            self._start_calls()
