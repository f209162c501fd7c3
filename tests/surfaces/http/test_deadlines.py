"""Requests end by their deadline: what took too long stops, changes nothing, and is done once if it comes again."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import psycopg
import pytest
from tools.waiting import HANG_SECONDS

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, open_client, read_json, start_app
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.service import Service
from waylore.settings.sections import EmbeddingSettings
from waylore.store.postgres.scope import compute_key
from waylore.types.author import Author

NOTES = "/v1/collections/default"
DOCUMENTS = 800
WORD = {"Idempotency-Key": "forget-1"}
LONG_TEXT = "\n\n".join(f"Person {n} of Team {n % 97} works at Office {n % 31} with Tool {n}." for n in range(15_000))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


async def is_idle() -> bool:
    """Return whether this process uses no processor time, after a moment in which threads may end."""
    for _ in range(20):
        before = time.process_time()
        await asyncio.sleep(0.5)
        if time.process_time() - before < 0.1:
            return True
    return False


@contextmanager
def hold_up_writers(store: str) -> Iterator[None]:
    """Let every write to the documents wait while the block runs."""
    if store.startswith("postgresql:"):
        with psycopg.connect(store) as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", [compute_key("default")])
            yield
    else:
        with closing(apsw.Connection(store)) as writer:
            writer.setbusytimeout(60_000)  # the service may be writing
            writer.execute("BEGIN IMMEDIATE")
            yield


async def wait_until_open(asked: httpx.AsyncClient) -> None:
    """Wait until the service has opened the collection, which may take longer than a request may."""
    while (done := await asked.get(f"{NOTES}/stats")).status_code != 200:
        assert done.status_code in (503, 504), done.text
        await asyncio.sleep(0.1)


def open_store(store: str) -> Waylore:
    """Open the collection of a service, with its embedder."""
    return Waylore.open(store, embedder=HashingEmbedder(quiet=True))


def list_ids(store: str) -> list[str]:
    with open_store(store) as waylore:
        return [document.id for document in waylore.documents()]


# -- work ends -----------------------------------------------------------------------------------------


async def test_long_write_ends_by_its_deadline_and_changes_nothing(store: str) -> None:
    async with open_client(make_settings(store, http={"request_timeout": 1.0})) as asked:
        await wait_until_open(asked)
        late = await asked.post(f"{NOTES}/documents", json={"text": LONG_TEXT})
        assert (late.status_code, late.json()["type"]) == (504, "urn:waylore:problem:timeout")
        assert "nothing was changed" in late.json()["detail"]
        assert await is_idle()
        assert list_ids(store) == []


async def test_requests_end_while_the_model_hangs(tmp_path: Path) -> None:
    """The server of the model accepts requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        of = make_settings(tmp_path / "memory.waylore", http={"request_timeout": 3.0})
        of = of.model_copy(update={"embedding": EmbeddingSettings(provider="openai", model="m", base_url=url)})
        async with open_client(of) as asked:
            await wait_until_open(asked)
            async with asyncio.timeout(HANG_SECONDS):
                found = await asked.post(f"{NOTES}/search", json={"query": "Mara"})
                added = await asked.post(f"{NOTES}/documents", json={"text": "Jon works there too."})
            assert found.status_code in (200, 504)  # words are searched if there is time left
            assert added.status_code in (503, 504)
            assert await is_idle()


