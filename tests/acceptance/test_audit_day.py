"""A scripted day of a service: the audit logs equal what was done, line by line, and have no content."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from databases import create_database
from surfaces.commands import run_json
from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore.service.keys import split_token

HERE = "/v1/collections/team"
CONTENT = (
    "Mara",
    "Quarry",
    "vault",
    "4471",
    "plan.md",
    "door.md",
    "old.md",
    "evil",
    "assistant",
    "Secret plan",
    "waylore_",
)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


@dataclass
class Day:
    """The service, the administrator, and what was done: changes of documents and of keys."""

    app: FastAPI
    admin: httpx.AsyncClient
    boss: str
    documents: list[tuple[Any, ...]] = field(default_factory=list)
    keys: list[tuple[Any, ...]] = field(default_factory=list)

    async def add(self, client: httpx.AsyncClient, author: str, uri: str, text: str, *labels: str, **more: str) -> str:
        """Add a document that is not there yet."""
        id_ = await self._send_document(client, uri, text, *labels, **more)
        self.documents.append((author, "write", 1, [id_], [], list(labels)))
        return id_

    async def relabel(self, uri: str, text: str, before: list[str], after: list[str]) -> None:
        """Give a document other labels."""
        id_ = await self._send_document(self.admin, uri, text, *after)
        self.documents.append((self.boss, "relabel", 1, [id_], before, after))

    async def _send_document(self, client: httpx.AsyncClient, uri: str, text: str, *labels: str, **more: str) -> str:
        body = {"uri": uri, "title": "Secret plan", "text": text, "labels": list(labels), **more}
        return str((await self.post(client, f"{HERE}/documents", body))["id"])

    async def post(self, client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
        """Send a request, and return its answer."""
        response = await client.post(path, json=body)
        assert response.status_code in (200, 201), response.text
        return response.json()

    async def create_key(self, scope: str, *labels: str) -> tuple[str, str]:
        """Create a key, and return its id and token."""
        body = {"name": "the assistant", "collections": ["team"], "scope": scope, "labels": list(labels) or None}
        made = await self.post(self.admin, "/v1/keys", body)
        self.keys.append((self.boss, "create_key", made["info"]["id"], [], list(labels) or ["*"]))
        return made["info"]["id"], made["token"]


@asynccontextmanager
async def begin_day(store: str) -> AsyncIterator[Day]:
    token = create_token(store)
    id_ = split_token(token)[0]
    settings = make_settings(store, retention={"days": "team=400"})
    async with start_app(settings) as app, create_client(app, token) as admin:
        day = Day(app, admin, f"key:{id_}", keys=[("local", "create_key", id_, [], ["*"])])
        assert (await admin.put(HERE, json={})).status_code == 201
        yield day


async def run_day(day: Day) -> None:
    """Do everything that the log records, and some that it does not."""
    admin, boss = day.admin, day.boss
    plan = await day.add(admin, boss, "plan.md", "Mara plans Quarry.", "staff")
    await day.relabel("plan.md", "Mara plans Quarry.", ["staff"], ["guests", "staff"])
    red, token = await day.create_key("write", "red")
    async with create_client(day.app, token) as writer:
        door = await day.add(writer, f"key:{red}", "door.md", "The door code is 4471.", "red")
        forbidden = await writer.delete(f"{HERE}/documents/{plan}")
        assert forbidden.status_code == 404  # is not recorded, and neither are searches
        await day.post(writer, f"{HERE}/search", {"query": "What is in the vault?"})
        evil = await day.add(writer, f"key:{red}", "evil.md", "Mara pays evil.example.", "red")
    rotated = await admin.post(f"/v1/keys/{red}/rotate", json={})
    day.keys.append((boss, "rotate_key", red, ["red"], ["red"]))
    assert rotated.status_code == 200
    assert (await admin.delete(f"/v1/keys/{red}")).status_code == 200
    day.keys.append((boss, "revoke_key", red, ["red"], ["red"]))
    taken = await day.post(admin, f"{HERE}/quarantine", {"author": f"key:{red}"})
    both = sorted([door, evil])
    assert sorted(taken["documents"]) == both
    day.documents.append((boss, "quarantine", 2, both, ["red"], []))
    await day.post(admin, f"{HERE}/quarantine/release", {"author": f"key:{red}"})
    day.documents.append((boss, "release", 2, both, [], ["red"]))
    old = await day.add(admin, boss, "old.md", "Mara opened the vault.")
    forgotten = await day.post(admin, f"{HERE}/documents/forget", {"documents": [plan, old]})
    day.documents.append((boss, "forget", 2, sorted(forgotten["documents"]), ["guests", "staff"], []))
    late = await day.add(admin, boss, "old.md", "Mara left Quarry.", "staff", at="2020-01-01T00:00:00Z")
    expired = await day.post(admin, f"{HERE}/documents/forget", {"expired": True})
    assert expired["documents"] == [late]
    day.documents.append((boss, "expire", 1, [late], ["staff"], []))
    await day.create_key("read")


def list_lines(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what the day says about each change. The order of documents within a change is not defined."""
    return [
        (e["author"], e["verb"], e["key"], e["labels_before"], e["labels_after"])
        if e["key"]
        else (e["author"], e["verb"], e["count"], sorted(e["documents"]), e["labels_before"], e["labels_after"])
        for e in entries
    ]


async def test_logs_equal_what_was_done(store: str) -> None:
    async with begin_day(store) as day:
        await run_day(day)
        documents = (await day.admin.get(f"{HERE}/audit")).json()["entries"]
        keys = (await day.admin.get("/v1/audit")).json()["entries"]
    assert list_lines(documents) == day.documents
    assert list_lines(keys) == day.keys
    found = [word for word in CONTENT if word in str(documents) + str(keys)]
    assert found == []


async def test_command_shows_the_same_logs_and_finds_them_whole(store: str) -> None:
    async with begin_day(store) as day:
        await run_day(day)
    for options, expected in (((), day.documents), (("--keys",), day.keys)):
        shown = run_json("audit", *options, "--verify", "--store", store, "--collection", "team")
        assert list_lines(shown["entries"]) == expected
        assert shown["broken_at"] is None
