"""Jobs keep their promises on both queues: each is done once, can be followed and cancelled, tries again."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from tools.postgres import Server

from databases import database
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, NotFound, StoreUnavailable
from waylore.service.background import Background, opened_background
from waylore.service.jobs import runner as surfaces_jobs
from waylore.service.jobs.procrastinate import open_table
from waylore.service.jobs.protocol import Job
from waylore.service.jobs.work import Bench
from waylore.settings.load import Settings, load

TEXT = "Mara owns the login. The login needs Sessions."


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "memory.waylore") if request.param == "file" else database()


def settings(store: str, folder: Path, **http: Any) -> Settings:
    return load(store=store, http={"spool": folder / "spool", "takeover": 1.5, **http})


class Gate:
    """Lends collections, and holds up whoever adds to them until it is opened."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.open = Event()
        self.open.set()
        self.lent_to: list[str] = []
        self.fails = 0

    @contextmanager
    def lent(self, name: str) -> Iterator[Waylore]:
        self.lent_to.append(name)
        assert self.open.wait(30)
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("the store is away for a moment")
        with Waylore.open(self.store, collection=name) as waylore:
            yield waylore


@asynccontextmanager
async def background(of: Settings, gate: Gate, *, works: bool = True) -> AsyncIterator[Background]:
    with opened_background(of, Bench(gate.lent, of.store, None)) as opened:
        if works:
            async with opened.working():
                yield opened
        else:
            yield opened


def work(opened: Background, name: str, content: str = TEXT) -> dict[str, Any]:
    path = opened.spool.folder / f"{time.monotonic_ns()}{Path(name).suffix}"
    path.write_text(content)
    return {"uri": name, "file": str(path), "labels": [], "metadata": {}, "sees": None}


def submitted(opened: Background, name: str, *, collection: str = "notes", content: str = TEXT) -> Job:
    return opened.jobs.submitted(collection, "add", work(opened, name, content), caller="me")


async def when(opened: Background, job: Job, holds: Callable[[Job], bool], seconds: float = 30.0) -> Job:
    async with asyncio.timeout(seconds):
        while not holds(now := await asyncio.to_thread(opened.jobs.job, job.collection, job.id)):
            await asyncio.sleep(0.02)
    return now


async def over(opened: Background, job: Job) -> Job:
    return await when(opened, job, lambda now: now.is_over)


