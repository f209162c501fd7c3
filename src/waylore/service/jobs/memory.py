"""Jobs of one process, in its memory: for a service over a file, on one machine.

They are lost when the process ends: what they wrote is whole, and what was not done is to be asked for anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from waylore.service.jobs.protocol import Job, State


class MemoryJobs:
    """A table of jobs that nobody else sees."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._changing = Lock()

    def add(self, job: Job, put: Callable[[Any], int]) -> None:
        """Remember a job and `put` it into the queue: both, or neither."""
        with self._changing:
            self._jobs[job.id] = job
        put(job.id)

    def begin(self, id_: str) -> Job | None:
        """A job, in a new run of it; None if there is nothing left to do."""
        with self._changing:
            job = self._jobs[id_]
            if job.is_over:
                return None
            began = job.began_at or datetime.now(UTC)
            return self._set(job, state="running", runs=job.runs + 1, began_at=began)

    def tell(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Say how far a run is; whether it is to stop, or None if it was lost."""
        with self._changing:
            return self._set(self._jobs[job.id], progress=dict(progress)).is_cancelled

    def end(self, job: Job, state: State, *, result: Mapping[str, Any] | None, problem: str = "") -> bool:
        """Say what became of a run; whether it still counts."""
        with self._changing:
            now = datetime.now(UTC)
            self._set(self._jobs[job.id], state=state, result=result, problem=problem, ended_at=now)
        return True

    def put_back(self, job: Job, problem: str) -> None:
        """Say that a run came to nothing, and that the job waits for another."""
        with self._changing:
            self._set(self._jobs[job.id], state="waiting", problem=problem)

    def cancel(self, collection: str, id_: str, drop: Callable[[Any, int], object]) -> Job | None:  # noqa: ARG002
        """Cancel a job that waits, which is passed over in its turn; tell one that runs to stop."""
        with self._changing:
            job = self._jobs.get(id_)
            if job is None or job.is_over or job.collection != collection:
                return None
            if job.state == "waiting":
                return self._set(job, is_cancelled=True, state="cancelled", ended_at=datetime.now(UTC))
            return self._set(job, is_cancelled=True)

    def job(self, collection: str, id_: str) -> Job | None:
        """A job of a collection."""
        job = self._jobs.get(id_)
        return job if job and job.collection == collection else None

    def jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Jobs of a collection, the newest first: all, or one caller's; `before` is (seconds, identity)."""
        with self._changing:
            all_ = [j for j in self._jobs.values() if j.collection == collection and caller in (None, j.caller)]
        placed = sorted(((j.made_at.timestamp(), j.id, j) for j in all_), key=lambda p: p[:2], reverse=True)
        return tuple(j for *place, j in placed if before is None or tuple(place) < before)[:limit]

    def unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Which of these are still to be done."""
        return frozenset(id_ for id_ in ids if id_ in self._jobs and not self._jobs[id_].is_over)

    def sweep(self, before: float) -> None:
        """Drop those that ended before a time."""
        with self._changing:
            ended = [j.id for j in self._jobs.values() if j.ended_at and j.ended_at.timestamp() < before]
            for id_ in ended:
                del self._jobs[id_]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _set(self, job: Job, **changed: Any) -> Job:
        self._jobs[job.id] = replace(job, version=job.version + 1, **changed)
        return self._jobs[job.id]
