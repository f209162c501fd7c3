"""The table of jobs in memory, for a service over a file, which runs in one process.

The jobs are lost when the process ends. Documents that a job has written stay; an unfinished job must be
submitted again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from waylore.service.jobs.protocol import Job, JobState, do_nothing


class MemoryJobs:
    """A table of jobs that only this process sees. A run is never lost, because there is one worker."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._queue_numbers: dict[str, int] = {}
        self._lock = Lock()

    def add(self, job: Job, enqueue: Callable[[Any], int]) -> None:
        """Store a job and put it into the queue with `enqueue`: both, or neither."""
        with self._lock:
            self._queue_numbers[job.id] = enqueue(None)
            self._jobs[job.id] = job

    def start_run(self, id_: str) -> Job | None:
        """Start a new run and return the job. Return None if the job has ended."""
        with self._lock:
            job = self._jobs.get(id_)
            if job is None or job.is_over:
                return None
            began = job.began_at or datetime.now(UTC)
            return self._set(job, state="running", runs=job.runs + 1, began_at=began)

    def report_progress(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Store the progress of a run. Return whether the job was cancelled."""
        with self._lock:
            return self._set(self._jobs[job.id], progress=dict(progress)).is_cancelled

    def finish(
        self,
        job: Job,
        state: JobState,
        *,
        result: Mapping[str, Any] | None,
        problem: str = "",
        on_end: Callable[[], object] = do_nothing,
    ) -> bool:
        """End a job. If it was cancelled in the meantime, "failed" becomes "cancelled"."""
        with self._lock:
            current = self._jobs[job.id]
            if current.is_cancelled and state == "failed":
                state, problem = "cancelled", ""
            self._end(current, state, on_end, result=result, problem=problem)
        return True

    def requeue(self, job: Job, problem: str, *, on_end: Callable[[], object] = do_nothing) -> bool:
        """Let the job wait for another run. If it was cancelled, end it and return False."""
        with self._lock:
            current = self._jobs[job.id]
            if current.is_cancelled:
                self._end(current, "cancelled", on_end)
            else:
                self._set(current, state="waiting", problem=problem)
            return not current.is_cancelled

    def cancel(
        self,
        collection: str,
        id_: str,
        drop: Callable[[Any, int], object],
        *,
        on_end: Callable[[], object] = do_nothing,
    ) -> Job | None:
        """Cancel a waiting job and `drop` it from the queue, or mark a running one. None if it is over."""
        with self._lock:
            job = self._jobs.get(id_)
            if job is None or job.is_over or job.collection != collection:
                return None
            if job.state != "waiting":
                return self._set(job, is_cancelled=True)
            drop(None, self._queue_numbers[id_])
            return self._end(job, "cancelled", on_end, is_cancelled=True)

    def get_job(self, collection: str, id_: str) -> Job | None:
        """Return a job of a collection."""
        job = self._jobs.get(id_)
        return job if job and job.collection == collection else None

    def list_jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Return jobs of a collection, newest first, after the position `before`."""
        with self._lock:
            jobs = [j for j in self._jobs.values() if j.collection == collection and caller in (None, j.caller)]
        positions = sorted(((j.made_at.timestamp(), j.id, j) for j in jobs), key=lambda p: p[:2], reverse=True)
        return tuple(j for *position, j in positions if before is None or tuple(position) < before)[:limit]

    def find_unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Return those of the ids whose jobs have not ended."""
        return frozenset(id_ for id_ in ids if id_ in self._jobs and not self._jobs[id_].is_over)

    def delete_ended(self, before: float) -> None:
        """Delete jobs that ended before a time, in seconds since 1970."""
        with self._lock:
            ended = [j.id for j in self._jobs.values() if j.ended_at and j.ended_at.timestamp() < before]
            for id_ in ended:
                del self._jobs[id_], self._queue_numbers[id_]

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _end(self, job: Job, state: JobState, on_end: Callable[[], object], **changed: Any) -> Job:
        on_end()  # first: a caller who reads the final state must find its effects
        return self._set(job, state=state, ended_at=datetime.now(UTC), **changed)

    def _set(self, job: Job, **changed: Any) -> Job:
        self._jobs[job.id] = replace(job, version=job.version + 1, **changed)
        return self._jobs[job.id]
