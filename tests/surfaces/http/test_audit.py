"""The audit routes: the same entries as `waylore audit`, a page at a time, for administrators of all of them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore import Waylore

LOG, KEYS = "/v1/collections/notes/audit", "/v1/audit"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


@pytest.fixture
async def app(store: str) -> AsyncIterator[FastAPI]:
    """Start a service with two collections, of which one has six entries."""
    async with start_app(make_settings(store)) as app, create_client(app, create_token(store)) as admin:
        for name in ("notes", "other"):
            assert (await admin.put(f"/v1/collections/{name}", json={})).status_code == 201
        for number in range(4):
            body = {"text": f"The door code is 447{number}.", "uri": "door.md", "labels": [f"label{number % 2}"]}
            assert (await admin.post("/v1/collections/notes/documents", json=body)).status_code == 201
        added = await admin.post("/v1/collections/notes/documents", json={"text": "Tea.", "uri": "tea.md"})
        assert (await admin.delete(f"/v1/collections/notes/documents/{added.json()['id']}")).status_code == 200
        yield app


async def read_all(client: httpx.AsyncClient, path: str, limit: int) -> list[dict[str, Any]]:
    """Return the entries of all pages."""
    entries, cursor = list[dict[str, Any]](), ""
    while True:
        page = (await client.get(path, params={"limit": limit, **({"cursor": cursor} if cursor else {})})).json()
        entries += page["entries"]
        cursor = page["next"]
        if cursor is None:
            return entries


async def test_entries_are_those_of_the_collection(app: FastAPI, store: str) -> None:
    with Waylore.open(store, collection="notes") as memory:
        expected = [entry.to_dict() for entry in memory.audit()]
    assert [entry["verb"] for entry in expected] == ["write", "relabel", "relabel", "relabel", "write", "forget"]
    async with create_client(app, create_token(store)) as admin:
        for limit in (1, 2, 5, 1_000):
            found = await read_all(admin, LOG, limit)
            assert [{**entry, "at": ""} for entry in found] == [{**entry, "at": ""} for entry in expected]
        newest = (await admin.get(LOG, params={"after": -2})).json()
        assert ([entry["number"] for entry in newest["entries"]], newest["next"]) == ([5, 6], None)
        text = (await admin.get(LOG)).text
        assert not any(word in text for word in ("code", "door", "tea.md", "Tea"))
        assert (await admin.get(LOG.replace("notes", "other"))).json() == {"entries": [], "next": None}
        cursor = (await admin.get(LOG, params={"limit": 1})).json()["next"]
        for path in (KEYS, LOG.replace("notes", "other")):  # a cursor holds for its own log
            assert (await admin.get(path, params={"cursor": cursor})).status_code == 404


async def test_only_administrators_of_all_documents_read_the_log(app: FastAPI, store: str) -> None:
    refused: list[tuple[dict[str, Any], int]] = [
        ({"scope": "read"}, 403),
        ({"scope": "write"}, 403),
        ({"labels": ["label1"]}, 403),
        ({"collections": ["other"]}, 404),
    ]
    for rights, status in refused:
        async with create_client(app, create_token(store, **rights)) as client:
            assert (await client.get(LOG)).status_code == status, rights
    async with create_client(app, create_token(store, collections=["notes"])) as client:
        assert (await client.get(LOG)).status_code == 200


async def test_administrator_reads_changes_of_its_own_keys(app: FastAPI, store: str) -> None:
    async with create_client(app, create_token(store)) as admin:
        made = {}
        wanted: dict[str, dict[str, Any]] = {
            "all": {"collections": ["*"]},
            "notes": {"collections": ["notes"]},
            "red": {"collections": ["notes"], "labels": ["red"]},
            "user": {"collections": ["notes"], "user": "mara"},
        }
        for name, rights in wanted.items():
            body = {"name": f"secret {name}", "scope": "admin", **rights}
            made[name] = (await admin.post("/v1/keys", json=body)).json()
        ids = {name: key["info"]["id"] for name, key in made.items()}
        await admin.post(f"/v1/keys/{ids['red']}/rotate", json={})
        await admin.delete(f"/v1/keys/{ids['user']}")
        entries = await read_all(admin, KEYS, 2)
        own = [(entry["verb"], entry["key"]) for entry in entries if entry["key"] in ids.values()]
        created = [("create_key", id_) for id_ in ids.values()]
        assert own == [*created, ("rotate_key", ids["red"]), ("revoke_key", ids["user"])]
        assert {entry["author"] for entry in entries if entry["key"] in ids.values()} < {
            f"key:{entry['key']}" for entry in entries
        }
        assert "secret" not in str(entries)
    visible = {"notes": {"notes", "red", "user"}, "red": {"red"}}  # the old token of a rotated key still works
    for name, seen in visible.items():
        async with create_client(app, made[name]["token"]) as client:
            assert {entry["key"] for entry in await read_all(client, KEYS, 3)} == {ids[each] for each in seen}
    async with create_client(app, create_token(store, scope="write")) as client:
        assert (await client.get(KEYS)).status_code == 403
