"""Work in the background, of whichever queue: asked for, followed, cancelled, done.

A job is remembered in a table and done in its turn, one at a time for each collection. What may pass (a store
or a model that does not answer) is tried again, later and later; whatever else goes wrong ends the job, and is
told. A job that is stopped, by being cancelled or with its process, stops between two steps. What jobs do is in
`jobs_doing`; who does them when, is the queue's: `jobs_queue` on a server, `jobs_thread` on a laptop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Protocol
from uuid import uuid4

from waylore.errors import ModelUnavailable, NotFound, StoreError, StoreUnavailable, WayloreError
from waylore.service.jobs.protocol import Job, JobTable, Kind, State
from waylore.service.jobs.work import DOES, Bench

log = logging.getLogger(__name__)
MAY_PASS = (StoreUnavailable, ModelUnavailable)
INTERNAL = (
    WayloreError,
    StoreError,
)  # errors of no kind of their own: their text is for the log, not for a caller
TRIES = 12  # runs of a job that meets what may pass; the last waits come to an hour
LONGEST_WAIT = 600.0  # seconds between two tries
LOOK_SECONDS = 0.5  # between two looks at a job that somebody follows
UNFORESEEN = "this is our mistake; the log has it under the job's id"


class Stopped(Exception):
    """A run ends between two steps: its job was cancelled, or its process is about to end, or it was lost."""


class Again(Exception):
    """A run came to nothing, and the job is to be tried again in so many `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"in {seconds:.0f} seconds")
        self.seconds = seconds


class Queue(Protocol):
    """Who does jobs, one at a time for each collection."""

    def put(self, job: Job) -> Callable[[Any], int]:
        """What puts a job into the queue, and gives its number there."""
        ...

    def drop(self, transaction: Any, number: int) -> object:
        """Take a job out of the queue."""
        ...


@dataclass(slots=True)
class Jobs:
    """The jobs of a service."""

    table: JobTable
    bench: Bench
    queue: Queue
    stopping: Event = field(default_factory=Event)
    doing: set[str] = field(default_factory=set)

    # -- what a caller asks ----------------------------------------------------------------------------

    def submitted(
        self, collection: str, kind: Kind, work: Mapping[str, Any], *, caller: str, id_: str = ""
    ) -> Job:
        """A new job, waiting for its turn."""
        job = Job(id_ or uuid4().hex, collection, caller, kind, work, datetime.now(UTC))
        self.table.add(job, self.queue.put(job))
        return job

    def job(self, collection: str, id_: str, *, caller: str | None = None) -> Job:
        """A job of a collection: anyone's, or only this caller's."""
        found = self.table.job(collection, id_)
        if found is None or caller not in (None, found.caller):
            raise NotFound(f"there is no job {id_} in {collection}: the list of its jobs has those of 30 days")
        return found

    def jobs(
        self,
        collection: str,
        *,
        caller: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> tuple[Job, ...]:
        """Jobs of a collection, the newest first; the next page comes `before` the last of one."""
        return self.table.jobs(collection, caller=caller, before=before, limit=limit)

    def cancelled(self, collection: str, id_: str, *, caller: str | None = None) -> Job:
        """A job, cancelled if it waits, about to stop if it runs, and as it was if it is over."""
        known = self.job(collection, id_, caller=caller)
        job = self.table.cancel(collection, id_, self.queue.drop)
        if job and job.is_over:
            _remove_file(job)
        return job or self.job(collection, known.id)

    def given_up(self, collection: str) -> None:
        """Cancel whatever is still to be done for a collection."""
        before: tuple[float, str] | None = None
        while found := self.jobs(collection, before=before):
            for job in (job for job in found if not job.is_over):
                self.cancelled(collection, job.id)
            before = (found[-1].made_at.timestamp(), found[-1].id)

    async def events(
        self, look: Callable[[], Awaitable[Job]], *, after: int = -1, seconds: float = LOOK_SECONDS
    ) -> AsyncIterator[Job]:
        """A job whenever it changed, until it is over; `after` is the last version that is known."""
        while True:
            job = await look()
            if job.version > after:
                after = job.version
                yield job
            if job.is_over or self.stopping.is_set():
                return
            await asyncio.sleep(seconds)

    # -- what a queue has done -------------------------------------------------------------------------

    def do(self, id_: str, tries: int) -> None:
        """Do a job; raises Again if it is to be tried once more, after `tries` that came to nothing."""
        job = self.table.begin(id_)
        if job is None:
            return
        self.doing.add(id_)
        try:
            self._do(job, tries)
        finally:
            self.doing.discard(id_)

    def _do(self, job: Job, tries: int) -> None:
        try:
            result = DOES[job.kind](self.bench, job, lambda progress: self._tell(job, progress))
        except Stopped:
            self._stopped(job)
        except MAY_PASS as error:
            self._try_again(job, tries, error)
        except (WayloreError, ValueError) as error:
            told = UNFORESEEN if type(error) in INTERNAL else str(error)
            self._failed(job, error, told)
        except Exception as error:  # noqa: BLE001 (a job ends, whatever is wrong with it; the queue goes on)
            self._failed(job, error, UNFORESEEN)
        else:
            self._over(job, "done", result=result)

    def _tell(self, job: Job, progress: Mapping[str, float]) -> None:
        if self.table.tell(job, progress) is not False or self.stopping.is_set():
            raise Stopped

    def _stopped(self, job: Job) -> None:
        """A run that was cancelled is over; one that was lost is another's; else it is gone on with."""
        now = self.table.job(job.collection, job.id)
        if now is None or now.runs != job.runs:
            return
        if now.is_cancelled:
            self._over(job, "cancelled")
        else:
            self.table.put_back(job, "")
            raise Again(0)

    def _try_again(self, job: Job, tries: int, error: Exception) -> None:
        if tries + 1 >= TRIES:
            self._failed(job, error, str(error))
            return
        log.warning("job %s waits: %s", job.id, error)
        self._insistently(lambda: self.table.put_back(job, str(error)))
        raise Again(min(2.0**tries, LONGEST_WAIT))

    def _failed(self, job: Job, error: Exception, told: str) -> None:
        log.error("job %s failed", job.id, exc_info=error)
        self._over(job, "failed", problem=told)

    def _over(
        self, job: Job, state: State, *, result: Mapping[str, Any] | None = None, problem: str = ""
    ) -> None:
        ended: list[bool] = []
        self._insistently(lambda: ended.append(self.table.end(job, state, result=result, problem=problem)))
        if any(ended):
            _remove_file(job)

    def _insistently(self, say: Callable[[], object]) -> None:
        """Say what became of a run as soon as the table can be reached; not at all if we are to end."""
        while True:
            try:
                say()
            except StoreUnavailable as error:
                log.warning("the table of jobs cannot be reached: %s", error)
                if self.stopping.wait(1.0):
                    return
            else:
                return


def _remove_file(job: Job) -> None:
    if file := job.work.get("file"):
        Path(file).unlink(missing_ok=True)