async def test_mcp_is_within_the_deadline(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore", http={"request_timeout": 1.0})
    call = {"name": "memory_add", "arguments": {"text": LONG_TEXT}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepted = {"Accept": "application/json, text/event-stream"}
    async with open_client(of) as asked:
        await wait_until_open(asked)
        late = await asked.post("/mcp", json=sent, headers=accepted)
        assert late.status_code == 504 or late.json().get("result", {}).get("isError"), late.text
        assert await is_idle()
    assert list_ids(of.store) == []


async def test_authentication_is_within_the_deadline() -> None:
    """The table of keys is locked, so the first request of a key waits before its route begins."""
    url = create_database()
    of = make_settings(url, http={"request_timeout": 1.0})
    async with start_app(of) as app, create_client(app, create_token(url)) as asked:
        with psycopg.connect(url) as db:
            db.execute("LOCK TABLE waylore_service.keys")
            async with asyncio.timeout(HANG_SECONDS):  # while the table is locked
                late = await asked.get("/v1/collections")
            assert late.status_code in (503, 504)
        await wait_until_open(asked)


async def test_slow_body_is_within_the_deadline(tmp_path: Path) -> None:
    async def drip() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b" "
            await asyncio.sleep(0.05)

    of = make_settings(tmp_path / "memory.waylore", http={"request_timeout": 2.0, "idle_timeout": 10.0})
    async with open_client(of) as asked:
        await wait_until_open(asked)
        done = await asked.post(f"{NOTES}/search", content=drip(), headers={"content-type": "application/json"})
    assert done.status_code == 408


async def test_request_that_found_no_thread_is_told_to_come_later(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore", http={"request_timeout": 0.3})
    async with start_app(of) as app, create_client(app, create_token(of.store)) as asked:
        await wait_until_open(asked)
        service: Service = app.state.service
        authors = [Author(f"busy {number}") for number in range(12)]  # more than there are threads
        busy = [
            asyncio.create_task(service.run_on_collection(each, "default", lambda _: time.sleep(1.5)))
            for each in authors
        ]
        await asyncio.sleep(0.1)
        late = await asked.get(f"{NOTES}/stats")
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        await asyncio.gather(*busy)


# -- exports -------------------------------------------------------------------------------------------


async def test_slow_reader_of_an_export_is_cut_off(tmp_path: Path) -> None:
    """The reader takes a chunk from time to time: the export and its snapshot end all the same."""
    of = make_settings(
        tmp_path / "memory.waylore", http={"export_seconds": 5.0, "request_timeout": 2.0, "idle_timeout": 10.0}
    )
    with open_store(of.store) as waylore:
        waylore.add_facts([(f"Node {n}", "knows", f"Node {n + 1}") for n in range(2_000)])
    token, messages = create_token(of.store), []
    async with start_app(of) as app:
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"{NOTES}/export",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {token}".encode()), (b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
            "scheme": "http",
            "http_version": "1.1",
        }

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            messages.append(message)
            await asyncio.sleep(1.0)

        async with create_client(app, token) as asked:
            await wait_until_open(asked)
        await app(scope, receive, send)
        while messages[0]["status"] in {503, 504}:  # the machine was too busy for the first chunk
            messages.clear()
            await app(scope, receive, send)
    assert messages[0]["status"] == 200
    assert 2 < len(messages) < 8  # longer than request_timeout
    assert messages[-1]["more_body"]  # and not complete


# -- what was forgotten --------------------------------------------------------------------------------


async def test_timed_out_request_did_nothing_and_is_done_once(store: str) -> None:
    with open_store(store) as waylore:
        ids = list(waylore.add_facts([(f"Node {n}", "knows", f"Node {n + 1}") for n in range(DOCUMENTS)]))
    body = {"documents": [*ids, "notes/missing.md"]}
    async with open_client(make_settings(store, http={"request_timeout": 2.0})) as asked:
        token = asked.headers["authorization"]
        await wait_until_open(asked)
        with hold_up_writers(store):
            late = await asked.post(f"{NOTES}/documents/forget", json=body, headers=WORD)
            deleted = await asked.delete(f"{NOTES}/documents/{ids[0]}")
            assert {late.status_code, deleted.status_code} <= {503, 504}, late.text
        assert await is_idle()
        assert set(list_ids(store)) == set(ids)
    async with start_app(make_settings(store)) as app, create_client(app) as asked:
        asked.headers["authorization"] = token
        first = await asked.post(f"{NOTES}/documents/forget", json=body, headers=WORD)
        receipt = read_json(first)
        assert set(receipt["documents"]) == set(ids)
        assert receipt["missing"] == ["notes/missing.md"]
        again = await asked.post(f"{NOTES}/documents/forget", json=body, headers=WORD)
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"
        stored = read_json(await asked.get(f"{NOTES}/receipts/{receipt['id']}"))
        assert {**stored, "missing": []} == {**receipt, "missing": []}
        assert read_json(await asked.post(f"{NOTES}/receipts/verify", json=receipt)) == {"left": []}


async def test_receipt_of_one_document_is_stored(store: str) -> None:
    async with open_client(make_settings(store)) as asked:
        id_ = read_json(await asked.post(f"{NOTES}/documents", json={"text": "The login."}))["id"]
        receipt = read_json(await asked.delete(f"{NOTES}/documents/{id_}"))
        assert receipt["documents"] == [id_]
        assert read_json(await asked.get(f"{NOTES}/receipts/{receipt['id']}")) == receipt
        assert (await asked.get(f"{NOTES}/receipts/{'0' * 32}")).status_code == 404
        assert (await asked.get("/v1/collections/other/receipts/" + receipt["id"])).status_code == 404


async def test_request_whose_answer_was_lost_is_not_done_again(store: str) -> None:
    """The process died after the commit: the claim of the key is gone, the record of the write is not."""
    async with start_app(make_settings(store)) as app, create_client(app, create_token(store)) as asked:

        async def send(verb: str, body: dict[str, Any]) -> Any:
            path = f"{NOTES}/{verb}"
            done = [await asked.post(path, json=body, headers={"Idempotency-Key": verb})]
            app.state.service.registry.delete_expired_responses(time.time() + 1e6)
            return read_json(done[0])

        added = await send("documents", {"text": "The login.", "uri": "login.md"})
        read_json(await asked.post(f"{NOTES}/documents", json={"text": "The new login.", "uri": "login.md"}))
        assert await send("documents", {"text": "The login.", "uri": "login.md"}) == added
        read = read_json(await asked.get(f"{NOTES}/documents/{added['id']}"))
        assert read["passages"][0]["text"] == "The new login."
        forgotten = await send("documents/forget", {"documents": ["login.md", "none.md"]})
        read_json(await asked.post(f"{NOTES}/documents", json={"text": "The login is back.", "uri": "login.md"}))
        assert await send("documents/forget", {"documents": ["login.md", "none.md"]}) == forgotten
        assert forgotten["missing"] == ["none.md"]
        assert list_ids(store) == [added["id"]]
        job = await send("jobs", {"kind": "forget"})
        assert (await send("jobs", {"kind": "forget"}))["id"] == job["id"]


async def test_thousand_facts_are_one_write(store: str) -> None:
    facts = [{"subject": f"Node {n}", "predicate": "knows", "object": f"Node {n + 1}"} for n in range(1_000)]
    async with open_client(make_settings(store)) as asked:
        added = read_json(await asked.post(f"{NOTES}/facts", json={"facts": facts}, headers=WORD))
        assert set(list_ids(store)) == set(added["ids"])


# -- jobs ----------------------------------------------------------------------------------------------


async def test_cancelled_job_stops_within_a_document(store: str) -> None:
    async with start_app(make_settings(store)) as app, create_client(app, create_token(store)) as asked:
        sent = await asked.put(f"{NOTES}/uploads/long.md", content=LONG_TEXT.encode())
        job = f"{NOTES}/jobs/{read_json(sent)['id']}"
        while read_json(await asked.get(job))["state"] == "waiting":
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        read_json(await asked.post(f"{job}/cancel"))
        used, until = time.process_time(), time.monotonic() + 60
        while read_json(await asked.get(job))["state"] != "cancelled":
            assert time.monotonic() < until
            await asyncio.sleep(0.1)
        assert time.process_time() - used < 3  # it takes much longer to add the document
        assert await is_idle()
        assert list_ids(store) == []
