"""The table of jobs in a PostgreSQL database, in the schema `waylore_jobs`.

Any number of processes take jobs from it; each job is taken by one. If many processes open the table at once, one
creates it and the others wait.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, TypeVar
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from waylore.service.jobs.protocol import Job, JobState, do_nothing
from waylore.store.postgres.connections import Connection, IdleConnections, fetch_rows, translate_errors
from waylore.store.postgres.setup import migrate_schema
from waylore.store.sql import load_migrations, load_queries

JOBS = load_queries("waylore.service.jobs", "postgres")
MIGRATIONS = load_migrations("waylore.service.jobs", "postgres")
FIRST_PAGE = (float("inf"), str(UUID(int=2**128 - 1)))  # a position before the newest job
T = TypeVar("T")


class PostgresJobs:
    """A table of jobs that all processes of a service share."""

    def __init__(self, url: str, *, wait_seconds: int = 5) -> None:
        self._url = url
        self._connections = IdleConnections(url, wait_seconds=wait_seconds)
        try:
            self._run(_migrate)
        except BaseException:
            self.close()
            raise

    def add(self, job: Job) -> None:
        """Store a job that waits for a worker, unless it is stored already."""
        bound = {"id": job.id, "collection": job.collection, "caller": job.caller, "kind": job.kind}
        self._rows("add", **bound, work=Jsonb(job.work), spool=job.spool, now=job.made_at.timestamp())

    def count_waiting(self, caller: str) -> int:
        """Return how many jobs of a caller wait."""
        [(count,)] = self._rows("count_waiting", caller=caller)
        return int(count)

    def take(self, spool: str, seconds: float, *, is_reserve: bool = False) -> Job | None:
        """Start a run of the next job that is due, and hold it for `seconds`. Return None if none is due."""
        bound = {"spool": spool, "seconds": seconds, "is_reserve": is_reserve, "now": time()}

        def take(db: Connection) -> list[Any]:
            try:
                return fetch_rows(db, JOBS["take"], bound)
            except UniqueViolation:  # another worker took a job of the same collection at the same moment
                return []

        return next(map(_to_job, self._run(take)), None)

    def hold(self, jobs: Sequence[Job], seconds: float) -> None:
        """Hold the jobs of these runs for `seconds` from now."""
        self._rows("hold", ids=[job.id for job in jobs], runs=[job.runs for job in jobs], seconds=seconds)

    def report_progress(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Store the progress of a run. Return whether the job was cancelled, or None if the run was lost."""
        bound = {"id": job.id, "run": job.runs, "progress": Jsonb(dict(progress)), "now": time()}
        rows = self._rows("report_progress", **bound)
        return bool(rows[0][0]) if rows else None

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
        value = None if result is None else Jsonb(dict(result))
        bound = {"id": job.id, "run": job.runs, "state": state, "result": value, "problem": problem}

        def finish(db: Connection) -> bool:
            with db.transaction():
                is_ours = db.execute(JOBS["finish"], {**bound, "now": time()}).fetchone() is not None
                if is_ours:
                    on_end()
                return is_ours

        return self._run(finish)

    def requeue(
        self, job: Job, *, problem: str = "", delay: float = 0.0, on_end: Callable[[], object] = do_nothing
    ) -> None:
        """Let the job wait `delay` seconds for another run. If it was cancelled, end it."""
        bound = {"id": job.id, "run": job.runs, "problem": problem, "delay": delay}

        def requeue(db: Connection) -> None:
            with db.transaction():
                row = db.execute(JOBS["requeue"], {**bound, "now": time()}).fetchone()
                if row is not None and row[0] == "cancelled":
                    on_end()

        self._run(requeue)

    def cancel(self, collection: str, id_: str, *, on_end: Callable[[], object] = do_nothing) -> Job | None:
        """Cancel a waiting job, or mark a running one. Return None if it is over."""

        def cancel(db: Connection) -> Job | None:
            with db.transaction():
                bound = {"id": id_, "collection": collection, "now": time()}
                row = db.execute(JOBS["cancel"], bound).fetchone()
                job = None if row is None else _to_job(row)
                if job is not None and job.is_over:
                    on_end()
                return job

        return self._run(cancel)

    def get_job(self, collection: str, id_: str) -> Job | None:
        """Return a job of a collection."""
        return next(map(_to_job, self._rows("get_job", collection=collection, id=id_)), None)

    def list_jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Return jobs of a collection, newest first, after the position `before`."""
        made, id_ = before or FIRST_PAGE
        bound = {"collection": collection, "caller": caller, "made": made, "id": id_, "limit": limit}
        return tuple(map(_to_job, self._rows("list_jobs", **bound)))

    def find_cancelled(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs were cancelled."""
        return frozenset(id_.hex for (id_,) in self._rows("find_cancelled", ids=list(ids)))

    def find_unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids whose jobs have not ended."""
        return frozenset(id_.hex for (id_,) in self._rows("find_unfinished", ids=list(ids)))

    def delete_ended(self, before: float) -> None:
        """Delete jobs that ended before a time, in seconds since 1970."""
        self._rows("delete_ended", before=before)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def _rows(self, statement: str, **bound: Any) -> list[Any]:
        return self._run(lambda db: fetch_rows(db, JOBS[statement], bound))

    def _run(self, call: Callable[[Connection], T]) -> T:
        with translate_errors(self._url):
            return self._connections.run_with_retry(call)


def _migrate(db: Connection) -> None:
    migrate_schema(db, JOBS, MIGRATIONS, schema="waylore_jobs")


def _to_job(row: Sequence[Any]) -> Job:
    *columns, made, began, ended, version, spool, retries = row
    id_, collection, caller, kind, work, state, runs, is_cancelled, progress, result, problem = columns
    return Job(
        id=id_.hex,
        collection=collection,
        caller=caller,
        kind=kind,
        work=work,
        made_at=datetime.fromtimestamp(made, UTC),
        state=state,
        runs=runs,
        is_cancelled=is_cancelled,
        progress=progress,
        result=result,
        problem=problem,
        began_at=None if began is None else datetime.fromtimestamp(began, UTC),
        ended_at=None if ended is None else datetime.fromtimestamp(ended, UTC),
        version=version,
        spool=spool,
        retries=retries,
    )
