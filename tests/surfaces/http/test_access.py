"""Who may do what over HTTP: no key opens another's collection, and no label shows what it does not cover."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from databases import database
from surfaces.serving import asking, client, key, running, settings, told
from waylore.service.keys import issued, opens, parted, revoked, rotated
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import SCOPES, Key

NOTES = "/v1/collections/default"
SECRET = "Xylophone"  # a word of the text that others must not read
BODIES: dict[str, dict[str, Any]] = {
    "put_collection": {"description": "mine now"},
    "add_document": {"text": f"Planted {SECRET}."},
    "add_facts": {"facts": [{"subject": SECRET, "predicate": "is", "object": "planted"}]},
    "forget_documents": {"documents": ["{document}"]},
    "verify_receipt": {"documents": ["{document}"]},
    "search": {"query": SECRET},
    "context": {"query": SECRET},
    "explain": {"query": SECRET, "passage": "{passage}"},
    "create_key": {"name": "more", "collections": ["acme"], "scope": "admin"},
    "rotate_key": {},
    "upload": {"text": f"Planted {SECRET}."},
    "upload_import": {"subject": SECRET, "predicate": "is", "object": "planted"},
    "start_job": {"kind": "forget"},
}
OPEN = {"healthz", "readyz"}
OF_KEYS = {"list_keys", "create_key", "rotate_key", "revoke_key"}


@dataclass(frozen=True, slots=True)
class World:
    """Two collections with a key each, and what is in the first."""

    app: FastAPI
    store: str
    names: dict[str, str]
    document: dict[str, Any]
    keys: dict[str, str]

    def requests(self) -> list[tuple[str, str, str, Any]]:
        """A good request to every operation, about the first collection and what it holds."""
        made = []
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                id_ = operation["operationId"]
                body = json.loads(self._filled(json.dumps(BODIES[id_]))) if "requestBody" in operation else None
                query = "?entity=login" if id_ in ("list_facts", "graph") else ""
                made.append((id_, method.upper(), self._filled(path) + query, body))
        return made

    def _filled(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = database() if request.param == "postgres" else str(tmp_path / "memory.waylore")
    of = settings(store)
    async with running(of) as app, client(app, key(store)) as admin:
        for name in ("acme", "other"):
            told(await admin.put(f"/v1/collections/{name}", json={}))
        said = {"text": f"{SECRET}: the login needs sessions.", "facts": []}
        document = told(await admin.post("/v1/collections/acme/documents", json=said))["id"]
        found = told(await admin.post("/v1/collections/acme/search", json={"query": SECRET}))
        job = told(await admin.put("/v1/collections/acme/uploads/notes.md", content=SECRET.encode()))["id"]
        while not told(await admin.get(f"/v1/collections/acme/jobs/{job}"))["ended_at"]:
            await asyncio.sleep(0.02)
        mine = told(await admin.post("/v1/keys", json={"name": "theirs", "collections": ["acme"]}))
        names = {
            "collection": "acme",
            "document": document,
            "passage": found["hits"][0]["passage"]["id"],
            "key": mine["info"]["id"],
            "uri": "planted.md",
            "job": job,
        }
        keys = {str(scope): key(store, scope=scope, collections=["other"]) for scope in SCOPES}
        yield World(app, store, names, told(await admin.get("/openapi.json")), keys)


async def test_no_operation_opens_to_a_key_of_another_collection(world: World) -> None:
    """Every operation with every wrong key: refused as if nothing were there, nothing told, nothing changed."""
    wrong = {
        "no key": "",
        "no key of ours": "secret",
        "a made up key": "waylore_0123456789abcdef_made-up",
        "the right identity": f"waylore_{world.names['key']}_made-up",
        "a revoked key": _revoked(world.store),
        "an expired key": _expired(world.store),
    } | world.keys
    before = await _state(world)
    for id_, method, path, body in world.requests():
        for whose, token in wrong.items():
            async with client(world.app, token) as asked:
                done = await asked.request(method, path, json=body)
            if id_ in OPEN:
                continue
            assert SECRET not in done.text, (id_, whose)
            if whose not in world.keys:
                assert done.status_code == 401, (id_, whose, done.text)
            elif id_ in ("list_collections", "list_keys") and done.status_code == 200:
                assert "acme" not in done.text
            else:
                expected = {403, 404} if id_ in OF_KEYS else {404}
                assert done.status_code in expected, (id_, whose, done.text)
    assert await _state(world) == before


async def test_what_is_not_open_looks_like_what_is_not_there(world: World) -> None:
    async with client(world.app, world.keys["admin"]) as asked:
        for _, method, path, body in world.requests():
            if "/collections/acme" in path:
                hidden = await asked.request(method, path, json=body)
                missing = await asked.request(method, path.replace("/acme", "/nono"), json=body)
                assert _likeness(hidden) == _likeness(missing).replace("nono", "acme")


async def test_a_scope_allows_itself_and_less(world: World) -> None:
    writing = {"add_document", "add_facts", "forget_document", "forget_documents", "verify_receipt"}
    writing |= {"upload", "upload_import", "cancel_job"}
    ruling = {"put_collection", "delete_collection", "start_job"} | OF_KEYS
    for scope in ("read", "write"):
        async with client(world.app, key(world.store, scope=scope, collections=["acme"])) as asked:
            for id_, method, path, body in world.requests():
                if id_ in ruling or (scope == "read" and id_ in writing):
                    done = await asked.request(method, path, json=body)
                    assert done.status_code == 403, (id_, scope, done.text)
                elif id_ not in writing:
                    assert (await asked.request(method, path, json=body)).status_code == 200, id_


async def test_nobody_hands_on_more_than_they_have(world: World) -> None:
    limited = key(world.store, collections=["acme"], labels=["a"])
    async with client(world.app, limited) as asked:
        for collections, labels in (
            (["*"], ["a"]),
            (["acme", "other"], ["a"]),
            (["acme"], None),
            (["acme"], ["b"]),
        ):
            wanted = {"name": "more", "collections": collections, "labels": labels}
            assert (await asked.post("/v1/keys", json=wanted)).status_code == 403
        made = told(await asked.post("/v1/keys", json={"name": "x", "collections": ["acme"], "labels": ["a"]}))
        assert made["info"]["labels"] == ["a"]
        assert (await asked.delete(f"/v1/keys/{world.names['key']}")).status_code == 404


# -- labels --------------------------------------------------------------------------------------------


async def test_a_key_of_labels_reads_writes_and_forgets_within_them(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore")
    async with asking(of) as admin:
        ids = {}
        for label in ("red", "blue", ""):
            said = {
                "text": f"The login is {label or 'open'}.",
                "labels": [label] if label else [],
                "uri": f"/{label}",
            }
            ids[label] = told(await admin.post(f"{NOTES}/documents", json=said))["id"]
    async with asking(of, labels=["red"], scope="write") as red:
        found = told(await red.post(f"{NOTES}/search", json={"query": "login"}))
        assert {hit["document"]["uri"] for hit in found["hits"]} == {"/red", "/"}
        everything = {"query": "login", "labels": ["red", "blue"]}
        assert "/blue" not in (await red.post(f"{NOTES}/search", json=everything)).text
        assert "/blue" not in (await red.get(f"{NOTES}/documents")).text
        assert (await red.get(f"{NOTES}/documents/{ids['blue']}")).status_code == 404
        assert (await red.delete(f"{NOTES}/documents/{ids['blue']}")).status_code == 404
        gone = told(await red.post(f"{NOTES}/documents/forget", json={"documents": [ids["blue"]]}))
        assert gone["documents"] == []
        assert (await red.get(f"{NOTES}/stats")).status_code == 403
        assert (await red.get(f"{NOTES}/export")).status_code == 403
        for taken in ({"labels": ["blue"]}, {"uri": "/blue"}):
            assert (await red.post(f"{NOTES}/documents", json={"text": "x", **taken})).status_code == 403
        told(await red.post(f"{NOTES}/documents", json={"text": "x", "uri": "/red", "labels": ["red"]}))
    async with asking(of) as admin:
        assert "is blue" in (await admin.get(f"{NOTES}/documents/{ids['blue']}")).text


# -- keys ----------------------------------------------------------------------------------------------


async def test_a_rotated_key_has_two_secrets_for_a_while(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore")
    async with running(of) as app, client(app, key(of.store)) as admin:
        made = told(await admin.post("/v1/keys", json={"name": "x", "collections": ["*"]}))
        path = f"/v1/keys/{made['info']['id']}"
        second = told(await admin.post(f"{path}/rotate", json={}))["token"]
        tokens = [made["token"], second]
        assert [await _status(app, token) for token in tokens] == [200, 200]
        tokens.append(told(await admin.post(f"{path}/rotate", json={"grace_seconds": 0}))["token"])
        assert [await _status(app, token) for token in tokens] == [401, 401, 200]
        listed = told(await admin.get("/v1/keys"))["keys"]
        assert not any(token.rpartition("_")[2] in json.dumps(listed) for token in tokens)
        assert next(one for one in listed if one["name"] == "x")["used"]
        told(await admin.delete(path))
        assert [await _status(app, token) for token in tokens] == [401, 401, 401]
        assert (await admin.post(f"{path}/rotate", json={})).status_code == 404


async def test_a_key_is_shown_in_either_header_but_not_in_both(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore")
    token = key(of.store)
    good = [{"Authorization": f"Bearer {token}"}, {"authorization": f"bearer {token}"}, {"X-API-Key": token}]
    bad = [
        {"Authorization": f"Basic {token}", "X-API-Key": token},
        {"Authorization": "Bearer x", "X-API-Key": token},
        {"Authorization": token},
        {"X-API-Key": f"Bearer {token}"},
    ]
    async with running(of) as app, client(app) as asked:
        assert {(await asked.get("/v1/collections", headers=one)).status_code for one in good} == {200}
        refused = [await asked.get("/v1/collections", headers=one) for one in bad]
    assert [done.status_code for done in refused] == [401] * len(bad)
    assert all(done.headers["www-authenticate"].startswith("Bearer") for done in refused)
    assert all(token not in done.text for done in refused)


async def test_a_key_revoked_by_another_process_ends_within_seconds(tmp_path: Path) -> None:
    of = settings(tmp_path / "memory.waylore")
    async with running(of) as app:
        token = key(of.store)
        assert await _status(app, token) == 200
        registry = app.state.service.registry
        registry.set_key(revoked(registry.key(parted(token)[0])))
        app.state.service.keyholders._known.expire(time=float("inf"))  # as if the seconds had passed
        assert await _status(app, token) == 401


async def test_nobody_is_asked_where_the_settings_say_so(tmp_path: Path) -> None:
    async with (
        running(settings(tmp_path / "memory.waylore", http={"auth": False})) as app,
        client(app) as asked,
    ):
        told(await asked.put("/v1/collections/acme", json={}))
        statuses = {
            host: (await asked.get("/v1/collections", headers={"Host": host})).status_code
            for host in (
                "localhost:8080",
                "127.0.0.1:8080",
                "[::1]:8080",
                "evil.example:8080",
                "127.0.0.1.evil.example",
            )
        }
    assert list(statuses.values()) == [200, 200, 200, 403, 403]


@given(
    st.text(min_size=1), st.timedeltas(timedelta(-9), timedelta(9)), st.timedeltas(timedelta(-9), timedelta(9))
)
def test_a_key_opens_to_its_own_secrets_in_time(guess: str, ends: timedelta, grace: timedelta) -> None:
    now = datetime.now(UTC)
    first, token = issued("x", expires=now + ends)
    second, newer = rotated(first, grace=grace)
    is_good = now < now + ends
    assert opens(first, parted(token)[1], now) == is_good
    assert opens(second, parted(newer)[1], now) == is_good
    assert opens(second, parted(token)[1], now) == (is_good and second.former_until > now)  # type: ignore[operator]
    assert not opens(second, guess, now)
    assert not opens(revoked(second), parted(newer)[1], now)
    assert parted(token)[1] not in repr(first) + repr(second)


@given(st.text())
def test_what_is_no_key_has_no_parts(token: str) -> None:
    id_, secret = parted(token)
    assert not id_ or token == f"waylore_{id_}_{secret}"


def _likeness(done: httpx.Response) -> str:
    """An answer without what differs between any two."""
    said = {name: value for name, value in done.json().items() if name != "request_id"}
    headers = {name: value for name, value in done.headers.items() if name != "x-request-id"}
    return json.dumps([done.status_code, said, headers | {"content-length": ""}])


async def _status(app: FastAPI, token: str) -> int:
    async with client(app, token) as asked:
        return (await asked.get("/v1/collections")).status_code


async def _state(world: World) -> object:
    """All that a caller could have changed."""
    async with client(world.app, key(world.store, scope="read")) as asked:
        export = (await asked.get("/v1/collections/acme/export")).text
        described = told(await asked.get("/v1/collections"))
    keys = world.app.state.service.registry.keys()
    return export, described, [one for one in keys if one.name != "a test"]


def _revoked(store: str) -> str:
    made, token = issued("a test", collections=["acme"], scope="admin")
    return _kept(store, revoked(made), token)


def _expired(store: str) -> str:
    made, token = issued("a test", collections=["acme"], expires=datetime.now(UTC) - timedelta(1))
    return _kept(store, made, token)


def _kept(store: str, made: Key, token: str) -> str:
    with closing(open_registry(store)) as registry:
        registry.set_key(made)
    return token
