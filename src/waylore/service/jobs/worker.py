"""Run the jobs of a table in threads, and hold each job while its run works.

A worker takes the next job from the table. Some additional workers, the reserve, take only jobs of callers without a
running job, so no caller waits until long jobs of another caller have ended. If no job is due, a worker waits until
this process submits, cancels or ends a job, or until the next poll for jobs of other processes and delayed jobs.
Polling needs no connection of its own, unlike LISTEN, which does not work through a pooler of transactions.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from waylore.errors import StoreError
from waylore.service.jobs.runner import JobRunner

log = logging.getLogger(__name__)
RESERVE_WORKERS = 2  # additional workers, for callers without a running job
POLL_SECONDS = 1.0  # interval of polls while nothing happens in this process


@asynccontextmanager
async def run_jobs(jobs: JobRunner, concurrency: int, heartbeat_timeout: float) -> AsyncIterator[None]:
    """Run jobs while the block runs. Jobs that run at its end stop after their next step and are put back."""
    loop = asyncio.get_running_loop()
    count = concurrency + RESERVE_WORKERS if concurrency else 0
    with ThreadPoolExecutor(max(count, 1), thread_name_prefix="waylore-jobs") as threads:
        workers = [
            loop.run_in_executor(threads, partial(_work, jobs, heartbeat_timeout, is_reserve=number >= concurrency))
            for number in range(count)
        ]
        holding = asyncio.create_task(_hold(jobs, heartbeat_timeout))
        try:
            yield
        finally:
            jobs.stop()
            jobs.wake_workers(max(count, 1))
            await asyncio.gather(*workers)
            holding.cancel()


def _work(jobs: JobRunner, heartbeat_timeout: float, *, is_reserve: bool) -> None:
    """Run one job after another until the service stops."""
    changed = jobs.changed_for_reserve if is_reserve else jobs.changed
    while not jobs.stopping.is_set():
        try:
            job = jobs.table.take(jobs.spool, heartbeat_timeout, is_reserve=is_reserve)
            if job is not None:
                jobs.run(job)
                continue
        except StoreError as error:
            log.warning("the table of jobs is unavailable: %s", error)
        changed.acquire(timeout=POLL_SECONDS)


async def _hold(jobs: JobRunner, heartbeat_timeout: float) -> None:
    """Hold the jobs that run in this process, and stop jobs that another process cancelled, until cancelled."""
    held_at = time.monotonic()
    while True:
        await asyncio.sleep(min(heartbeat_timeout / 3, POLL_SECONDS))
        if running := [run.job for run in list(jobs.running)]:
            is_due = time.monotonic() - held_at >= heartbeat_timeout / 3
            try:
                for id_ in await asyncio.to_thread(jobs.table.find_cancelled, [job.id for job in running]):
                    jobs.stop_cancelled(id_)
                if is_due:
                    held_at = time.monotonic()
                    await asyncio.to_thread(jobs.table.hold, running, heartbeat_timeout)
            except StoreError as error:
                log.warning("running jobs cannot be held now: %s", error)
