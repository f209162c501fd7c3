"""The queue of jobs of a service over a file: one thread of its process does them, one after the other.

A file has one writer at a time, so more threads would only wait for each other. What waits is lost when the
process ends, as the table of its jobs is (`jobs_memory`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Any

from waylore.errors import ConfigError
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.runner import Again, Jobs


class ThreadQueue:
    """Jobs in the order in which they came; `processes` are those that answer, of which one would have them."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.waiting: SimpleQueue[str | None] = SimpleQueue()

    def put(self, job: Job) -> Callable[[Any], int]:
        """What puts a job into the queue."""
        if self._processes > 1:
            raise ConfigError(
                "over a file, jobs live in one process: set http.workers to 1, or use a store in PostgreSQL"
            )

        def put(_: Any) -> int:
            self.waiting.put(job.id)
            return 0

        return put

    def drop(self, transaction: Any, number: int) -> object:
        """Nothing: a job that is over is passed over in its turn."""


@asynccontextmanager
async def working(jobs: Jobs, queue: ThreadQueue) -> AsyncIterator[None]:
    """Do jobs as long as the block lasts; the one that runs then stops at its next step."""
    done = asyncio.create_task(asyncio.to_thread(_work, jobs, queue))
    try:
        yield
    finally:
        jobs.stopping.set()
        queue.waiting.put(None)
        await done


def _work(jobs: Jobs, queue: ThreadQueue) -> None:
    while (id_ := queue.waiting.get()) is not None and not jobs.stopping.is_set():
        _insist(jobs, id_)


def _insist(jobs: Jobs, id_: str) -> None:
    tries = 0
    while not jobs.stopping.is_set():
        try:
            jobs.do(id_, tries)
        except Again as again:
            tries += 1
            jobs.stopping.wait(again.seconds)
        else:
            return
