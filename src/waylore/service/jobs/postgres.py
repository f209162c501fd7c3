"""The table of jobs in a PostgreSQL database, in the schema `waylore_jobs`, next to procrastinate's queue.

Procrastinate's statements run on our connections, so a job is stored and queued in one transaction. Many
processes may open the table at once: one creates the tables and the others wait.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Any, TypeVar
from uuid import UUID

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from waylore.service.jobs.protocol import Job, JobState, do_nothing
from waylore.store.postgres.connections import Connection, IdleConnections, fetch_rows, translate_errors
from waylore.store.postgres.setup import migrate_schema
from waylore.store.sql import load_migrations, load_queries

JOBS = load_queries("waylore.service.jobs", "postgres")
MIGRATIONS = load_migrations("waylore.service.jobs", "postgres")
RENAMING = load_queries("waylore.service.jobs", "postgres", "legacy")
FIRST_PAGE = (float("inf"), str(UUID(int=2**128 - 1)))  # a position before the newest job
T = TypeVar("T")


def add_search_path(url: str) -> str:
    """Return the URL with `waylore_jobs` as the current schema: procrastinate's statements name no schema."""
    options = conninfo_to_dict(url).get("options") or ""
    return make_conninfo(url, options=f"{options} -c search_path=waylore_jobs".strip())


class PostgresJobs:
    """A table of jobs. `queue_schema` is the SQL that creates the queue if the database has none."""

    def __init__(self, url: str, queue_schema: str, *, wait_seconds: int = 5) -> None:
        self._url = url
        self._connections = IdleConnections(add_search_path(url), wait_seconds=wait_seconds)
        try:
            self._run(lambda db: _migrate(db, queue_schema))
        except BaseException:
            self.close()
            raise

    def add(self, job: Job, enqueue: Callable[[Any], int]) -> None:
        """Store a job and put it into the queue with `enqueue`: both, or neither."""
        bound = {"id": job.id, "collection": job.collection, "caller": job.caller, "kind": job.kind}
        now = job.made_at.timestamp()

        def add(db: Connection) -> None:
            with db.transaction():
                db.execute(JOBS["add"], {**bound, "work": Jsonb(job.work), "now": now})
                db.execute(JOBS["set_queue_number"], {"id": job.id, "queued": enqueue(db)})

        self._run(add)

    def start_run(self, id_: str) -> Job | None:
        """Start a new run and return the job. Return None if the job has ended."""
        return next(map(_to_job, self._rows("start_run", id=id_, now=time())), None)

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

    def requeue(self, job: Job, problem: str, *, on_end: Callable[[], object] = do_nothing) -> bool:
        """Let the job wait for another run. If it was cancelled, end it and return False."""
        bound = {"id": job.id, "run": job.runs, "problem": problem}

        def requeue(db: Connection) -> bool:
            with db.transaction():
                row = db.execute(JOBS["requeue"], {**bound, "now": time()}).fetchone()
                is_over = row is not None and row[0] == "cancelled"
                if is_over:
                    on_end()
                return not is_over

        return self._run(requeue)

    def cancel(
        self,
        collection: str,
        id_: str,
        drop: Callable[[Any, int], object],
        *,
        on_end: Callable[[], object] = do_nothing,
    ) -> Job | None:
        """Cancel a waiting job and `drop` it from the queue, or mark a running one. None if it is over."""

        def cancel(db: Connection) -> Job | None:
            with db.transaction():
                bound = {"id": id_, "collection": collection, "now": time()}
                row = db.execute(JOBS["cancel"], bound).fetchone()
                if row is None:
                    return None
                *columns, queue_number = row
                job = _to_job(columns)
                if job.is_over:
                    drop(db, queue_number)
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

    def find_unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Return those of the ids whose jobs have not ended."""
        return frozenset(id_.hex for (id_,) in self._rows("find_unfinished", ids=list(ids)))

    def delete_ended(self, before: float) -> None:
        """Delete jobs that ended before a time, in seconds since 1970."""
        self._rows("delete_ended", before=before)

    def requeue_lost(self, seconds: float) -> int:
        """Put back the jobs of workers without a heartbeat for `seconds`. Return their number."""
        return len(self._rows("requeue_lost", seconds=seconds, now=time()))

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def _rows(self, statement: str, **bound: Any) -> list[Any]:
        return self._run(lambda db: fetch_rows(db, JOBS[statement], bound))

    def _run(self, call: Callable[[Connection], T]) -> T:
        with translate_errors(self._url):
            return self._connections.run_with_retry(call)


def _migrate(db: Connection, queue_schema: str) -> None:
    carry = [RENAMING["carry_queue"]]
    before = partial(_create_queue, schema=queue_schema)
    migrate_schema(db, JOBS, MIGRATIONS, schema="waylore_jobs", carry=carry, before=before)


def _create_queue(db: Connection, schema: str) -> None:
    db.execute(JOBS["create_schema"])
    [(has_queue,)] = db.execute(JOBS["has_queue"]).fetchall()
    if not has_queue:
        db.execute(schema.encode())


def _to_job(row: Sequence[Any]) -> Job:
    (
        id_,
        collection,
        caller,
        kind,
        work,
        state,
        run,
        is_cancelled,
        progress,
        result,
        problem,
        *times,
        version,
    ) = row
    made, began, ended = (None if t is None else datetime.fromtimestamp(t, UTC) for t in times)
    assert made is not None  # noqa: S101 (the column is NOT NULL)
    return Job(
        id=id_.hex,
        collection=collection,
        caller=caller,
        kind=kind,
        work=work,
        made_at=made,
        state=state,
        runs=run,
        is_cancelled=is_cancelled,
        progress=progress,
        result=result,
        problem=problem,
        began_at=began,
        ended_at=ended,
        version=version,
    )