async def test_a_file_is_added_and_its_upload_removed(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        job = submitted(opened, "docs/login.md")
        done = await over(opened, job)
        assert (done.state, done.runs, done.problem) == ("done", 1, "")
        assert done.result is not None
        assert (done.result["documents"], done.result["unchanged"]) == (1, 0)
        assert done.progress["bytes"] == done.progress["of_bytes"] == len(TEXT)
        assert not Path(job.work["file"]).exists()
        again = await over(opened, submitted(opened, "docs/login.md"))
        assert again.result is not None
        assert (again.result["documents"], again.result["unchanged"]) == (0, 1)
        changed = await over(opened, submitted(opened, "docs/login.md", content="Nobody owns it."))
        assert changed.result is not None
        assert changed.result["documents"] == 1
    with Waylore.open(store, collection="notes") as waylore:
        assert [document.uri for document in waylore.documents()] == ["docs/login.md"]
        assert waylore.search("who owns it?").hits[0].passage.text == "Nobody owns it."


async def test_what_cannot_be_read_is_told_and_not_tried_again(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        done = await over(opened, submitted(opened, "a.pdf", content="no PDF"))
        assert done.state == "done"
        assert done.result is not None
        assert done.result["refused"] == 1
        assert done.result["refusals"][0]["uri"] == "a.pdf"
        lost = opened.jobs.submitted("notes", "add", {**work(opened, "b.md"), "file": "/gone"}, caller="me")
        failed = await over(opened, lost)
        assert (failed.state, failed.runs) == ("failed", 1)
        assert "upload it again" in failed.problem
        no_model = await over(opened, opened.jobs.submitted("notes", "reembed", {}, caller="me"))
        assert "embedding.provider" in no_model.problem


async def test_what_may_pass_is_tried_again(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.fails = 2
    async with background(settings(store, tmp_path), gate) as opened:
        job = submitted(opened, "a.md")
        waiting = await when(opened, job, lambda now: bool(now.problem))
        assert (waiting.state, waiting.problem) == ("waiting", "the store is away for a moment")
        done = await over(opened, job)
        assert (done.state, done.runs, done.problem) == ("done", 3, "")


async def test_trying_again_comes_to_an_end(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surfaces_jobs, "TRIES", 2)
    gate = Gate(store)
    gate.fails = 9
    async with background(settings(store, tmp_path), gate) as opened:
        failed = await over(opened, submitted(opened, "a.md"))
        assert (failed.state, failed.runs, failed.problem) == ("failed", 2, "the store is away for a moment")


async def test_a_mistake_of_ours_ends_a_job_without_its_words(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        job = opened.jobs.submitted("notes", "add", {"uri": "a.md"}, caller="me")
        failed = await over(opened, job)
        assert (failed.state, failed.problem) == ("failed", surfaces_jobs.UNFORESEEN)
        assert (await over(opened, submitted(opened, "b.md"))).state == "done"


async def test_a_waiting_job_is_cancelled_at_once(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path), gate) as opened:
        first, second = submitted(opened, "a.md"), submitted(opened, "b.md")
        await when(opened, first, lambda now: now.state == "running")
        cancelled = opened.jobs.cancelled("notes", second.id)
        assert cancelled.state == "cancelled"
        assert not Path(second.work["file"]).exists()
        assert opened.jobs.cancelled("notes", second.id).state == "cancelled"
        gate.open.set()
        assert (await over(opened, first)).state == "done"
        assert opened.jobs.job("notes", second.id).runs == 0
    with Waylore.open(store, collection="notes") as waylore:
        assert [document.uri for document in waylore.documents()] == ["a.md"]


async def test_a_running_job_is_cancelled_after_its_next_step(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    rows = "".join(f'{{"text": "Note {n} is about the login of Mara {n}."}}\n' for n in range(4_000))
    async with background(settings(store, tmp_path), gate) as opened:
        job = submitted(opened, "a.jsonl", content=rows)
        await when(opened, job, lambda now: now.state == "running")
        assert opened.jobs.cancelled("notes", job.id).state == "running"
        gate.open.set()
        cancelled = await over(opened, job)
        assert cancelled.state == "cancelled"
        assert not Path(job.work["file"]).exists()
    with Waylore.open(store, collection="notes") as waylore:
        written = waylore.stats()
        assert 0 < written.documents < 4_000
        assert written.passages == written.documents


async def test_jobs_are_followed_from_where_one_was(store: str, tmp_path: Path) -> None:
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path), gate) as opened:
        job = submitted(opened, "a.md")
        look = partial(asyncio.to_thread, opened.jobs.job, "notes", job.id)
        running = await when(opened, job, lambda now: now.state == "running")
        asyncio.get_running_loop().call_later(0.2, gate.open.set)
        told = [event async for event in opened.jobs.events(look, seconds=0.01)]
        versions = [event.version for event in told]
        assert versions == sorted(set(versions))
        assert told[0].state == "running"
        assert told[-1].state == "done"
        later = [event.version async for event in opened.jobs.events(look, after=running.version)]
        assert later == versions[-1:]
        assert [event async for event in opened.jobs.events(look, after=versions[-1])] == []


async def test_jobs_of_a_collection_are_its_callers_own(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        ours = [submitted(opened, f"{n}.md") for n in range(5)]
        theirs = submitted(opened, "a.md", collection="theirs")
        listed = opened.jobs.jobs("notes", limit=3)
        assert [job.id for job in listed] == [job.id for job in reversed(ours)][:3]
        last = (listed[-1].made_at.timestamp(), listed[-1].id)
        assert [job.id for job in opened.jobs.jobs("notes", before=last)] == [ours[1].id, ours[0].id]
        assert opened.jobs.jobs("notes", caller="somebody else") == ()
        for wrong in (partial(opened.jobs.job, "notes"), partial(opened.jobs.cancelled, "notes")):
            with pytest.raises(NotFound):
                wrong(theirs.id)
        with pytest.raises(NotFound):
            opened.jobs.job("notes", ours[0].id, caller="somebody else")


async def test_a_collection_is_forgotten_and_another_is_not(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        for name in ("notes", "others"):
            await over(opened, submitted(opened, "a.md", collection=name))
        done = await over(opened, opened.jobs.submitted("notes", "forget", {}, caller="me"))
        assert done.result == {"documents": 1}
    for name, left in (("notes", 0), ("others", 1)):
        with Waylore.open(store, collection=name) as waylore:
            assert waylore.stats().documents == left


async def test_all_jobs_of_a_collection_are_given_up(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        ours = [submitted(opened, f"{n}.md") for n in range(3)]
        theirs = submitted(opened, "a.md", collection="others")
        opened.jobs.given_up("notes")
        assert {opened.jobs.job("notes", job.id).state for job in ours} == {"cancelled"}
        assert opened.jobs.job("others", theirs.id).state == "waiting"


async def test_what_a_caller_may_not_see_is_not_replaced(store: str, tmp_path: Path) -> None:
    with Waylore.open(store, collection="notes") as waylore:
        waylore.add("Secret.", uri="a.md", labels=["board"])
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        mine = {**work(opened, "a.md"), "sees": ["staff"], "labels": ["staff"]}
        failed = await over(opened, opened.jobs.submitted("notes", "add", mine, caller="me"))
        assert failed.state == "failed"
        assert "may not see" in failed.problem
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.search("secret").hits[0].passage.text == "Secret."


# -- on a server alone ---------------------------------------------------------------------------------


async def test_one_job_at_a_time_for_each_collection(postgres: Server, tmp_path: Path) -> None:
    store = database()
    gate = Gate(store)
    gate.open.clear()
    async with background(settings(store, tmp_path, jobs=3), gate) as opened:
        jobs = [submitted(opened, f"{n}.md", collection=name) for n in range(3) for name in ("one", "two")]
        await when(opened, jobs[1], lambda now: now.state == "running")
        await asyncio.sleep(0.5)
        assert sorted(gate.lent_to) == ["one", "two"]
        gate.open.set()
        for job in jobs:
            assert (await over(opened, job)).state == "done"
        assert sorted(gate.lent_to) == ["one"] * 3 + ["two"] * 3


def test_many_processes_make_the_queue_at_once(postgres: Server) -> None:
    url = database()
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(open_table, [url] * 8))
    for table in tables:
        assert table.jobs("notes", caller=None, before=None, limit=1) == ()
        table.close()


async def test_a_job_of_a_stopped_worker_waits_for_the_next(postgres: Server, tmp_path: Path) -> None:
    store = database()
    gate = Gate(store)
    gate.open.clear()
    rows = "".join(f'{{"text": "Note {n} is about the login of Mara {n}."}}\n' for n in range(4_000))
    of = settings(store, tmp_path)
    async with background(of, gate) as opened:
        job = submitted(opened, "a.jsonl", content=rows)
        await when(opened, job, lambda now: now.state == "running")
        asyncio.get_running_loop().call_later(0.2, gate.open.set)
    async with background(of, gate, works=False) as opened:
        assert opened.jobs.job("notes", job.id).state == "waiting"
        assert Path(job.work["file"]).exists()
    async with background(of, gate) as opened:
        done = await over(opened, job)
        assert (done.state, done.runs) == ("done", 2)
    with Waylore.open(store, collection="notes") as waylore:
        assert waylore.stats().documents == 4_000


async def test_a_worker_that_was_taken_for_dead_does_not_end_the_job_of_another(
    postgres: Server, tmp_path: Path
) -> None:
    store = database()
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        job = submitted(opened, "a.md")
        table = opened.jobs.table
        first = table.begin(job.id)
        second = table.begin(job.id)
        assert first is not None
        assert second is not None
        assert table.tell(first, {"files": 1}) is None
        assert table.end(first, "failed", result=None) is False
        assert table.tell(second, {"files": 1}) is False
        assert table.end(second, "done", result={}) is True
        assert table.begin(job.id) is None


async def test_a_job_with_a_file_is_left_to_those_who_have_the_file(postgres: Server, tmp_path: Path) -> None:
    store = database()
    async with (
        background(settings(store, tmp_path), Gate(store), works=False) as without,
        background(settings(store, tmp_path / "elsewhere"), Gate(store)) as elsewhere,
    ):
        job = submitted(without, "a.md")
        anyones = without.jobs.submitted("others", "forget", {}, caller="me")
        await over(elsewhere, anyones)
        assert without.jobs.job("notes", job.id).state == "waiting"


async def test_a_server_that_was_away_is_worked_with_again(postgres: Server, tmp_path: Path) -> None:
    store = database()
    async with background(settings(store, tmp_path), Gate(store)) as opened:
        await over(opened, submitted(opened, "a.md"))
        with psycopg.connect(store, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert (await over(opened, submitted(opened, "b.md"))).state == "done"


async def test_old_jobs_and_files_are_swept_away(store: str, tmp_path: Path) -> None:
    async with background(settings(store, tmp_path), Gate(store), works=False) as opened:
        job = submitted(opened, "a.md")
        table = opened.jobs.table
        assert table.unfinished([job.id, "0" * 32]) == {job.id}
        begun = table.begin(job.id)
        assert begun is not None
        table.end(begun, "done", result={})
        assert table.unfinished([job.id]) == frozenset()
        table.sweep(time.time() - 60)
        assert opened.jobs.job("notes", job.id).state == "done"
        table.sweep(time.time() + 1)
        with pytest.raises(NotFound):
            opened.jobs.job("notes", job.id)


def test_over_a_file_one_process_has_the_jobs(tmp_path: Path) -> None:
    of = settings(str(tmp_path / "memory.waylore"), tmp_path, workers=2)
    gate = Gate(of.store)
    with (
        opened_background(of, Bench(gate.lent, of.store, None)) as opened,
        pytest.raises(ConfigError, match=r"http\.workers"),
    ):
        submitted(opened, "a.md")


async def test_a_service_ends_however_short_it_was(postgres: Server, tmp_path: Path) -> None:
    store = database()
    of, gate = settings(store, tmp_path), Gate(store)
    for hundredth in (0, 1, 2, 4, 8, 16):
        async with asyncio.timeout(30), background(of, gate):
            await asyncio.sleep(hundredth / 100)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task.get_name() for task in others if task.get_name().startswith("pool-")]
