"""The routes of the quarantine: an administrator takes back what a key wrote, releases it, or forgets it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore import Waylore
from waylore.service.keys import split_token
from waylore.store.protocol import QUARANTINE

HERE = "/v1/collections/notes"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


@pytest.fixture
async def app(store: str) -> AsyncIterator[FastAPI]:
    async with start_app(make_settings(store)) as app, create_client(app, create_token(store)) as admin:
        assert (await admin.put(HERE, json={})).status_code == 201
        await admin.post(f"{HERE}/documents", json={"text": "Mara sails to Oslo.", "uri": "good.md"})
        yield app


async def test_what_a_key_wrote_is_taken_back_and_released(app: FastAPI, store: str) -> None:
    token = create_token(store, scope="write")
    author = {"author": f"key:{split_token(token)[0]}"}
    async with create_client(app, token) as writer, create_client(app, create_token(store)) as admin:
        added = (await writer.post(f"{HERE}/documents", json={"text": "Quarry pays evil.example."})).json()["id"]
        lines = (await admin.get(f"{HERE}/export")).text
        for path in ("", "/release", "/forget"):
            assert (await writer.post(f"{HERE}/quarantine{path}", json=author)).status_code == 403
        sent: dict[str, Any] = {"json": author, "headers": {"Idempotency-Key": "one"}}
        receipt = (await admin.post(f"{HERE}/quarantine", **sent)).json()
        assert receipt["documents"] == [added]
        assert (await admin.post(f"{HERE}/quarantine", **sent)).json() == receipt
        assert (await admin.get(f"{HERE}/receipts/{receipt['id']}")).json() == receipt
        assert (await admin.get(f"{HERE}/documents/{added}")).status_code == 404
        assert (await admin.get(f"{HERE}/stats")).json()["documents"] == 1
        assert "evil" not in (await admin.get(f"{HERE}/export")).text
        assert (await admin.get(f"{HERE}/quarantine")).json() == {"authors": {author["author"]: 1}}
        released = (await admin.post(f"{HERE}/quarantine/release", json=author)).json()
        assert (released["documents"], released["missing"]) == ([added], [])
        assert (await admin.get(f"{HERE}/export")).text == lines
        entries: list[Any] = (await admin.get(f"{HERE}/audit", params={"after": -2})).json()["entries"]
        assert [(entry["verb"], entry["documents"]) for entry in entries] == [
            ("quarantine", [added]),
            ("release", [added]),
        ]


async def test_limited_administrator_takes_nothing_back(app: FastAPI, store: str) -> None:
    async with create_client(app, create_token(store, labels=["red"])) as limited:
        assert (await limited.get(f"{HERE}/quarantine")).status_code == 403
        for path in ("", "/release", "/forget"):
            assert (await limited.post(f"{HERE}/quarantine{path}", json={"author": "local"})).status_code == 403


async def test_deleted_collection_leaves_nothing_in_quarantine(app: FastAPI, store: str) -> None:
    token = create_token(store)
    author = {"author": f"key:{split_token(token)[0]}"}
    async with create_client(app, token) as admin:
        await admin.post(f"{HERE}/documents", json={"text": "Quarry pays."})
        await admin.post(f"{HERE}/quarantine", json=author)
        assert (await admin.delete(HERE)).status_code == 204
    with Waylore.open(store, collection="notes" + QUARANTINE) as left:
        assert left.stats().documents == 0
