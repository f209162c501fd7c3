"""The background of a service: its jobs, the folder of its uploads, and whoever does the jobs.

On PostgreSQL jobs wait in a queue that all processes share; over a file, one thread of the process does them.
What a service asks of them is the same. What is old is swept away once an hour.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from waylore.errors import StoreError
from waylore.providers.optional import needing
from waylore.service.jobs import thread
from waylore.service.jobs.memory import MemoryJobs
from waylore.service.jobs.runner import Jobs
from waylore.service.jobs.work import Bench
from waylore.service.spool import Places, Spool, open_spool
from waylore.settings.load import Settings
from waylore.store.urls import parse_url

log = logging.getLogger(__name__)
SWEEP_SECONDS = 3_600.0
FOLLOWERS = 256  # that one process tells of the progress of jobs
KEPT_SECONDS = 30 * 86_400.0  # for which jobs that are over are remembered


@dataclass(frozen=True, slots=True)
class Background:
    """Jobs, uploads, and a block within which jobs are done."""

    jobs: Jobs
    spool: Spool
    work: Callable[[], AbstractAsyncContextManager[None]]
    followers: Places = field(default_factory=lambda: Places("followers of jobs", FOLLOWERS))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Do jobs, and sweep away what is old, as long as the block lasts."""
        async with self.work():
            sweeping = asyncio.create_task(self._sweeping())
            try:
                yield
            finally:
                sweeping.cancel()

    async def _sweeping(self) -> None:
        while True:
            await asyncio.to_thread(self._sweep)
            await asyncio.sleep(SWEEP_SECONDS)

    def _sweep(self) -> None:
        try:
            self.jobs.table.sweep(time.time() - KEPT_SECONDS)
            self.spool.sweep(self.jobs.table.unfinished)
        except (StoreError, OSError) as error:
            log.warning("old jobs and uploads are not swept away now: %s", error)


@contextmanager
def opened_background(settings: Settings, bench: Bench) -> Iterator[Background]:
    """The background of a service over the store that the settings name."""
    spool = open_spool(settings.http)
    opened = _shared if parse_url(settings.store).is_server else _alone
    background = opened(settings, bench, spool)
    try:
        yield background
    finally:
        background.jobs.table.close()


def _alone(settings: Settings, bench: Bench, spool: Spool) -> Background:
    queue = thread.ThreadQueue(settings.http.workers)
    jobs = Jobs(MemoryJobs(), bench, queue)
    return Background(jobs, spool, partial(thread.working, jobs, queue))


def _shared(settings: Settings, bench: Bench, spool: Spool) -> Background:
    with needing("jobs in PostgreSQL need", "http"):
        from waylore.service.jobs import procrastinate  # noqa: PLC0415
    table = procrastinate.open_table(parse_url(settings.store).location)
    queue = procrastinate.PostgresQueue(spool.name)
    jobs = Jobs(table, bench, queue)
    return Background(jobs, spool, partial(procrastinate.working, jobs, table, queue, settings))
