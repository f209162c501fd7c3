"""The queue of jobs in PostgreSQL, through procrastinate: any process of the service may do a job, one does.

A job with a file waits in the queue of the folder that holds the file, so that only those who see it take it;
all others wait in one queue. A job whose worker gave no sign of life for a while is taken over. A server that
is down stops nobody: the worker begins anew when it is back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.jobs import Job as Queued
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.schema import SchemaManager

from waylore.errors import StoreError, StoreUnavailable
from waylore.service.jobs.postgres import PostgresJobs, address
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.runner import Again, Jobs
from waylore.settings.load import Settings
from waylore.store.urls import parse_url

log = logging.getLogger(__name__)
TASK = "waylore.job"
ANYWHERE = "anywhere"  # the queue of jobs that need no file
POLL_SECONDS = 5.0  # a job that is put in is told at once; this is for those that are put back


def open_table(url: str) -> PostgresJobs:
    """The jobs of a database, and the queue beside them, made if there is none."""
    return PostgresJobs(url, SchemaManager.get_schema())


class PostgresQueue:
    """Puts jobs in, within the transaction that remembers them; `spool` names the folder of our files."""

    def __init__(self, spool: str) -> None:
        self.spool = spool
        self._app = App(connector=SyncPsycopgConnector())

    def put(self, job: Job) -> Callable[[Any], int]:
        """What puts a job into its queue, and gives its number there."""
        queue = self.spool if "file" in job.work else ANYWHERE

        def put(db: Any) -> int:
            deferred = self._app.configure_task(TASK, queue=queue, lock=job.collection, connection=db)
            try:
                return deferred.defer(job=job.id)
            except ConnectorException as error:
                raise StoreUnavailable(f"the queue of jobs cannot be reached: {error}") from error

        return put

    def drop(self, transaction: Any, number: int) -> object:
        """Take a job out of the queue, if nobody took it."""
        try:
            return self._app.job_manager.cancel_job_by_id(number, delete_job=True, connection=transaction)
        except ConnectorException as error:
            raise StoreUnavailable(f"the queue of jobs cannot be reached: {error}") from error


@asynccontextmanager
async def working(
    jobs: Jobs, table: PostgresJobs, queue: PostgresQueue, settings: Settings
) -> AsyncIterator[None]:
    """Do jobs as long as the block lasts; those that run then stop at their next step, and wait for others."""
    tasks = [asyncio.create_task(_tended(table, settings.http.takeover))]
    if settings.http.jobs:
        tasks.append(asyncio.create_task(_working(jobs, queue, settings)))
    try:
        yield
    finally:
        jobs.stopping.set()
        await _ended(jobs, tasks)


async def _ended(jobs: Jobs, tasks: Collection[asyncio.Task[None]]) -> None:
    """End tasks, after what they do now; told again and again, for procrastinate's listener may not hear."""
    is_told = False
    while any(not task.done() for task in tasks):
        if not (is_told and jobs.doing):
            for task in tasks:
                task.cancel()
        is_told = True
        await asyncio.wait(tasks, timeout=1.0)


async def _working(jobs: Jobs, queue: PostgresQueue, settings: Settings) -> None:
    """A worker, begun anew whenever it ends because the database could not be reached."""
    while not jobs.stopping.is_set():
        try:
            await _worked(jobs, queue, settings)
        except Exception as error:  # noqa: BLE001 (procrastinate, psycopg and its pool raise what they like)
            log.warning("the worker of jobs begins anew: %s", " ".join(str(error).split()))
        await asyncio.sleep(1.0)


async def _worked(jobs: Jobs, queue: PostgresQueue, settings: Settings) -> None:
    takeover = settings.http.takeover
    app = _app(jobs, parse_url(settings.store).location, settings.http.jobs)
    try:
        await app.open_async()
        await app.run_worker_async(
            queues=[queue.spool, ANYWHERE],
            concurrency=settings.http.jobs,
            install_signal_handlers=False,
            delete_jobs="always",
            fetch_job_polling_interval=min(POLL_SECONDS, takeover / 3),
            update_heartbeat_interval=takeover / 3,
            stalled_worker_timeout=takeover,
        )
    finally:  # not `async with`: what is opened in part is closed too
        await app.close_async()


def _app(jobs: Jobs, url: str, concurrency: int) -> App:
    app = App(
        connector=PsycopgConnector(conninfo=address(url), min_size=1, max_size=concurrency + 2, timeout=10.0)
    )

    @app.task(name=TASK, retry=WhenTold(), pass_context=True)
    def do(context: JobContext, job: str) -> None:
        jobs.do(job, context.job.attempts)

    return app


class WhenTold(BaseRetryStrategy):
    """A job is tried again if it says so, and when it says."""

    def get_retry_decision(self, *, exception: BaseException, job: Queued) -> RetryDecision | None:  # noqa: ARG002
        """When to try again, if at all."""
        if isinstance(exception, Again):
            return RetryDecision(retry_in={"seconds": round(exception.seconds)})
        return None


async def _tended(table: PostgresJobs, takeover: float) -> None:
    """Takes over what dead workers were at."""
    while True:
        try:
            await asyncio.to_thread(table.take_over, takeover)
        except StoreError as error:
            log.warning("jobs of dead workers cannot be taken over now: %s", error)
        await asyncio.sleep(takeover / 3)
