"""Test the limits of a caller (requests, bytes, seconds), idempotency keys, and open collections."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, open_client, read_json, start_app
from waylore import Waylore
from waylore.service.open_collections import OpenCollections
from waylore.service.rate_limits import RateLimiter
from waylore.types.author import OWNER, Author

NOTES = "/v1/collections/default"
JSON = {"content-type": "application/json"}


# -- requests ------------------------------------------------------------------------------------------


async def test_too_many_requests_get_retry_after(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore", http={"rate_limit": 3})
    async with (
        start_app(of) as app,
        create_client(app, create_token(of.store)) as one,
        create_client(app, create_token(of.store)) as other,
    ):
        left = [(await one.get("/v1/collections")).headers["ratelimit"] for _ in range(3)]
        assert [header.split(";")[1] for header in left] == ["r=2", "r=1", "r=0"]
        refused = await one.get("/v1/collections")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert refused.headers["ratelimit-policy"] == '"default";q=3;w=60'
        assert (await other.get("/v1/collections")).status_code == 200
        assert (await one.get("/healthz")).status_code == 200


async def test_wrong_keys_are_counted_by_address(tmp_path: Path) -> None:
    async with (
        start_app(make_settings(tmp_path / "memory.waylore", http={"rate_limit": 2})) as app,
        create_client(app, "wrong") as asked,
    ):
        statuses = [(await asked.get("/v1/collections")).status_code for _ in range(4)]
    assert statuses == [401, 401, 429, 429]


@given(st.integers(1, 5), st.lists(st.floats(0, 30), max_size=60))
def test_rate_limit_holds_in_every_window(most: int, steps: list[float]) -> None:
    now = 0.0
    rates, allowed = RateLimiter(most, window=60.0, clock=lambda: now), deque[float]()
    for step in steps:
        now += step
        taken = rates.count_request("caller")
        while allowed and allowed[0] <= now - 60.0:
            allowed.popleft()
        assert taken.is_allowed == (len(allowed) < most)
        if taken.is_allowed:
            allowed.append(now)
        assert taken.remaining == most - len(allowed)
        assert taken.seconds == pytest.approx(allowed[0] + 60.0 - now)


# -- bytes and seconds ---------------------------------------------------------------------------------


async def test_too_large_body_is_refused(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 100
            yield b" " * 100

    async with open_client(make_settings(tmp_path / "memory.waylore", http={"max_body_bytes": 1_000})) as asked:
        whole = await asked.post(f"{NOTES}/search", content=b" " * 1_001, headers=JSON)
        parts = await asked.post(f"{NOTES}/search", content=endless(), headers=JSON)
        within = await asked.post(f"{NOTES}/search", content=b'{"query": "x"}'.ljust(1_000), headers=JSON)
    assert (whole.status_code, parts.status_code, within.status_code) == (413, 413, 200)
    assert whole.headers["connection"] == parts.headers["connection"] == "close"
    assert sent <= 1_200


async def test_stalled_body_is_refused(tmp_path: Path) -> None:
    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(HANG_SECONDS)

    async with open_client(make_settings(tmp_path / "memory.waylore", http={"idle_timeout": 0.2})) as asked:
        done = await asked.post(f"{NOTES}/search", content=stalled(), headers=JSON)
    assert done.status_code == 408


async def test_slow_request_times_out_without_blocking(tmp_path: Path) -> None:
    enough = 3.0
    of = make_settings(tmp_path / "memory.waylore", http={"request_timeout": enough})
    async with open_client(of) as asked:
        read_json(await asked.get(f"{NOTES}/stats"))
        writer = apsw.Connection(of.store)
        writer.execute("BEGIN IMMEDIATE")  # other writers wait for this transaction
        late = await asked.post(f"{NOTES}/documents", json={"text": "The login."})
        while (found := await asked.post(f"{NOTES}/search", json={"query": "login"})).status_code in {503, 504}:
            pass  # on a busy machine a search may take longer than `enough`; a blocked one never ends otherwise
        assert found.status_code == 200
        writer.execute("ROLLBACK")
        writer.close()
        assert late.status_code == 504
        read_json(await asked.post(f"{NOTES}/documents", json={"text": "The login."}))


async def test_full_queue_refuses_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waylore.service.shares.MAX_QUEUED_CALLS", 0)
    async with open_client(make_settings(tmp_path / "memory.waylore")) as asked:
        done = await asked.get(f"{NOTES}/stats")
    assert (done.status_code, done.headers["retry-after"]) == (503, "1")


# -- once ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
async def asked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    store = create_database() if request.param == "postgres" else tmp_path / "memory.waylore"
    async with open_client(make_settings(store)) as made:
        yield made


async def test_idempotency_key_replays_response(asked: httpx.AsyncClient) -> None:
    body = {"facts": [{"subject": "login", "predicate": "needs", "object": "sessions"}]}
    word = {"Idempotency-Key": "first"}
    first = await asked.post(f"{NOTES}/facts", json=body, headers=word)
    gone = read_json(await asked.delete(f"{NOTES}/documents/{read_json(first)['ids'][0]}"))
    assert gone["documents"]
    again = await asked.post(f"{NOTES}/facts", json=body, headers=word)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert (again.headers["idempotency-replayed"], "idempotency-replayed" in first.headers) == ("true", False)
    assert read_json(await asked.get(f"{NOTES}/stats"))["documents"] == 0  # it did not run again
    other = await asked.post(f"{NOTES}/facts", json=body | {"source": "system"}, headers=word)
    assert other.status_code == 422
    elsewhere = await asked.post(f"{NOTES}/documents", json={"text": "x"}, headers=word)
    assert elsewhere.status_code == 422


async def test_concurrent_equal_requests_run_once(asked: httpx.AsyncClient) -> None:
    async def add(_: int) -> httpx.Response:
        word = {"Idempotency-Key": "together"}
        return await asked.post(f"{NOTES}/documents", json={"text": "The login."}, headers=word)

    done = await asyncio.gather(*map(add, range(12)))
    answers = {one.text for one in done if one.status_code == 201}
    assert len(answers) == 1
    assert {one.status_code for one in done} <= {201, 409}
    assert sum(one.status_code == 201 and "idempotency-replayed" not in one.headers for one in done) == 1
    assert all(one.headers["retry-after"] for one in done if one.status_code == 409)
    assert (await add(0)).text in answers


async def test_failed_request_can_reuse_idempotency_key(asked: httpx.AsyncClient) -> None:
    word = {"Idempotency-Key": "again"}
    backwards = {"subject": "a", "predicate": "b", "object": "c"}
    dates = {"valid_from": "2026-01-01T00:00:00Z", "valid_to": "2025-01-01T00:00:00Z"}
    body = {"facts": [backwards | dates]}
    assert (await asked.post(f"{NOTES}/facts", json=body, headers=word)).status_code == 422
    read_json(await asked.post(f"{NOTES}/facts", json={"facts": [backwards]}, headers=word))


async def test_idempotency_key_belongs_to_one_caller(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with (
        start_app(of) as app,
        create_client(app, create_token(of.store)) as one,
        create_client(app, create_token(of.store)) as other,
    ):
        word = {"Idempotency-Key": "mine"}
        read_json(await one.post(f"{NOTES}/documents", json={"text": "one"}, headers=word))
        read_json(await other.post(f"{NOTES}/documents", json={"text": "other"}, headers=word))
        bad = await one.post(f"{NOTES}/documents", json={"text": "x"}, headers={"Idempotency-Key": "a" * 256})
    assert bad.status_code == 422
    assert json.loads(bad.text)["errors"][0]["field"].lower() == "header.idempotency-key"


# -- open collections ----------------------------------------------------------------------------------


def test_idle_collections_are_closed(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_one(name: str) -> Waylore:
        opened.append(name)
        return Waylore.open(tmp_path / "memory.waylore", collection=name)

    shelf = OpenCollections(open_one, max_idle=2)
    with shelf.borrow("a", OWNER) as a, shelf.borrow("b", OWNER), shelf.borrow("c", OWNER):
        assert len(shelf) == 3
        with shelf.borrow("a", Author("key:a", frozenset({"red"}))) as same:
            assert (opened, a.author, same.author.labels) == (["a", "b", "c"], OWNER, frozenset({"red"}))
    assert len(shelf) == 2
    for name in "abc":
        with shelf.borrow(name, OWNER) as waylore:
            waylore.add(f"Collection {name}.")
    assert opened[:3] == ["a", "b", "c"]
    assert len(shelf) == 2
    shelf.close()
    assert len(shelf) == 0


def test_concurrent_borrowers_open_collection_once(tmp_path: Path) -> None:
    opened: list[str] = []
    together = threading.Barrier(8)

    def open_one(name: str) -> Waylore:
        opened.append(name)
        return Waylore.open(tmp_path / "memory.waylore", collection=name)

    def use() -> None:
        together.wait()
        for _ in range(20):
            with shelf.borrow("a", OWNER) as waylore:
                waylore.stats()

    shelf = OpenCollections(open_one, max_idle=1)
    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shelf.close()
    assert opened == ["a"]
