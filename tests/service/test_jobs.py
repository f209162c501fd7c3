"""Jobs in both tables: each runs once, can be followed and cancelled, and is retried after transient errors."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tools.postgres.server import Server

from databases import create_database
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, NotFound, StoreUnavailable
from waylore.service.background import Background, open_background
from waylore.service.jobs import runner
from waylore.service.jobs.postgres import PostgresJobs
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.work import JobResources, describe_author, get_author
from waylore.settings.load import load
from waylore.settings.sections import Settings
from waylore.types.author import Author

ME = Author("me")
TEXT = "Mara owns the login. The login needs Sessions."


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "memory.waylore") if request.param == "file" else create_database()


def settings(store: str, folder: Path, *, concurrency: int = 2, heartbeat: float = 1.5, **http: Any) -> Settings:
    jobs = {"concurrency": concurrency, "heartbeat_timeout": heartbeat}
    return load(store=store, http={"upload_dir": folder / "spool", **http}, jobs=jobs)


class Gate:
    """Opens collections for jobs. Jobs wait while the gate is closed, and fail `fails` times with `error`."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.open = Event()
        self.open.set()
        self.borrowed: list[str] = []
        self.fails = 0
        self.error: Exception = StoreUnavailable("the store is away for a moment")

    @contextmanager
    def borrow(self, name: str, author: Author) -> Iterator[Waylore]:
        self.borrowed.append(name)
        assert self.open.wait(30)
        if self.fails:
            self.fails -= 1
            raise self.error
        with Waylore.open(self.store, collection=name, author=author) as waylore:
            yield waylore


@asynccontextmanager
async def background(of: Settings, gate: Gate, *, works: bool = True) -> AsyncIterator[Background]:
    with open_background(of, JobResources(gate.borrow, of.store, None)) as opened:
        if works:
            async with opened.run():
                yield opened
        else:
            yield opened


def work(opened: Background, name: str, content: str = TEXT) -> dict[str, Any]:
    path = opened.spool.folder / f"{time.monotonic_ns()}{Path(name).suffix}"
    path.write_text(content)
    return {"uri": name, "file": str(path), "labels": [], "metadata": {}}


def submit(opened: Background, name: str, *, collection: str = "notes", content: str = TEXT) -> Job:
    return opened.jobs.submit(collection, "add", work(opened, name, content), author=ME)


def take(opened: Background, job: Job, seconds: float = 60.0) -> Job:
    """Take a job as a worker does."""
    taken = opened.jobs.table.take(opened.jobs.spool, seconds)
    assert taken is not None
    assert taken.id == job.id
    return taken


async def when(opened: Background, job: Job, holds: Callable[[Job], bool], seconds: float = 30.0) -> Job:
    async with asyncio.timeout(seconds):
        while not holds(now := await asyncio.to_thread(opened.jobs.get_job, job.collection, job.id)):
            await asyncio.sleep(0.02)
    return now


async def over(opened: Background, job: Job) -> Job:
    return await when(opened, job, lambda now: now.is_over)


