"""The background of a service: its jobs, its upload folder, and the workers that run the jobs.

On PostgreSQL all processes share one table of jobs. With a store in a file, threads of the process run
them. A service uses both in the same way. Old jobs and uploads are deleted once an hour.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from waylore.errors import StoreError
from waylore.providers.optional import require_extra
from waylore.service.jobs.memory import MemoryJobs
from waylore.service.jobs.runner import JobRunner
from waylore.service.jobs.work import JobResources
from waylore.service.jobs.worker import run_jobs
from waylore.service.spool import Spool, UploadSlots, open_spool
from waylore.settings.sections import Settings
from waylore.store.urls import parse_url

log = logging.getLogger(__name__)
SWEEP_SECONDS = 3_600.0  # interval between deletions of old jobs and uploads
MAX_FOLLOWERS = 256  # event streams of jobs that one process serves at the same time
JOB_RETENTION_SECONDS = 30 * 86_400.0  # ended jobs are stored this long


@dataclass(frozen=True, slots=True)
class Background:
    """Jobs, uploads, and a context manager that runs the jobs."""

    jobs: JobRunner
    spool: Spool
    run_jobs: Callable[[], AbstractAsyncContextManager[None]]
    followers: UploadSlots = field(default_factory=lambda: UploadSlots("followers of jobs", MAX_FOLLOWERS))

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run jobs and delete old ones while the block runs."""
        async with self.run_jobs():
            sweeping = asyncio.create_task(self._keep_sweeping())
            try:
                yield
            finally:
                sweeping.cancel()

    async def _keep_sweeping(self) -> None:
        while True:
            await asyncio.to_thread(self._sweep)
            await asyncio.sleep(SWEEP_SECONDS)

    def _sweep(self) -> None:
        try:
            self.jobs.table.delete_ended(time.time() - JOB_RETENTION_SECONDS)
            self.spool.sweep(self.jobs.table.find_unfinished)
        except (StoreError, OSError) as error:
            log.warning("old jobs and uploads cannot be deleted now: %s", error)


@contextmanager
def open_background(settings: Settings, resources: JobResources) -> Iterator[Background]:
    """Open the background of a service over the store that the settings name."""
    spool = open_spool(settings.http)
    create = _create_shared if parse_url(settings.store).is_server else _create_local
    background = create(settings, resources, spool)
    try:
        yield background
    finally:
        background.jobs.table.close()


def _create_local(settings: Settings, resources: JobResources, spool: Spool) -> Background:
    jobs = JobRunner(MemoryJobs(settings.http.workers), resources, spool.name)
    return Background(jobs, spool, partial(run_jobs, jobs, 1, settings.jobs.heartbeat_timeout))


def _create_shared(settings: Settings, resources: JobResources, spool: Spool) -> Background:
    with require_extra("jobs in PostgreSQL need", "postgres"):
        from waylore.service.jobs.postgres import PostgresJobs  # noqa: PLC0415 (optional dependency)
    jobs = JobRunner(PostgresJobs(parse_url(settings.store).location), resources, spool.name)
    return Background(jobs, spool, partial(run_jobs, jobs, settings.jobs.concurrency, settings.jobs.heartbeat_timeout))
