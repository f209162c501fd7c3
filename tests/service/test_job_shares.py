"""Callers share the workers of jobs: they take turns, and a caller has one running job while others wait."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tools.postgres.server import Server

from databases import create_database
from waylore.service.background import open_background
from waylore.service.jobs.postgres import PostgresJobs
from waylore.service.jobs.protocol import Job, JobKind, JobTable
from waylore.service.jobs.runner import MAX_WAITING_JOBS, JobRunner
from waylore.service.jobs.work import JobResources
from waylore.service.shares import TooManyWaiting
from waylore.settings.load import load
from waylore.types.author import Author

NUMBERS = count()


@pytest.fixture(params=["file", "server"])
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobRunner]:
    """Return the jobs of a service whose workers do not run."""
    store = str(tmp_path / "memory.waylore") if request.param == "file" else create_database()
    settings = load(store=store, http={"upload_dir": tmp_path / "spool"})
    resources = JobResources(lambda *_: pytest.fail("no job is run"), store, None)
    with open_background(settings, resources) as opened:
        yield opened.jobs


def submit(jobs: JobRunner, caller: str, collection: str, uri: str | None = "", kind: JobKind = "add") -> Job:
    """Submit a job for an address of its own, for a given address, or, if it is None, for the whole collection."""
    work: dict[str, Any] = {} if uri is None else {"uri": uri or f"{next(NUMBERS)}.md"}
    return jobs.submit(collection, kind, work, author=Author(caller))


def take(table: JobTable, *, is_reserve: bool = False) -> Job | None:
    return table.take("", 60.0, is_reserve=is_reserve)


def finish_all(table: JobTable) -> list[str]:
    """Run the jobs one after the other, and return their ids in that order."""
    order = []
    while job := take(table):
        table.finish(job, "done", result={})
        order.append(job.id)
    return order


def test_callers_take_turns(jobs: JobRunner) -> None:
    a = [submit(jobs, "a", f"a{n}") for n in range(4)]
    b = [submit(jobs, "b", f"b{n}") for n in range(2)]
    c = submit(jobs, "c", "c")
    expected = [a[0], b[0], c, a[1], b[1], a[2], a[3]]
    assert finish_all(jobs.table) == [job.id for job in expected]


def test_callers_take_turns_within_a_collection(jobs: JobRunner) -> None:
    a = [submit(jobs, "a", "notes") for _ in range(3)]
    b = submit(jobs, "b", "notes")
    assert finish_all(jobs.table) == [a[0].id, b.id, a[1].id, a[2].id]


def test_jobs_that_depend_on_each_other_keep_their_order(jobs: JobRunner) -> None:
    first = [submit(jobs, "a", "notes", "x.md"), submit(jobs, "a", "notes", "y.md")]
    same_uri = submit(jobs, "b", "notes", "y.md")
    whole = submit(jobs, "c", "notes", None, "forget")
    after = submit(jobs, "d", "notes", "z.md")
    expected = [*first, same_uri, whole, after]
    assert finish_all(jobs.table) == [job.id for job in expected]


def test_caller_has_one_running_job_while_others_wait(jobs: JobRunner) -> None:
    a = [submit(jobs, "a", f"a{n}") for n in range(3)]
    b = submit(jobs, "b", "b")
    taken = [take(jobs.table) for _ in range(4)]
    assert [job and job.id for job in taken] == [a[0].id, b.id, a[1].id, a[2].id]
    assert take(jobs.table) is None


def test_reserve_runs_jobs_of_callers_without_one(jobs: JobRunner) -> None:
    a = [submit(jobs, "a", f"a{n}") for n in range(3)]
    first = take(jobs.table, is_reserve=True)
    assert first
    assert first.id == a[0].id
    assert take(jobs.table, is_reserve=True) is None
    b = submit(jobs, "b", "b")
    second = take(jobs.table, is_reserve=True)
    assert second
    assert second.id == b.id
    jobs.table.finish(first, "done", result={})
    third = take(jobs.table, is_reserve=True)
    assert third
    assert third.id == a[1].id


def test_caller_has_few_waiting_jobs(jobs: JobRunner) -> None:
    submitted = [submit(jobs, "a", "notes") for _ in range(MAX_WAITING_JOBS)]
    with pytest.raises(TooManyWaiting, match="32 jobs of yours are waiting"):
        submit(jobs, "a", "other")
    submit(jobs, "b", "notes")
    assert take(jobs.table)  # a running job does not wait
    submit(jobs, "a", "other")
    with pytest.raises(TooManyWaiting):
        submit(jobs, "a", "other")
    jobs.cancel("notes", submitted[9].id)
    submit(jobs, "a", "other")


def test_lost_job_does_not_count_as_running(postgres: Server) -> None:
    with closing(PostgresJobs(create_database())) as table:
        lost = Job(uuid4().hex, "a", "a", "add", {"uri": "x"}, datetime.now(UTC))
        table.add(lost)
        assert table.take("", 0.0)
        table.add(Job(uuid4().hex, "b", "b", "add", {"uri": "y"}, datetime.now(UTC)))
        again = take(table, is_reserve=True)
        assert again
        assert (again.id, again.runs) == (lost.id, 2)