async def test_add_job_adds_file_and_removes_upload(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        job = submit(opened, "docs/login.md")
        done = await over(opened, job)
        assert (done.state, done.runs, done.problem) == ("done", 1, "")
        assert done.result is not None
        assert (done.result["documents"], done.result["unchanged"]) == (1, 0)
        assert done.progress["bytes"] == done.progress["of_bytes"] == len(TEXT)
        assert not Path(job.work["file"]).exists()
        again = await over(opened, submit(opened, "docs/login.md"))
        assert again.result is not None
        assert (again.result["documents"], again.result["unchanged"]) == (0, 1)
        changed = await over(opened, submit(opened, "docs/login.md", content="Nobody owns it."))
        assert changed.result is not None
        assert changed.result["documents"] == 1
    with Waylore.open(store, collection="notes") as waylore:
        assert [document.uri for document in waylore.documents()] == ["docs/login.md"]
        assert waylore.search("who owns it?").hits[0].passage.text == "Nobody owns it."


async def test_unreadable_file_is_reported_and_not_retried(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        done = await over(opened, submit(opened, "a.pdf", content="no PDF"))
        assert done.state == "done"
        assert done.result is not None
        assert done.result["skipped_count"] == 1
        assert done.result["skipped"][0]["uri"] == "a.pdf"
        lost = opened.jobs.submit("notes", "add", {**work(opened, "b.md"), "file": "/gone"}, author=ME)
        failed = await over(opened, lost)
        assert (failed.state, failed.runs) == ("failed", 1)
        assert "upload it again" in failed.problem
        no_model = await over(opened, opened.jobs.submit("notes", "reembed", {}, author=ME))
        assert "embedding.provider" in no_model.problem


async def test_transient_error_is_retried(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.fails = 2
    async with background(settings(store, tmp_path), gate) as opened:
        job = submit(opened, "a.md")
        waiting = await when(opened, job, lambda now: bool(now.problem))
        assert (waiting.state, waiting.problem) == ("waiting", "the store is away for a moment")
        done = await over(opened, job)
        assert (done.state, done.runs, done.problem) == ("done", 3, "")


async def test_job_fails_after_max_attempts(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_ATTEMPTS", 2)
    gate = Gate(store)
    gate.fails = 9
    async with background(settings(store, tmp_path), gate) as opened:
        failed = await over(opened, submit(opened, "a.md"))
        assert (failed.state, failed.runs, failed.problem) == ("failed", 2, "the store is away for a moment")


async def test_internal_error_ends_job_without_its_text(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        job = opened.jobs.submit("notes", "add", {"uri": "a.md"}, author=ME)
        failed = await over(opened, job)
        assert (failed.state, failed.problem) == ("failed", runner.INTERNAL_ERROR_MESSAGE)
        assert (await over(opened, submit(opened, "b.md"))).state == "done"


async def test_waiting_job_is_cancelled_at_once(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path), gate) as opened:
        first, second = submit(opened, "a.md"), submit(opened, "b.md")
        await when(opened, first, lambda now: now.state == "running")
        cancelled = opened.jobs.cancel("notes", second.id)
        assert cancelled.state == "cancelled"
        assert not Path(second.work["file"]).exists()
        assert opened.jobs.cancel("notes", second.id).state == "cancelled"
        gate.open.set()
        assert (await over(opened, first)).state == "done"
        assert opened.jobs.get_job("notes", second.id).runs == 0
    with Waylore.open(store, collection="notes") as waylore:
        assert [document.uri for document in waylore.documents()] == ["a.md"]


async def test_running_job_is_cancelled_before_its_next_step(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    rows = "".join(f'{{"text": "Note {n} is about the login of Mara {n}."}}\n' for n in range(4_000))
    async with background(settings(store, tmp_path), gate) as opened:
        job = submit(opened, "a.jsonl", content=rows)
        await when(opened, job, lambda now: now.state == "running")
        assert opened.jobs.cancel("notes", job.id).state == "running"
        gate.open.set()
        cancelled = await over(opened, job)
        assert cancelled.state == "cancelled"
        assert not Path(job.work["file"]).exists()
    with Waylore.open(store, collection="notes") as waylore:
        written = waylore.stats()
        assert written.documents < 4_000
        assert written.passages == written.documents


async def test_follow_starts_after_known_version(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path), gate) as opened:
        job = submit(opened, "a.md")
        look = partial(asyncio.to_thread, opened.jobs.get_job, "notes", job.id)
        running = await when(opened, job, lambda now: now.state == "running")
        asyncio.get_running_loop().call_later(0.2, gate.open.set)
        told = [event async for event in opened.jobs.follow(look, seconds=0.01)]
        versions = [event.version for event in told]
        assert versions == sorted(set(versions))
        assert told[0].state == "running"
        assert told[-1].state == "done"
        later = [event.version async for event in opened.jobs.follow(look, after=running.version)]
        assert later == versions[-1:]
        assert [event async for event in opened.jobs.follow(look, after=versions[-1])] == []


async def test_jobs_are_visible_to_their_caller_and_collection(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        ours = [submit(opened, f"{n}.md") for n in range(5)]
        theirs = submit(opened, "a.md", collection="theirs")
        listed = opened.jobs.list_jobs("notes", limit=3)
        assert [job.id for job in listed] == [job.id for job in reversed(ours)][:3]
        last = (listed[-1].made_at.timestamp(), listed[-1].id)
        assert [job.id for job in opened.jobs.list_jobs("notes", before=last)] == [ours[1].id, ours[0].id]
        assert opened.jobs.list_jobs("notes", caller="somebody else") == ()
        for wrong in (partial(opened.jobs.get_job, "notes"), partial(opened.jobs.cancel, "notes")):
            with pytest.raises(NotFound):
                wrong(theirs.id)
        with pytest.raises(NotFound):
            opened.jobs.get_job("notes", ours[0].id, caller="somebody else")


async def test_forget_job_deletes_one_collection_only(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        for name in ("notes", "others"):
            await over(opened, submit(opened, "a.md", collection=name))
        done = await over(opened, opened.jobs.submit("notes", "forget", {}, author=ME))
        assert done.result == {"documents": 1}
    for name, left in (("notes", 0), ("others", 1)):
        with Waylore.open(store, collection=name) as waylore:
            assert waylore.stats().documents == left


async def test_forget_job_deletes_documents_of_all_users(store: str, tmp_path: Path) -> None:
    with Waylore.open(store, collection="notes") as waylore:
        for user in ("", "mara", "sol"):
            waylore.add("The login is slow.", user=user)
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        done = await over(opened, opened.jobs.submit("notes", "forget", {}, author=ME))
        assert done.result == {"documents": 3}
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.stats().documents == 0


async def test_cancel_all_cancels_jobs_of_one_collection(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        ours = [submit(opened, f"{n}.md") for n in range(3)]
        theirs = submit(opened, "a.md", collection="others")
        opened.jobs.cancel_all("notes")
        assert {opened.jobs.get_job("notes", job.id).state for job in ours} == {"cancelled"}
        assert opened.jobs.get_job("others", theirs.id).state == "waiting"


async def test_add_job_does_not_replace_invisible_documents(store: str, tmp_path: Path) -> None:
    with Waylore.open(store, collection="notes") as waylore:
        waylore.add("Secret.", uri="a.md", labels=["board"])
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        staff = Author("key:staff", frozenset({"staff"}))
        failed = await over(opened, opened.jobs.submit("notes", "add", work(opened, "a.md"), author=staff))
        assert failed.state == "failed"
        assert "choose another address" in failed.problem
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.search("secret").hits[0].passage.text == "Secret."


async def test_job_runs_for_the_user_of_its_author(store: str, tmp_path: Path) -> None:
    triples = '{"subject": "Mara", "predicate": "likes", "object": "tea"}'
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        mara = Author("key:1", user="mara")
        added = opened.jobs.submit("notes", "add", work(opened, "a.md"), author=mara)
        wanted = work(opened, "a.jsonl", triples) | {"format": "triples"}
        imported = opened.jobs.submit("notes", "import", wanted, author=mara)
        assert [(await over(opened, job)).state for job in (added, imported)] == ["done", "done"]
        for content in ("Stolen.", TEXT):  # the same text must not look like an unchanged file
            wanted = work(opened, "a.md", content)
            failed = await over(opened, opened.jobs.submit("notes", "add", wanted, author=Author("key:2", user="sol")))
            assert failed.state == "failed"
            assert "choose another address" in failed.problem
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.documents() == waylore.documents(user="sol") == ()
        assert {document.user for document in waylore.documents(user="mara")} == {"mara"}
        assert waylore.stats().documents == 2


def test_job_of_an_earlier_release_has_no_user() -> None:
    described = describe_author(Author("me", frozenset({"red"}), user="mara"))
    job = Job(uuid4().hex, "notes", "me", "add", {"author": described}, datetime.now(UTC))
    assert get_author(job) == Author("me", frozenset({"red"}), user="mara")
    earlier = {name: value for name, value in described.items() if name != "user"}
    assert get_author(replace(job, work={"author": earlier})) == Author("me", frozenset({"red"}))


# -- waiting for a retry -------------------------------------------------------------------------------


@pytest.fixture
def long_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first retry come later than any test waits."""
    monkeypatch.setattr(runner, "FIRST_RETRY_SECONDS", 600.0)


@pytest.mark.usefixtures("long_delay")
async def test_waiting_retry_does_not_block_other_collections(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.fails = 1
    async with background(settings(store, tmp_path), gate) as opened:
        delayed = submit(opened, "a.md", collection="notes")
        await when(opened, delayed, lambda now: bool(now.problem))
        assert (await over(opened, submit(opened, "b.md", collection="others"))).state == "done"
        assert opened.jobs.get_job("notes", delayed.id).state == "waiting"


@pytest.mark.usefixtures("long_delay")
async def test_cancelled_retry_lets_the_next_job_run(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.fails = 1
    async with background(settings(store, tmp_path), gate) as opened:
        delayed, next_one = submit(opened, "a.md"), submit(opened, "b.md")
        await when(opened, delayed, lambda now: bool(now.problem))
        await asyncio.sleep(0.2)
        assert opened.jobs.get_job("notes", next_one.id).runs == 0  # jobs of a collection keep their order
        assert opened.jobs.cancel("notes", delayed.id).state == "cancelled"
        assert (await over(opened, next_one)).state == "done"
        assert opened.jobs.get_job("notes", delayed.id).runs == 1


# -- cancelled and failed at the same time -------------------------------------------------------------


async def test_upload_is_removed_before_job_ends(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        states: list[str] = []
        table = opened.jobs.table

        def record(job: Job) -> None:
            found = table.get_job("notes", job.id)
            assert found is not None
            states.append(found.state)

        for end in ("finish", "requeue", "cancel"):
            job = submit(opened, f"{end}.md")
            if end == "cancel":
                table.cancel("notes", job.id, on_end=partial(record, job))
                continue
            run = take(opened, job)
            if end == "finish":
                assert table.finish(run, "done", result={}, on_end=partial(record, job))
            else:
                table.cancel("notes", job.id, on_end=partial(record, job))
                table.requeue(run, on_end=partial(record, job))
        assert states == ["running", "running", "waiting"]


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("away"), ConfigError("wrong"), RuntimeError("a mistake")],
    ids=lambda e: type(e).__name__,
)
async def test_cancelled_run_that_fails_ends_cancelled(store: str, tmp_path: Path, error: Exception) -> None:
    gate = Gate(store)
    gate.fails, gate.error = 1, error
    gate.open.clear()
    async with background(settings(store, tmp_path), gate) as opened:
        job = submit(opened, "a.md")
        await when(opened, job, lambda now: now.state == "running")
        assert opened.jobs.cancel("notes", job.id).state == "running"
        gate.open.set()
        ended = await over(opened, job)
        assert (ended.state, ended.runs, ended.problem) == ("cancelled", 1, "")
        assert not Path(job.work["file"]).exists()


async def test_cancelled_job_does_not_run_again(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    async with background(settings(store, tmp_path), gate, works=False) as opened:
        requeued, lost = submit(opened, "a.md"), submit(opened, "b.md")
        run = take(opened, requeued)
        opened.jobs.cancel("notes", requeued.id)
        opened.jobs.table.requeue(run, problem="the store is away")
        run = take(opened, lost)
        opened.jobs.cancel("notes", lost.id)
        opened.jobs.run(replace(run, is_cancelled=True))  # as the next worker does after the first one died
        ended = [opened.jobs.get_job("notes", job.id) for job in (requeued, lost)]
        assert [(job.state, job.problem) for job in ended] == [("cancelled", "")] * 2
        assert gate.borrowed == []
        assert opened.jobs.table.take(opened.jobs.spool, 60.0) is None


# -- on PostgreSQL only --------------------------------------------------------------------------------


async def test_one_job_runs_at_a_time_for_each_collection(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path, concurrency=3, heartbeat=60.0), gate) as opened:
        jobs = [submit(opened, f"{n}.md", collection=name) for n in range(3) for name in ("one", "two")]
        await when(opened, jobs[1], lambda now: now.state == "running")
        await asyncio.sleep(0.5)
        assert sorted(gate.borrowed) == ["one", "two"]
        gate.open.set()
        for job in jobs:
            assert (await over(opened, job)).state == "done"
        assert sorted(gate.borrowed) == ["one"] * 3 + ["two"] * 3


def test_many_processes_create_the_table_at_once(postgres: Server) -> None:
    url = create_database()
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(PostgresJobs, [url] * 8))
    for table in tables:
        assert table.list_jobs("notes", caller=None, before=None, limit=1) == ()
        table.close()


async def test_job_of_stopped_worker_is_resumed_by_the_next(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    gate = Gate(store)
    gate.open.clear()
    rows = "".join(f'{{"text": "Note {n} is about the login of Mara {n}."}}\n' for n in range(1_000))
    of = settings(store, tmp_path, heartbeat=60.0)  # a busy machine may delay a heartbeat, which would be another run
    async with background(of, gate) as opened:
        job = submit(opened, "a.jsonl", content=rows)
        await when(opened, job, lambda now: now.state == "running")
        asyncio.get_running_loop().call_later(0.2, gate.open.set)
    async with background(of, gate, works=False) as opened:
        assert opened.jobs.get_job("notes", job.id).state == "waiting"
        assert Path(job.work["file"]).exists()
    async with background(of, gate) as opened:
        done = await over(opened, job)
        assert (done.state, done.runs) == ("done", 2)
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.stats().documents == 1_000


async def test_lost_run_cannot_end_the_job(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        job = submit(opened, "a.md")
        table = opened.jobs.table
        first = take(opened, job, seconds=0.0)
        second = take(opened, job)
        assert second.runs == 2
        assert table.report_progress(first, {"files": 1}) is None
        assert table.finish(first, "failed", result=None) is False
        table.requeue(first)
        assert opened.jobs.get_job("notes", job.id).state == "running"
        assert table.report_progress(second, {"files": 1}) is False
        assert table.finish(second, "done", result={}) is True
        assert table.take(opened.jobs.spool, 60.0) is None


async def test_held_job_is_not_taken_by_another_worker(postgres: Server, tmp_path: Path) -> None:
    """The run lasts for two heartbeat timeouts without a report, and stays the only one."""
    store = create_database()
    gate = Gate(store)
    gate.open.clear()
    of = settings(store, tmp_path)
    async with background(of, gate) as opened, background(of, gate):
        job = submit(opened, "a.md")
        await when(opened, job, lambda now: now.state == "running")
        await asyncio.sleep(2 * of.jobs.heartbeat_timeout)
        gate.open.set()
        assert (await over(opened, job)).runs == 1
    assert gate.borrowed == ["notes"]


def test_each_job_is_taken_once(postgres: Server, tmp_path: Path) -> None:
    """Eight workers take jobs at the same time, while two jobs of one collection never run at once."""
    store = create_database()
    table = PostgresJobs(store)
    made = datetime.now(UTC)
    for n in range(80):
        table.add(Job(uuid4().hex, f"c{n % 10}", "me", "forget", {}, made + timedelta(milliseconds=n)))

    def work(_: int) -> list[tuple[str, datetime]]:
        taken = []
        while any(not job.is_over for n in range(10) for job in listed(table, f"c{n}")):
            if job := table.take("", 60.0):
                assert [j.id for j in listed(table, job.collection) if j.state == "running"] == [job.id]
                taken.append((job.collection, job.made_at))
                table.finish(job, "done", result={})
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = [each for done in pool.map(work, range(8)) for each in done]
    assert len(taken) == len(set(taken)) == 80
    assert {job.runs for n in range(10) for job in listed(table, f"c{n}")} == {1}
    for n in range(10):
        ended = [(job.ended_at, job.made_at) for job in listed(table, f"c{n}")]
        assert [made for _, made in sorted(ended)] == sorted(made for _, made in ended)
    table.close()


def listed(table: PostgresJobs, collection: str) -> tuple[Job, ...]:
    return table.list_jobs(collection, caller=None, before=None, limit=100)


async def test_job_with_file_runs_only_where_the_file_is(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    async with (
        background(settings(store, tmp_path), Gate(store), works=False) as without,
        background(settings(store, tmp_path / "elsewhere"), Gate(store)) as elsewhere,
    ):
        job = submit(without, "a.md")
        anyones = without.jobs.submit("others", "forget", {}, author=ME)
        await over(elsewhere, anyones)
        assert without.jobs.get_job("notes", job.id).state == "waiting"


async def test_worker_reconnects_to_database(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        await over(opened, submit(opened, "a.md"))
        with psycopg.connect(store, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert (await over(opened, submit(opened, "b.md"))).state == "done"


async def test_old_jobs_are_deleted(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        job = submit(opened, "a.md")
        table = opened.jobs.table
        assert table.find_unfinished([job.id, "0" * 32]) == {job.id}
        table.finish(take(opened, job), "done", result={})
        assert table.find_unfinished([job.id]) == frozenset()
        table.delete_ended(time.time() - 60)
        assert opened.jobs.get_job("notes", job.id).state == "done"
        table.delete_ended(time.time() + 1)
        with pytest.raises(NotFound):
            opened.jobs.get_job("notes", job.id)


def test_file_store_refuses_jobs_with_several_processes(tmp_path: Path) -> None:
    of = settings(str(tmp_path / "memory.waylore"), tmp_path, workers=2)
    gate = Gate(of.store)
    with (
        open_background(of, JobResources(gate.borrow, of.store, None)) as opened,
        pytest.raises(ConfigError, match=r"http\.workers"),
    ):
        submit(opened, "a.md")


async def test_background_stops_right_after_start(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    of, gate = settings(store, tmp_path), Gate(store)
    for hundredth in (0, 1, 2, 4, 8, 16):
        async with asyncio.timeout(30), background(of, gate):
            await asyncio.sleep(hundredth / 100)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task.get_name() for task in others if task.get_name().startswith("pool-")]
