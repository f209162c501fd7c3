"""Jobs in a PostgreSQL database, in the schema `waylore_jobs`, beside the queue that procrastinate keeps there.

The queue's own statements are procrastinate's and run on our connections, so that a job is remembered and
queued in one transaction. Many processes may open this at once: one makes the tables, and the others wait.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, TypeVar
from uuid import UUID

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from waylore.service.jobs.protocol import Job, State
from waylore.store.postgres.connections import Connection, KeptConnections, fetched, wrapped_errors
from waylore.store.postgres.setup import migrated
from waylore.store.sql import load_migrations, load_queries

JOBS = load_queries("waylore.service.jobs", "postgres")
MIGRATIONS = load_migrations("waylore.service.jobs", "postgres")
LAST = (float("inf"), str(UUID(int=2**128 - 1)))
T = TypeVar("T")


def address(url: str) -> str:
    """The database, with our schema as the place of every name: procrastinate's statements name none."""
    given = conninfo_to_dict(url).get("options") or ""
    return make_conninfo(url, options=f"{given} -c search_path=waylore_jobs".strip())


class PostgresJobs:
    """A table of jobs; `queue_schema` is the SQL that makes the queue, where there is none yet."""

    def __init__(self, url: str, queue_schema: str, *, wait_seconds: int = 5) -> None:
        self._url = url
        self._connections = KeptConnections(address(url), wait_seconds=wait_seconds)
        try:
            self._done(lambda db: migrated(db, JOBS, MIGRATIONS, before=lambda db: _queue(db, queue_schema)))
        except BaseException:
            self.close()
            raise

    def add(self, job: Job, put: Callable[[Any], int]) -> None:
        """Remember a job and `put` it into the queue: both, or neither."""
        bound = {"id": job.id, "collection": job.collection, "caller": job.caller, "kind": job.kind}
        now = job.made_at.timestamp()

        def added(db: Connection) -> None:
            with db.transaction():
                db.execute(JOBS["add"], {**bound, "work": Jsonb(job.work), "now": now})
                db.execute(JOBS["queue"], {"id": job.id, "queued": put(db)})

        self._done(added)

    def begin(self, id_: str) -> Job | None:
        """A job, in a new run of it; None if there is nothing left to do."""
        return next(map(_job, self._rows("begin", id=id_, now=time())), None)

    def tell(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Say how far a run is; whether it is to stop, or None if it was lost."""
        told = Jsonb(dict(progress))
        rows = self._rows("tell", id=job.id, run=job.runs, progress=told, now=time())
        return bool(rows[0][0]) if rows else None

    def end(self, job: Job, state: State, *, result: Mapping[str, Any] | None, problem: str = "") -> bool:
        """Say what became of a run; whether it still counts."""
        told = None if result is None else Jsonb(dict(result))
        bound = {"state": state, "result": told, "problem": problem}
        return bool(self._rows("end", id=job.id, run=job.runs, now=time(), **bound))

    def put_back(self, job: Job, problem: str) -> None:
        """Say that a run came to nothing, and that the job waits for another."""
        self._rows("put_back", id=job.id, run=job.runs, problem=problem, now=time())

    def cancel(self, collection: str, id_: str, drop: Callable[[Any, int], object]) -> Job | None:
        """Cancel a job that waits, and `drop` it from the queue; tell one that runs to stop; None if over."""

        def cancelled(db: Connection) -> Job | None:
            with db.transaction():
                bound = {"id": id_, "collection": collection, "now": time()}
                row = db.execute(JOBS["cancel"], bound).fetchone()
                if row is None:
                    return None
                *columns, queued = row
                job = _job(columns)
                if job.is_over:
                    drop(db, queued)
                return job

        return self._done(cancelled)

    def job(self, collection: str, id_: str) -> Job | None:
        """A job of a collection."""
        return next(map(_job, self._rows("job", collection=collection, id=id_)), None)

    def jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Jobs of a collection, the newest first: all, or one caller's; `before` is (seconds, identity)."""
        made, id_ = before or LAST
        rows = self._rows("jobs", collection=collection, caller=caller, made=made, id=id_, limit=limit)
        return tuple(map(_job, rows))

    def unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Which of these are still to be done."""
        return frozenset(id_.hex for (id_,) in self._rows("unfinished", ids=list(ids)))

    def sweep(self, before: float) -> None:
        """Drop those that ended before a time."""
        self._rows("sweep", before=before)

    def take_over(self, seconds: float) -> int:
        """Put back what workers without a sign of life for so long were at; how many jobs that was."""
        return len(self._rows("take_over", seconds=seconds, now=time()))

    def close(self) -> None:
        """Let go of every connection."""
        self._connections.close()

    def _rows(self, statement: str, **bound: Any) -> list[Any]:
        return self._done(lambda db: fetched(db, JOBS[statement], bound))

    def _done(self, verb: Callable[[Connection], T]) -> T:
        with wrapped_errors(self._url):
            return self._connections.retried(verb)


def _queue(db: Connection, schema: str) -> None:
    db.execute(JOBS["create_schema"])
    [(is_there,)] = db.execute(JOBS["has_queue"]).fetchall()
    if not is_there:
        db.execute(schema.encode())


def _job(row: Sequence[Any]) -> Job:
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
    assert made is not None  # noqa: S101 (its column says so)
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
