"""Few requests and jobs of one caller may wait, over the routes and over MCP, and other callers are served."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from fastapi import FastAPI

from surfaces.serving import create_client, create_token, make_settings, read_json, start_app
from waylore.service.jobs.runner import MAX_WAITING_JOBS
from waylore.service.shares import MAX_WAITING_CALLS
from waylore.settings.sections import Settings

NOTES = "/v1/collections/default"


@pytest.fixture
def of(tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "memory.waylore", http={"upload_dir": tmp_path / "spool"})


@pytest.fixture
async def app(of: Settings) -> AsyncIterator[FastAPI]:
    async with start_app(of) as started, create_client(started, create_token(of.store)) as admin:
        read_json(await admin.post(f"{NOTES}/documents", json={"text": "Mara owns the login."}))
        yield started


@contextmanager
def hold_write_lock(of: Settings) -> Iterator[None]:
    """Hold the lock of the file, as another process that writes."""
    other = apsw.Connection(of.store)
    other.set_busy_timeout(30_000)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def wait_for_done(tasks: list[asyncio.Task[httpx.Response]], count: int) -> list[httpx.Response]:
    async with asyncio.timeout(60):
        while sum(task.done() for task in tasks) < count:
            await asyncio.sleep(0.02)
    return [task.result() for task in tasks if task.done()]


def call_tool(client: httpx.AsyncClient, name: str, **arguments: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return client.post("/mcp", json=body, headers={"Accept": "application/json, text/event-stream"})


async def test_few_writes_of_a_caller_may_wait(app: FastAPI, of: Settings) -> None:
    async with (
        create_client(app, create_token(of.store)) as caller,
        create_client(app, create_token(of.store)) as other,
    ):
        with hold_write_lock(of):
            count = MAX_WAITING_CALLS + 1  # one runs
            tasks = [
                asyncio.create_task(caller.post(f"{NOTES}/documents", json={"text": f"Note {n}."}))
                for n in range(count + 3)
            ]
            refused = await wait_for_done(tasks, 3)
            assert [(each.status_code, each.headers["retry-after"]) for each in refused] == [(429, "1")] * 3
            assert "16 requests of yours are waiting; try again" in refused[0].json()["detail"]
            over_mcp = (await call_tool(caller, "memory_add", text="One more note.")).json()["result"]
            assert over_mcp["isError"]
            assert "16 requests of yours are waiting" in over_mcp["content"][0]["text"]
            assert (await caller.post(f"{NOTES}/search", json={"query": "login"})).status_code == 200
            assert not (await call_tool(caller, "memory_search", query="Who owns it?")).json()["result"]["isError"]
            late = asyncio.create_task(other.post(f"{NOTES}/documents", json={"text": "Another's note."}))
            await asyncio.sleep(0.1)
            assert not late.done()  # not refused
        assert (await late).status_code == 201
        assert [each.status_code for each in await asyncio.gather(*tasks)].count(201) == count


async def test_writes_wait_without_a_reading_thread(app: FastAPI, of: Settings) -> None:
    async with create_client(app, create_token(of.store)) as caller:
        with hold_write_lock(of):
            calls = [call_tool(caller, "memory_add", text=f"Note {n} of Mara.") for n in range(16)]
            tasks = [asyncio.create_task(call) for call in calls]
            for number in range(20):
                read_json(await caller.post(f"{NOTES}/search", json={"query": f"login {number}"}))
            assert not any(task.done() for task in tasks)
        assert not any(each.json()["result"]["isError"] for each in await asyncio.gather(*tasks))


async def test_few_jobs_of_a_caller_may_wait(app: FastAPI, of: Settings) -> None:
    sent = 0

    async def content() -> AsyncIterator[bytes]:
        nonlocal sent
        sent += 1
        yield b"Mara owns the login."

    async with (
        create_client(app, create_token(of.store)) as caller,
        create_client(app, create_token(of.store)) as other,
    ):
        with hold_write_lock(of):
            for number in range(MAX_WAITING_JOBS + 1):
                read_json(await caller.put(f"{NOTES}/uploads/{number}.md", content=b"Mara owns the login."))
            for _ in range(200):
                refused = await caller.put(f"{NOTES}/uploads/last.md", content=content())
                if refused.status_code == 429:
                    break
                await asyncio.sleep(0.01)
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
            assert "jobs of yours are waiting; submit more when some have ended" in refused.json()["detail"]
            before = sent
            assert (await caller.put(f"{NOTES}/uploads/last.md", content=content())).status_code == 429
            assert sent == before  # refused before the file is read
            assert (await caller.post(f"{NOTES}/jobs", json={"kind": "forget"})).status_code == 429
            assert (await other.put(f"{NOTES}/uploads/other.md", content=b"Mara.")).status_code == 202
