"""The table of jobs in memory, for a service over a file, which runs in one process.

The jobs are lost when the process ends. Documents that a job has written stay; an unfinished job must be
submitted again.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from waylore.errors import ConfigError
from waylore.service.jobs.protocol import Job, JobState, do_nothing, must_wait_for


class MemoryJobs:
    """A table of jobs in this process. `processes` is the number of processes that take requests."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        self._jobs: dict[str, Job] = {}  # oldest first
        self._due: dict[str, float] = {}  # monotonic times of the earliest next run
        self._lock = Lock()

    def add(self, job: Job) -> None:
        """Store a job that waits for a worker, unless it is stored already."""
        if self._processes > 1:
            raise ConfigError(
                "a store in a file runs jobs in one process only; set http.workers to 1, or use PostgreSQL"
            )
        with self._lock:
            self._jobs.setdefault(job.id, job)

    def count_waiting(self, caller: str) -> int:
        """Return how many jobs of a caller wait."""
        with self._lock:
            return sum(job.caller == caller and job.state == "waiting" for job in self._jobs.values())

    def take(self, spool: str, seconds: float, *, is_reserve: bool = False) -> Job | None:  # noqa: ARG002 (only processes that share a table need them)
        """Start a run of the next job that is due. Return None if none is due."""
        with self._lock:
            running = Counter(job.caller for job in self._jobs.values() if job.state == "running")
            last_ends = self._find_last_ends()
            due = [job for job in self._list_due() if not (is_reserve and running[job.caller])]
            if not due:
                return None
            chosen = min(due, key=lambda job: (running[job.caller], last_ends.get(job.caller, 0.0)))
            began = chosen.began_at or datetime.now(UTC)
            return self._set(chosen, state="running", runs=chosen.runs + 1, began_at=began)

    def hold(self, jobs: Sequence[Job], seconds: float) -> None:
        """Do nothing: no other process takes jobs from this table."""

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

    def requeue(
        self, job: Job, *, problem: str = "", delay: float = 0.0, on_end: Callable[[], object] = do_nothing
    ) -> None:
        """Let the job wait `delay` seconds for another run. If it was cancelled, end it."""
        with self._lock:
            current = self._jobs[job.id]
            if current.is_cancelled:
                self._end(current, "cancelled", on_end)
                return
            self._due[job.id] = time.monotonic() + delay
            self._set(current, state="waiting", problem=problem, retries=current.retries + bool(problem))

    def cancel(self, collection: str, id_: str, *, on_end: Callable[[], object] = do_nothing) -> Job | None:
        """Cancel a waiting job, or mark a running one. Return None if it is over."""
        with self._lock:
            job = self._jobs.get(id_)
            if job is None or job.is_over or job.collection != collection:
                return None
            if job.state != "waiting":
                return self._set(job, is_cancelled=True)
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

    def find_cancelled(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs were cancelled."""
        return frozenset(id_ for id_ in ids if id_ in self._jobs and self._jobs[id_].is_cancelled)

    def find_unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs have not ended."""
        return frozenset(id_ for id_ in ids if id_ in self._jobs and not self._jobs[id_].is_over)

    def delete_ended(self, before: float) -> None:
        """Delete jobs that ended before a time, in seconds since 1970."""
        with self._lock:
            ended = [j.id for j in self._jobs.values() if j.ended_at and j.ended_at.timestamp() < before]
            for id_ in ended:
                del self._jobs[id_]
                self._due.pop(id_, None)

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _list_due(self) -> list[Job]:
        """Return the jobs that may run now, oldest first."""
        busy = {job.collection for job in self._jobs.values() if job.state == "running"}
        now, due, earlier = time.monotonic(), list[Job](), defaultdict[str, list[Job]](list)
        for job in (job for job in self._jobs.values() if not job.is_over and job.collection not in busy):
            is_first = not any(must_wait_for(job, other) for other in earlier[job.collection])
            if is_first and self._due.get(job.id, 0.0) <= now:
                due.append(job)
            earlier[job.collection].append(job)
        return due

    def _find_last_ends(self) -> Mapping[str, float]:
        """Return when the last job of each caller ended, in seconds since 1970."""
        ends = sorted((job.ended_at.timestamp(), job.caller) for job in self._jobs.values() if job.ended_at)
        return {caller: at for at, caller in ends}

    def _end(self, job: Job, state: JobState, on_end: Callable[[], object], **changed: Any) -> Job:
        on_end()  # first: a caller who reads the final state must find its effects
        return self._set(job, state=state, ended_at=datetime.now(UTC), **changed)

    def _set(self, job: Job, **changed: Any) -> Job:
        self._jobs[job.id] = replace(job, version=job.version + 1, **changed)
        return self._jobs[job.id]
