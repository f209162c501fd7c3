"""The queue of jobs in PostgreSQL, by procrastinate. Any process may run a job; exactly one does.

A job with an uploaded file waits in a queue named after the spool folder, so that only processes with access
to the file take it. All other jobs share one queue. If the worker of a job sends no heartbeat for a while,
another worker picks the job up. When the database is unavailable, the worker is restarted until it can
connect again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.jobs import Job as ProcrastinateJob
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.schema import SchemaManager

from waylore.errors import StoreError, StoreUnavailable
from waylore.service.jobs.postgres import PostgresJobs, add_search_path
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.runner import JobRunner, RetryLater
from waylore.settings.sections import Settings
from waylore.store.urls import parse_url

log = logging.getLogger(__name__)
TASK = "waylore.job"
SHARED_QUEUE = "anywhere"  # the queue of jobs without a file; databases in use have this name
POLL_SECONDS = 5.0  # for jobs that become due after a retry delay; new jobs are announced by the database
RESTART_SECONDS = 1.0  # before a worker that ended with an error starts again


def open_table(url: str) -> PostgresJobs:
    """Open the table of jobs of a database, and create it and the queue if they do not exist."""
    return PostgresJobs(url, SchemaManager.get_schema())


class PostgresQueue:
    """Puts jobs into the queue, in the transaction that stores them. `spool` names our upload folder."""

    def __init__(self, spool: str) -> None:
        self.spool = spool
        self._app = App(connector=SyncPsycopgConnector())

    def prepare(self, job: Job) -> Callable[[Any], int]:
        """Return a function that puts a job into its queue, in a transaction, and returns its number there."""
        queue = self.spool if "file" in job.work else SHARED_QUEUE

        def put(db: Any) -> int:
            deferred = self._app.configure_task(TASK, queue=queue, lock=job.collection, connection=db)
            try:
                return deferred.defer(job=job.id)
            except ConnectorException as error:
                raise StoreUnavailable(f"the queue of jobs is unavailable ({error}); try again") from error

        return put

    def drop(self, transaction: Any, number: int) -> object:
        """Remove a job from the queue, if no worker has taken it."""
        try:
            return self._app.job_manager.cancel_job_by_id(number, delete_job=True, connection=transaction)
        except ConnectorException as error:
            raise StoreUnavailable(f"the queue of jobs is unavailable ({error}); try again") from error


@asynccontextmanager
async def run_jobs(
    jobs: JobRunner, table: PostgresJobs, queue: PostgresQueue, settings: Settings
) -> AsyncIterator[None]:
    """Run jobs while the block runs. Jobs that run when it ends stop after their next step and are put back."""
    tasks = [asyncio.create_task(_requeue_lost_jobs(table, settings.jobs.heartbeat_timeout))]
    if settings.jobs.concurrency:
        tasks.append(asyncio.create_task(_keep_working(jobs, queue, settings)))
    try:
        yield
    finally:
        jobs.stopping.set()
        await _end(jobs, tasks)


async def _end(jobs: JobRunner, tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their current jobs.

    The tasks are cancelled repeatedly, because procrastinate's listener may miss a cancellation.
    """
    is_cancelled = False
    while any(not task.done() for task in tasks):
        if not (is_cancelled and jobs.running):
            for task in tasks:
                task.cancel()
        is_cancelled = True
        await asyncio.wait(tasks, timeout=1.0)


async def _keep_working(jobs: JobRunner, queue: PostgresQueue, settings: Settings) -> None:
    """Run a worker, and start it again whenever it ends because the database was unavailable."""
    while not jobs.stopping.is_set():
        try:
            await _work(jobs, queue, settings)
        except Exception as error:  # noqa: BLE001 (procrastinate, psycopg and its pool raise errors of many kinds)
            log.warning("the job worker is restarted: %s", " ".join(str(error).split()))
        await asyncio.sleep(RESTART_SECONDS)


async def _work(jobs: JobRunner, queue: PostgresQueue, settings: Settings) -> None:
    heartbeat_timeout = settings.jobs.heartbeat_timeout
    app = _create_app(jobs, parse_url(settings.store).location, settings.jobs.concurrency)
    try:
        await app.open_async()
        await app.run_worker_async(
            queues=[queue.spool, SHARED_QUEUE],
            concurrency=settings.jobs.concurrency,
            install_signal_handlers=False,
            delete_jobs="always",
            fetch_job_polling_interval=min(POLL_SECONDS, heartbeat_timeout / 3),
            update_heartbeat_interval=heartbeat_timeout / 3,
            stalled_worker_timeout=heartbeat_timeout,
        )
    finally:  # not `async with`: an app that was opened in part must be closed, too
        await app.close_async()


def _create_app(jobs: JobRunner, url: str, concurrency: int) -> App:
    conninfo = add_search_path(url)
    app = App(connector=PsycopgConnector(conninfo=conninfo, min_size=1, max_size=concurrency + 2, timeout=10.0))

    @app.task(name=TASK, retry=RetryAsRequested(), pass_context=True)
    def run(context: JobContext, job: str) -> None:
        jobs.run(job, context.job.attempts)

    return app


class RetryAsRequested(BaseRetryStrategy):
    """Runs a job again if it raised RetryLater, after the time that it names."""

    def get_retry_decision(self, *, exception: BaseException, job: ProcrastinateJob) -> RetryDecision | None:  # noqa: ARG002
        """Return when to run the job again, or None to end it."""
        if isinstance(exception, RetryLater):
            return RetryDecision(retry_in={"seconds": round(exception.seconds)})
        return None


async def _requeue_lost_jobs(table: PostgresJobs, heartbeat_timeout: float) -> None:
    """Put back the jobs of dead workers, until cancelled."""
    while True:
        try:
            await asyncio.to_thread(table.requeue_lost, heartbeat_timeout)
        except StoreError as error:
            log.warning("jobs of dead workers cannot be put back now: %s", error)
        await asyncio.sleep(heartbeat_timeout / 3)
