"""Background jobs and the JobTable protocol: the arguments, the progress and the result of a job.

The table is also the queue. A worker takes the next job from it and starts a run of the job. A run holds its job for
some seconds and extends that time while it works. If its process dies or hangs, the time passes and another worker
takes the job. The old run learns this from the table when it reports progress.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

JobKind = Literal[
    "add",  # add an uploaded file
    "import",  # import an uploaded file of another program
    "forget",  # delete all documents of a collection
    "reembed",  # compute the vectors of a collection with the service's model
]
JobState = Literal[
    "waiting",  # in the queue: not started yet, interrupted, or waiting for a retry because of `problem`
    "running",  # a worker runs it. If `is_cancelled` is set, the run stops after its next step
    "done",  # finished; `result` is set
    "failed",  # ended by the error in `problem`; it is not retried
    "cancelled",  # ended because a caller cancelled it; documents that it wrote stay
]
FINAL_STATES: tuple[JobState, ...] = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Job:
    """A job for a collection."""

    id: str
    collection: str
    caller: str  # id of the caller who submitted it
    kind: JobKind
    work: Mapping[str, Any]  # arguments of the work, such as the uploaded file
    made_at: datetime
    state: JobState = "waiting"
    runs: int = 0  # number of starts
    is_cancelled: bool = False  # a caller requested to stop it
    progress: Mapping[str, float] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    problem: str = ""  # reason of the failure, or of the wait for a retry
    began_at: datetime | None = None
    ended_at: datetime | None = None
    version: int = 0  # grows with every change
    spool: str = ""  # upload folder that its worker must see; empty: any worker can run the job
    retries: int = 0  # runs that ended with a transient error

    @property
    def is_over(self) -> bool:
        """Whether the job has ended and will not change again."""
        return self.state in FINAL_STATES


def do_nothing() -> None:
    """Do nothing: the default of `on_end`."""


def must_wait_for(job: Job, other: Job) -> bool:
    """Return whether a job must wait for another job of the same collection that came earlier."""
    uris = {each.work.get("uri") for each in (job, other)}
    return job.caller == other.caller or None in uris or len(uris) == 1


class JobTable(Protocol):
    """All jobs of a service. Every method may be called from any thread.

    `on_end` is called only if a job has ended, and before another process or thread can see this.
    """

    def add(self, job: Job) -> None:
        """Store a job that waits for a worker, unless it is stored already."""
        ...

    def count_waiting(self, caller: str) -> int:
        """Return how many jobs of a caller wait."""
        ...

    def take(self, spool: str, seconds: float, *, is_reserve: bool = False) -> Job | None:
        """Start a run of the next job that is due, and hold it for `seconds`. Return None if none is due.

        Callers with fewer running jobs come first, then those whose last job ended earlier, then older jobs. With
        `is_reserve`, only callers without a running job get one. The jobs of a collection run one at a time. Jobs of
        one caller, jobs for one URI, and jobs for the whole collection run in the order of their submission. Jobs that
        need another upload folder than `spool` are left to other workers.
        """
        ...

    def hold(self, jobs: Sequence[Job], seconds: float) -> None:
        """Hold the jobs of these runs for `seconds` from now."""
        ...

    def report_progress(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Store the progress of a run. Return whether the job was cancelled, or None if the run was lost."""
        ...

    def finish(
        self,
        job: Job,
        state: JobState,
        *,
        result: Mapping[str, Any] | None,
        problem: str = "",
        on_end: Callable[[], object] = do_nothing,
    ) -> bool:
        """End a job. Return False, without a change, if the run was lost.

        If the job was cancelled in the meantime, "failed" becomes "cancelled".
        """
        ...

    def requeue(
        self, job: Job, *, problem: str = "", delay: float = 0.0, on_end: Callable[[], object] = do_nothing
    ) -> None:
        """End a run without a result, and let the job wait `delay` seconds for another run.

        A job that was cancelled in the meantime ends as "cancelled" instead. Nothing changes if the run was lost.
        """
        ...

    def cancel(self, collection: str, id_: str, *, on_end: Callable[[], object] = do_nothing) -> Job | None:
        """Cancel a waiting job, or mark a running one. Return None if it is over."""
        ...

    def get_job(self, collection: str, id_: str) -> Job | None:
        """Return a job of a collection."""
        ...

    def list_jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Return jobs of a collection, newest first: of all callers if `caller` is None.

        `before` is the position of the last job of the previous page: seconds since 1970, and id.
        """
        ...

    def find_cancelled(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs were cancelled."""
        ...

    def find_unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs have not ended."""
        ...

    def delete_ended(self, before: float) -> None:
        """Delete jobs that ended before a time, in seconds since 1970."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
