"""The queue of jobs in memory, for a service over a file: one thread of the process runs one job at a time.

A file has one writer at a time, so more threads would only wait for each other. Jobs of one collection run in
the order in which they came, as on PostgreSQL. A job that waits for a retry holds up later jobs of its own
collection only, because an older upload must not overwrite a newer one. Waiting jobs are lost when the
process ends, like the table of jobs (`memory.py`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Any

from waylore.errors import ConfigError
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.runner import JobRunner, RetryLater


@dataclass(slots=True)
class QueuedJob:
    """An unfinished job in the queue, running or waiting until the monotonic time `due`."""

    number: int
    id: str
    collection: str
    due: float = 0.0
    attempts: int = 0  # runs that ended without a result


class ThreadQueue:
    """Jobs in the order in which they came. `processes` is the number of processes that answer requests."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._jobs: dict[int, QueuedJob] = {}  # by number, oldest first
        self._last_number = 0
        self._is_closed = False
        self._changed = Condition()

    def prepare(self, job: Job) -> Callable[[Any], int]:
        """Return a function that puts a job into the queue and returns its number."""
        if self._processes > 1:
            raise ConfigError(
                "a store in a file runs jobs in one process only; set http.workers to 1, or use PostgreSQL"
            )

        def put(_: Any) -> int:
            with self._changed:
                self._last_number += 1
                self._jobs[self._last_number] = QueuedJob(self._last_number, job.id, job.collection)
                self._changed.notify()
                return self._last_number

        return put

    def drop(self, transaction: Any, number: int) -> None:  # noqa: ARG002 (only PostgreSQL has transactions)
        """Remove a job from the queue, if it is there."""
        with self._changed:
            self._jobs.pop(number, None)
            self._changed.notify()

    def take(self) -> QueuedJob | None:
        """Wait for the next job that is due and return it. It stays in the queue. Return None after `close`."""
        with self._changed:
            while not self._is_closed:
                first = self._list_first_of_collections()
                now = time.monotonic()
                if ready := next((job for job in first if job.due <= now), None):
                    return ready
                self._changed.wait(min((job.due for job in first), default=now + 3_600.0) - now)
        return None

    def delay(self, job: QueuedJob, seconds: float) -> None:
        """Let a job wait for its next run."""
        with self._changed:
            job.attempts += 1
            job.due = time.monotonic() + seconds

    def close(self) -> None:
        """Make `take` return None from now on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _list_first_of_collections(self) -> list[QueuedJob]:
        """Return the oldest job of each collection, oldest first."""
        first: dict[str, QueuedJob] = {}
        for job in self._jobs.values():
            first.setdefault(job.collection, job)
        return list(first.values())


@asynccontextmanager
async def run_jobs(jobs: JobRunner, queue: ThreadQueue) -> AsyncIterator[None]:
    """Run jobs while the block runs. A job that runs when the block ends stops after its next step."""
    worker = asyncio.create_task(asyncio.to_thread(_work, jobs, queue))
    try:
        yield
    finally:
        jobs.stopping.set()
        queue.close()
        await worker


def _work(jobs: JobRunner, queue: ThreadQueue) -> None:
    """Run jobs until the queue is closed. A failed run is rescheduled, so the thread is free for others."""
    while (queued := queue.take()) is not None:
        try:
            jobs.run(queued.id, queued.attempts)
        except RetryLater as retry:
            queue.delay(queued, retry.seconds)
        else:
            queue.drop(None, queued.number)
