"""Submit, follow, cancel and run background jobs.

Jobs are stored in a table. Workers (`worker.py`) take them from it, one at a time for each collection. Callers take
turns, and the number of waiting jobs of a caller is limited. A job that fails because the store or a model is
unavailable is retried with growing delays. Any other error ends the job and is recorded in it. A run that is cancelled,
or whose process ends, stops by its deadline. The work of each kind of job is in `work.py`. The tables are `postgres.py`
and, for a store in a file, `memory.py`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Semaphore
from typing import Any
from uuid import uuid4

from waylore.deadline import Deadline, commit_in_time
from waylore.errors import DeadlineExceeded, ModelUnavailable, NotFound, StoreError, StoreUnavailable, WayloreError
from waylore.service.jobs.protocol import Job, JobKind, JobState, JobTable
from waylore.service.jobs.work import RUN_BY_KIND, JobResources, describe_author
from waylore.service.shares import TooManyWaiting
from waylore.types.author import Author

log = logging.getLogger(__name__)
TRANSIENT_ERRORS = (StoreUnavailable, ModelUnavailable)
# Errors of these exact classes are internal: their text is logged and not shown to the caller.
INTERNAL_ERRORS = (WayloreError, StoreError)
INTERNAL_ERROR_MESSAGE = "internal error; the service's log has it under the id of this job"
MAX_ATTEMPTS = 12  # maximum runs with transient errors; the delays add up to about an hour
FIRST_RETRY_SECONDS = 1.0  # delay before the second run; it doubles with every run
MAX_RETRY_SECONDS = 600.0
POLL_SECONDS = 0.5  # interval between reads of a job that a caller follows
MAX_WAITING_JOBS = 32  # waiting jobs of one caller
TABLE_RETRY_SECONDS = 1.0  # interval between attempts to record the end of a run


class JobStopped(Exception):
    """Ends a run between two steps: the job was cancelled, the process ends, or another worker has the job."""


@dataclass(frozen=True, slots=True, eq=False)
class JobRun:
    """A job that runs in this process, and the deadline that stops it."""

    job: Job
    deadline: Deadline


@dataclass(slots=True)
class JobRunner:
    """The jobs of a service. `spool` names the upload folder. When `stopping` is set, runs stop after a step."""

    table: JobTable
    resources: JobResources
    spool: str = ""
    stopping: Event = field(default_factory=Event)
    changed: Semaphore = field(default_factory=lambda: Semaphore(0))  # released when a job may have become due
    changed_for_reserve: Semaphore = field(default_factory=lambda: Semaphore(0))  # the same for reserve workers
    running: list[JobRun] = field(default_factory=list)  # the same job twice if one run is lost but still works

    # -- for callers -----------------------------------------------------------------------------------

    def submit(self, collection: str, kind: JobKind, work: Mapping[str, Any], *, author: Author, id_: str = "") -> Job:
        """Store a new job and return it. A worker that sees its file runs it, as the author.

        If a job with this id is already stored, as for a repeated request, that job is returned.
        """
        known = self.table.get_job(collection, id_) if id_ else None
        if known is not None:
            return known
        self.check_waiting(author.identity)
        spool = self.spool if "file" in work else ""
        work = {**work, "author": describe_author(author)}
        job = Job(id_ or uuid4().hex, collection, author.identity, kind, work, datetime.now(UTC), spool=spool)
        with commit_in_time():
            self.table.add(job)
        self.wake_workers()
        return self.get_job(collection, job.id) if id_ else job

    def check_waiting(self, caller: str) -> None:
        """Raise TooManyWaiting if a caller may submit no job now."""
        count = self.table.count_waiting(caller)
        if count >= MAX_WAITING_JOBS:
            raise TooManyWaiting(f"{count} jobs of yours are waiting; submit more when some have ended, or cancel some")

    def get_job(self, collection: str, id_: str, *, caller: str | None = None) -> Job:
        """Return a job of a collection. Raise NotFound if it belongs to another caller."""
        job = self.table.get_job(collection, id_)
        if job is None or caller not in (None, job.caller):
            raise NotFound(f"no job {id_} in collection {collection}; GET /jobs lists the jobs of the last 30 days")
        return job

    def list_jobs(
        self,
        collection: str,
        *,
        caller: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> tuple[Job, ...]:
        """Return jobs of a collection, newest first, after `before`, the position of the last job of a page."""
        return self.table.list_jobs(collection, caller=caller, before=before, limit=limit)

    def cancel(self, collection: str, id_: str, *, caller: str | None = None) -> Job:
        """Cancel a job and return it. A waiting job ends at once, a running one after its next step."""
        known = self.get_job(collection, id_, caller=caller)
        job = self.table.cancel(collection, id_, on_end=partial(_remove_file, known))
        self.wake_workers()
        self.stop_cancelled(known.id)
        return job or self.get_job(collection, known.id)

    def cancel_all(self, collection: str) -> None:
        """Cancel all unfinished jobs of a collection."""
        before: tuple[float, str] | None = None
        while page := self.list_jobs(collection, before=before):
            for job in (job for job in page if not job.is_over):
                self.cancel(collection, job.id)
            before = (page[-1].made_at.timestamp(), page[-1].id)

    async def follow(
        self, read: Callable[[], Awaitable[Job]], *, after: int = -1, seconds: float = POLL_SECONDS
    ) -> AsyncIterator[Job]:
        """Yield a job whenever it changed, until it ends. `after` is the last version that the caller knows."""
        while True:
            job = await read()
            if job.version > after:
                after = job.version
                yield job
            if job.is_over or self.stopping.is_set():
                return
            await asyncio.sleep(seconds)

    def stop_cancelled(self, id_: str) -> None:
        """Stop the run of a job that was cancelled, if it runs in this process."""
        for run in list(self.running):
            if run.job.id == id_:
                run.deadline.cancel()

    def stop(self) -> None:
        """Stop all runs of this process, and begin no other. Their jobs are put back."""
        self.stopping.set()
        for run in list(self.running):
            run.deadline.cancel()

    # -- for workers -----------------------------------------------------------------------------------

    def run(self, job: Job) -> None:
        """Run a job that was taken from the table."""
        run = JobRun(job, Deadline())
        self.running.append(run)
        try:
            self._run(job, run.deadline)
        finally:
            self.running.remove(run)
            self.wake_workers()  # the next job of the collection may run now

    def wake_workers(self, count: int = 1) -> None:
        """Let workers of this process look for a job, `count` of each kind."""
        self.changed.release(count)
        self.changed_for_reserve.release(count)

    def _run(self, job: Job, deadline: Deadline) -> None:
        if job.is_cancelled:  # cancelled while it ran in a worker that died
            self._end(job, "cancelled")
            return
        try:
            with deadline.activate():
                result = RUN_BY_KIND[job.kind](self.resources, job, partial(self._report_progress, job))
        except (JobStopped, DeadlineExceeded):
            self._requeue(job)
        except TRANSIENT_ERRORS as error:
            if deadline.is_over:  # the stop ended a wait for the store or the model
                self._requeue(job)
            else:
                self._retry(job, error)
        except (WayloreError, ValueError) as error:
            is_internal = type(error) in INTERNAL_ERRORS
            self._fail(job, error, INTERNAL_ERROR_MESSAGE if is_internal else str(error))
        except Exception as error:  # noqa: BLE001 (any error must end the job, and the queue must continue)
            self._fail(job, error, INTERNAL_ERROR_MESSAGE)
        else:
            self._end(job, "done", result=result)

    def _report_progress(self, job: Job, progress: Mapping[str, float]) -> None:
        """Store the progress after a step. Raise JobStopped if the run must stop here."""
        if self.table.report_progress(job, progress) is not False or self.stopping.is_set():
            raise JobStopped

    def _retry(self, job: Job, error: Exception) -> None:
        if job.retries + 1 >= MAX_ATTEMPTS:
            self._fail(job, error, str(error))
            return
        log.warning("job %s will be retried: %s", job.id, error)
        self._requeue(job, str(error), min(FIRST_RETRY_SECONDS * 2.0**job.retries, MAX_RETRY_SECONDS))

    def _requeue(self, job: Job, problem: str = "", delay: float = 0.0) -> None:
        """Let a job wait to be resumed, or end it if it was cancelled."""
        requeue = partial(self.table.requeue, problem=problem, delay=delay, on_end=partial(_remove_file, job))
        self._retry_until_stored(lambda: requeue(job))

    def _fail(self, job: Job, error: Exception, problem: str) -> None:
        log.error("job %s failed", job.id, exc_info=error)
        self._end(job, "failed", problem=problem)

    def _end(self, job: Job, state: JobState, *, result: Mapping[str, Any] | None = None, problem: str = "") -> None:
        finish = partial(self.table.finish, result=result, problem=problem, on_end=partial(_remove_file, job))
        self._retry_until_stored(lambda: finish(job, state))

    def _retry_until_stored(self, store: Callable[[], object]) -> None:
        """Record the end of a run as soon as the table is available, unless the process ends before."""
        while True:
            try:
                store()
            except StoreUnavailable as error:
                log.warning("the table of jobs is unavailable: %s", error)
                if self.stopping.wait(TABLE_RETRY_SECONDS):
                    return
            else:
                return


def _remove_file(job: Job) -> None:
    """Delete the uploaded file of a job. If that fails, `Spool.sweep` deletes it later."""
    if file := job.work.get("file"):
        try:
            Path(file).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the upload %s of job %s cannot be deleted: %s", file, job.id, error)
