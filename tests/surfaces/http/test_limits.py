"""How much a caller may ask for: requests a minute, bytes, seconds; and a request that must be done once."""

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

from databases import database
from surfaces.serving import asking, client, key, running, settings, told
from waylore import Waylore
from waylore.service.open_collections import OpenCollections
from waylore.service.rate_limits import Rates

NOTES = "/v1/collections/default"
JSON = {"content-type": "application/json"}


# -- requests ------------------------------------------------------------------------------------------


async def test_one_request_too_many_is_told_when_to_come_again(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore", http={"rate": 3})
    async with running(of) as app, client(app, key(of.store)) as one, client(app, key(of.store)) as other:
        left = [(await one.get("/v1/collections")).headers["ratelimit"] for _ in range(3)]
        assert [told.split(";")[1] for told in left] == ["r=2", "r=1", "r=0"]
        refused = await one.get("/v1/collections")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert refused.headers["ratelimit-policy"] == '"default";q=3;w=60'
        assert (await other.get("/v1/collections")).status_code == 200
        assert (await one.get("/healthz")).status_code == 200


async def test_who_guesses_keys_is_counted_by_address(tmp_path: Path) -> None:
    async with (
        running(settings(tmp_path / "memory.waylore", http={"rate": 2})) as app,
        client(app, "wrong") as asked,
    ):
        statuses = [(await asked.get("/v1/collections")).status_code for _ in range(4)]
    assert statuses == [401, 401, 429, 429]


@given(st.integers(1, 5), st.lists(st.floats(0, 30), max_size=60))
def test_no_window_has_more_than_it_may(most: int, steps: list[float]) -> None:
    now = 0.0
    rates, allowed = Rates(most, window=60.0, clock=lambda: now), deque[float]()
    for step in steps:
        now += step
        taken = rates.take("caller")
        while allowed and allowed[0] <= now - 60.0:
            allowed.popleft()
        assert taken.is_allowed == (len(allowed) < most)
        if taken.is_allowed:
            allowed.append(now)
        assert taken.left == most - len(allowed)
        assert taken.seconds == pytest.approx(allowed[0] + 60.0 - now)


# -- bytes and seconds ---------------------------------------------------------------------------------


async def test_a_body_beyond_the_limit_is_refused_with_and_without_its_length(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 100
            yield b" " * 100

    async with asking(settings(tmp_path / "memory.waylore", http={"max_body": 1_000})) as asked:
        whole = await asked.post(f"{NOTES}/search", content=b" " * 1_001, headers=JSON)
        parts = await asked.post(f"{NOTES}/search", content=endless(), headers=JSON)
        within = await asked.post(f"{NOTES}/search", content=b'{"query": "x"}'.ljust(1_000), headers=JSON)
    assert (whole.status_code, parts.status_code, within.status_code) == (413, 413, 200)
    assert whole.headers["connection"] == parts.headers["connection"] == "close"
    assert sent <= 1_200


async def test_a_body_that_stops_coming_is_given_up(tmp_path: Path) -> None:
    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async with asking(settings(tmp_path / "memory.waylore", http={"stall": 0.2})) as asked:
        done = await asked.post(f"{NOTES}/search", content=stalled(), headers=JSON)
    assert done.status_code == 408


async def test_what_takes_too_long_is_given_up_and_others_are_served(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore", http={"seconds": 0.5})
    async with asking(of) as asked:
        told(await asked.get(f"{NOTES}/stats"))
        writer = apsw.Connection(of.store)
        writer.execute("BEGIN IMMEDIATE")  # whoever writes now waits for us
        late = await asked.post(f"{NOTES}/documents", json={"text": "The login."})
        assert (await asked.post(f"{NOTES}/search", json={"query": "login"})).status_code == 200
        writer.execute("ROLLBACK")
        writer.close()
        assert late.status_code == 504
        told(await asked.post(f"{NOTES}/documents", json={"text": "The login."}))


async def test_who_comes_when_too_many_wait_is_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waylore.service.service.WAITING", 0)
    async with asking(settings(tmp_path / "memory.waylore")) as asked:
        done = await asked.get(f"{NOTES}/stats")
    assert (done.status_code, done.headers["retry-after"]) == (503, "1")


# -- once ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
async def asked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    store = database() if request.param == "postgres" else tmp_path / "memory.waylore"
    async with asking(settings(store)) as made:
        yield made


async def test_the_same_word_and_request_give_the_same_answer(asked: httpx.AsyncClient) -> None:
    body = {"facts": [{"subject": "login", "predicate": "needs", "object": "sessions"}]}
    word = {"Idempotency-Key": "first"}
    first = await asked.post(f"{NOTES}/facts", json=body, headers=word)
    gone = told(await asked.delete(f"{NOTES}/documents/{told(first)['ids'][0]}"))
    assert gone["documents"]
    again = await asked.post(f"{NOTES}/facts", json=body, headers=word)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert (again.headers["idempotency-replayed"], "idempotency-replayed" in first.headers) == ("true", False)
    assert told(await asked.get(f"{NOTES}/stats"))["documents"] == 0  # it was not done again
    other = await asked.post(f"{NOTES}/facts", json=body | {"source": "system"}, headers=word)
    assert other.status_code == 422
    elsewhere = await asked.post(f"{NOTES}/documents", json={"text": "x"}, headers=word)
    assert elsewhere.status_code == 422


async def test_of_many_at_once_one_is_done(asked: httpx.AsyncClient) -> None:
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


async def test_what_failed_may_be_tried_again_with_the_same_word(asked: httpx.AsyncClient) -> None:
    word = {"Idempotency-Key": "again"}
    backwards = {"subject": "a", "predicate": "b", "object": "c"}
    dates = {"valid_from": "2026-01-01T00:00:00Z", "valid_to": "2025-01-01T00:00:00Z"}
    body = {"facts": [backwards | dates]}
    assert (await asked.post(f"{NOTES}/facts", json=body, headers=word)).status_code == 422
    told(await asked.post(f"{NOTES}/facts", json={"facts": [backwards]}, headers=word))


async def test_a_word_is_of_one_caller(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore")
    async with running(of) as app, client(app, key(of.store)) as one, client(app, key(of.store)) as other:
        word = {"Idempotency-Key": "mine"}
        told(await one.post(f"{NOTES}/documents", json={"text": "one"}, headers=word))
        told(await other.post(f"{NOTES}/documents", json={"text": "other"}, headers=word))
        bad = await one.post(f"{NOTES}/documents", json={"text": "x"}, headers={"Idempotency-Key": "a" * 256})
    assert bad.status_code == 422
    assert json.loads(bad.text)["errors"][0]["at"].lower() == "header.idempotency-key"


# -- open collections ----------------------------------------------------------------------------------


def test_collections_that_nobody_uses_are_closed_and_others_are_not(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_one(name: str) -> Waylore:
        opened.append(name)
        return Waylore.open(tmp_path / "memory.waylore", collection=name)

    shelf = OpenCollections(open_one, most=2)
    with shelf.lent("a") as a, shelf.lent("b"), shelf.lent("c"):
        assert len(shelf) == 3
        with shelf.lent("a") as same:
            assert same is a
    assert len(shelf) == 2
    for name in "abc":
        with shelf.lent(name) as waylore:
            waylore.add(f"Collection {name}.")
    assert opened[:3] == ["a", "b", "c"]
    assert len(shelf) == 2
    shelf.close()
    assert len(shelf) == 0


def test_a_collection_is_opened_once_by_many_at_once(tmp_path: Path) -> None:
    opened: list[str] = []
    together = threading.Barrier(8)

    def open_one(name: str) -> Waylore:
        opened.append(name)
        return Waylore.open(tmp_path / "memory.waylore", collection=name)

    def use() -> None:
        together.wait()
        for _ in range(20):
            with shelf.lent("a") as waylore:
                waylore.stats()

    shelf = OpenCollections(open_one, most=1)
    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shelf.close()
    assert opened == ["a"]
