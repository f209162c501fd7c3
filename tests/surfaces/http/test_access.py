"""Test permissions over HTTP: no key gives access to other collections or to documents with other labels."""

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

from databases import create_database
from surfaces.operations import QUERIES, make_bodies
from surfaces.serving import create_client, create_token, make_receipt, make_settings, open_client, read_json, start_app
from waylore.service.keys import make_key, mark_revoked, rotate_secret, split_token, verify_secret
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import SCOPES, Key

NOTES = "/v1/collections/default"
SECRET = "Xylophone"  # a word of the text that other callers must not read
BODIES = make_bodies(SECRET, collection="acme", author="local")
OPEN = {"checkLiveness", "checkReadiness"}
OF_KEYS = {"listKeys", "createKey", "rotateKey", "revokeKey", "auditKeys"}


@dataclass(frozen=True, slots=True)
class World:
    """Two collections with a key each, and the content of the first."""

    app: FastAPI
    store: str
    names: dict[str, str]
    document: dict[str, Any]
    keys: dict[str, str]

    def list_requests(self) -> list[tuple[str, str, str, Any]]:
        """Return a valid request for every operation, about the first collection."""
        made = []
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                id_ = operation["operationId"]
                body = json.loads(self._fill(json.dumps(BODIES[id_]))) if "requestBody" in operation else None
                query = QUERIES.get(id_, "")
                made.append((id_, method.upper(), self._fill(path) + query, body))
        return made

    def _fill(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")
    of = make_settings(store)
    async with start_app(of) as app, create_client(app, create_token(store)) as admin:
        for name in ("acme", "other"):
            read_json(await admin.put(f"/v1/collections/{name}", json={}))
        said = {"text": f"{SECRET}: the login needs sessions.", "facts": []}
        document = read_json(await admin.post("/v1/collections/acme/documents", json=said))["id"]
        found = read_json(await admin.post("/v1/collections/acme/search", json={"query": SECRET}))
        job = read_json(await admin.put("/v1/collections/acme/uploads/notes.md", content=SECRET.encode()))["id"]
        while not read_json(await admin.get(f"/v1/collections/acme/jobs/{job}"))["ended_at"]:
            await asyncio.sleep(0.02)
        mine = read_json(await admin.post("/v1/keys", json={"name": "theirs", "collections": ["acme"]}))
        names = {
            "collection": "acme",
            "document": document,
            "passage": found["hits"][0]["passage"]["id"],
            "key": mine["info"]["id"],
            "uri": "planted.md",
            "job": job,
            "receipt": await make_receipt(admin, "acme"),
        }
        keys = {str(scope): create_token(store, scope=scope, collections=["other"]) for scope in SCOPES}
        yield World(app, store, names, read_json(await admin.get("/openapi.json")), keys)


async def test_no_operation_accepts_a_wrong_key(world: World) -> None:
    """Send every operation with every wrong key: all are refused, and nothing is shown or changed."""
    wrong = {
        "no key": "",
        "no key of ours": "secret",
        "a made up key": "waylore_0123456789abcdef_made-up",
        "the right identity": f"waylore_{world.names['key']}_made-up",
        "a revoked key": _create_revoked_token(world.store),
        "an expired key": _create_expired_token(world.store),
    } | world.keys
    before = await _read_state(world)
    for id_, method, path, body in world.list_requests():
        for whose, token in wrong.items():
            async with create_client(world.app, token) as asked:
                done = await asked.request(method, path, json=body)
            if id_ in OPEN:
                continue
            assert SECRET not in done.text, (id_, whose)
            if whose not in world.keys:
                assert done.status_code == 401, (id_, whose, done.text)
            elif id_ in ("listCollections", "listKeys", "auditKeys") and done.status_code == 200:
                assert "acme" not in done.text
                assert world.names["key"] not in done.text
            else:
                expected = {403, 404} if id_ in OF_KEYS else {404}
                assert done.status_code in expected, (id_, whose, done.text)
    assert await _read_state(world) == before


async def test_hidden_collection_looks_like_missing_one(world: World) -> None:
    async with create_client(world.app, world.keys["admin"]) as asked:
        for _, method, path, body in world.list_requests():
            if "/collections/acme" in path:
                hidden = await asked.request(method, path, json=body)
                missing = await asked.request(method, path.replace("/acme", "/nono"), json=body)
                assert _normalise(hidden) == _normalise(missing).replace("nono", "acme")


async def test_scope_allows_itself_and_smaller_scopes(world: World) -> None:
    writing = {"addDocument", "addFacts", "rememberMessages", "forgetDocument", "forgetDocuments", "verifyReceipt"}
    writing |= {"uploadFile", "importFile", "cancelJob", "markDistinct"}
    ruling = {"putCollection", "deleteCollection", "startJob", "auditCollection"} | OF_KEYS
    ruling |= {"quarantineAuthor", "releaseAuthor", "forgetQuarantined", "listQuarantined"}
    for scope in ("read", "write"):
        async with create_client(world.app, create_token(world.store, scope=scope, collections=["acme"])) as asked:
            for id_, method, path, body in world.list_requests():
                if id_ in ruling or (scope == "read" and id_ in writing):
                    done = await asked.request(method, path, json=body)
                    assert done.status_code == 403, (id_, scope, done.text)
                elif id_ not in writing:
                    assert (await asked.request(method, path, json=body)).status_code == 200, id_


async def test_caller_cannot_grant_more_than_it_has(world: World) -> None:
    limited = create_token(world.store, collections=["acme"], labels=["a"])
    async with create_client(world.app, limited) as asked:
        for collections, labels in (
            (["*"], ["a"]),
            (["acme", "other"], ["a"]),
            (["acme"], None),
            (["acme"], ["b"]),
        ):
            wanted = {"name": "more", "collections": collections, "labels": labels}
            assert (await asked.post("/v1/keys", json=wanted)).status_code == 403
        made = read_json(await asked.post("/v1/keys", json={"name": "x", "collections": ["acme"], "labels": ["a"]}))
        assert made["info"]["labels"] == ["a"]
        assert (await asked.delete(f"/v1/keys/{world.names['key']}")).status_code == 404


async def test_key_grants_no_source_above_its_own(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with start_app(of) as app, create_client(app, create_token(of.store)) as admin:

        async def create(by: httpx.AsyncClient, **rights: Any) -> httpx.Response:
            return await by.post("/v1/keys", json={"name": "x", "collections": ["*"], **rights})

        made = [await create(admin, **rights) for rights in ({}, {"labels": ["red"]}, {"max_source": "file"})]
        assert [read_json(each)["info"]["max_source"] for each in made] == ["user_edit", "conversation", "file"]
        editor = read_json(await create(admin, labels=["red"], scope="write", max_source="user_edit"))["info"]["id"]
        lesser = read_json(await create(admin, scope="admin", max_source="system"))["token"]
        async with create_client(app, lesser) as asked:
            assert (await create(asked, max_source="file")).status_code == 403
            assert read_json(await create(asked))["info"]["max_source"] == "system"
            assert (await asked.post(f"/v1/keys/{editor}/rotate", json={})).status_code == 404
            assert editor not in (await asked.get("/v1/keys")).text


async def test_key_that_writes_needs_a_label_or_all(tmp_path: Path) -> None:
    async with open_client(make_settings(tmp_path / "memory.waylore")) as admin:
        for scope, status in (("read", 201), ("write", 422), ("admin", 422)):
            wanted = {"name": "x", "collections": ["*"], "scope": scope, "labels": []}
            assert (await admin.post("/v1/keys", json=wanted)).status_code == status


# -- labels --------------------------------------------------------------------------------------------


async def test_key_with_labels_is_limited_to_them(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with open_client(of) as admin:
        ids = {}
        for label in ("red", "blue", ""):
            said = {
                "text": f"The login is {label or 'open'}.",
                "labels": [label] if label else [],
                "uri": f"/{label}",
            }
            ids[label] = read_json(await admin.post(f"{NOTES}/documents", json=said))["id"]
    async with open_client(of, labels=["red"], scope="write") as red:
        found = read_json(await red.post(f"{NOTES}/search", json={"query": "login"}))
        assert {hit["document"]["uri"] for hit in found["hits"]} == {"/red", "/"}
        everything = {"query": "login", "labels": ["red", "blue"]}
        assert "/blue" not in (await red.post(f"{NOTES}/search", json=everything)).text
        assert "/blue" not in (await red.get(f"{NOTES}/documents")).text
        assert (await red.get(f"{NOTES}/documents/{ids['blue']}")).status_code == 404
        assert (await red.delete(f"{NOTES}/documents/{ids['blue']}")).status_code == 404
        gone = read_json(await red.post(f"{NOTES}/documents/forget", json={"documents": [ids["blue"]]}))
        assert gone["documents"] == []
        assert (await red.get(f"{NOTES}/stats")).status_code == 403
        assert (await red.get(f"{NOTES}/export")).status_code == 403
        for taken in ({"labels": ["blue"]}, {"uri": "/blue"}):
            assert (await red.post(f"{NOTES}/documents", json={"text": "x", **taken})).status_code == 403
        read_json(await red.post(f"{NOTES}/documents", json={"text": "x", "uri": "/red", "labels": ["red"]}))
    async with open_client(of) as admin:
        assert "is blue" in (await admin.get(f"{NOTES}/documents/{ids['blue']}")).text


# -- keys ----------------------------------------------------------------------------------------------


async def test_rotated_key_accepts_old_secret_for_a_while(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with start_app(of) as app, create_client(app, create_token(of.store)) as admin:
        made = read_json(await admin.post("/v1/keys", json={"name": "x", "collections": ["*"]}))
        path = f"/v1/keys/{made['info']['id']}"
        second = read_json(await admin.post(f"{path}/rotate", json={}))["token"]
        tokens = [made["token"], second]
        assert [await _get_status(app, token) for token in tokens] == [200, 200]
        tokens.append(read_json(await admin.post(f"{path}/rotate", json={"grace_seconds": 0}))["token"])
        assert [await _get_status(app, token) for token in tokens] == [401, 401, 200]
        listed = read_json(await admin.get("/v1/keys"))["keys"]
        assert not any(token.split("_", 2)[2] in json.dumps(listed) for token in tokens)
        assert next(one for one in listed if one["name"] == "x")["used"]
        read_json(await admin.delete(path))
        assert [await _get_status(app, token) for token in tokens] == [401, 401, 401]
        assert (await admin.post(f"{path}/rotate", json={})).status_code == 404


async def test_key_is_read_from_one_header_only(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    token = create_token(of.store)
    good = [{"Authorization": f"Bearer {token}"}, {"authorization": f"bearer {token}"}, {"X-API-Key": token}]
    bad = [
        {"Authorization": f"Basic {token}", "X-API-Key": token},
        {"Authorization": "Bearer x", "X-API-Key": token},
        {"Authorization": token},
        {"X-API-Key": f"Bearer {token}"},
    ]
    async with start_app(of) as app, create_client(app) as asked:
        assert {(await asked.get("/v1/collections", headers=one)).status_code for one in good} == {200}
        refused = [await asked.get("/v1/collections", headers=one) for one in bad]
    assert [done.status_code for done in refused] == [401] * len(bad)
    assert all(done.headers["www-authenticate"].startswith("Bearer") for done in refused)
    assert all(token not in done.text for done in refused)
    assert ["two credentials" in done.json()["detail"] for done in refused] == [True, True, False, False]


async def test_key_revoked_elsewhere_expires_from_cache(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with start_app(of) as app:
        token = create_token(of.store)
        assert await _get_status(app, token) == 200
        registry = app.state.service.registry
        registry.set_key(mark_revoked(registry.get_key(split_token(token)[0])))
        app.state.service.api_keys._known[split_token(token)[0]].cached_until = 0.0  # as if the seconds had passed
        assert await _get_status(app, token) == 401


async def test_without_auth_only_local_names_are_served(tmp_path: Path) -> None:
    async with (
        start_app(make_settings(tmp_path / "memory.waylore", http={"auth": False})) as app,
        create_client(app) as asked,
    ):
        read_json(await asked.put("/v1/collections/acme", json={}))
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


@given(st.text(min_size=1), st.timedeltas(timedelta(-9), timedelta(9)), st.timedeltas(timedelta(-9), timedelta(9)))
def test_key_accepts_only_its_secrets_in_time(guess: str, ends: timedelta, grace: timedelta) -> None:
    now = datetime.now(UTC)
    first, token = make_key("x", expires=now + ends)
    second, newer = rotate_secret(first, grace=grace)
    is_good = now < now + ends
    assert verify_secret(first, split_token(token)[1], now) == is_good
    assert verify_secret(second, split_token(newer)[1], now) == is_good
    assert verify_secret(second, split_token(token)[1], now) == (is_good and second.former_until > now)  # type: ignore[operator]
    assert not verify_secret(second, guess, now)
    assert not verify_secret(mark_revoked(second), split_token(newer)[1], now)
    assert split_token(token)[1] not in repr(first) + repr(second)


@given(st.text())
def test_invalid_token_has_no_parts(token: str) -> None:
    id_, secret = split_token(token)
    assert not id_ or token == f"waylore_{id_}_{secret}"


def _normalise(done: httpx.Response) -> str:
    """Return a response without the parts that differ between any two."""
    said = {name: value for name, value in done.json().items() if name != "request_id"}
    headers = {name: value for name, value in done.headers.items() if name != "x-request-id"}
    return json.dumps([done.status_code, said, headers | {"content-length": ""}])


async def _get_status(app: FastAPI, token: str) -> int:
    async with create_client(app, token) as asked:
        return (await asked.get("/v1/collections")).status_code


async def _read_state(world: World) -> object:
    """Return everything that a caller could have changed."""
    async with create_client(world.app, create_token(world.store, scope="read")) as asked:
        export = (await asked.get("/v1/collections/acme/export")).text
        described = read_json(await asked.get("/v1/collections"))
    keys = world.app.state.service.registry.list_keys()
    return export, described, [one for one in keys if one.name != "a test"]


def _create_revoked_token(store: str) -> str:
    made, token = make_key("a test", collections=["acme"], scope="admin")
    return _store_key(store, mark_revoked(made), token)


def _create_expired_token(store: str) -> str:
    made, token = make_key("a test", collections=["acme"], expires=datetime.now(UTC) - timedelta(1))
    return _store_key(store, made, token)


def _store_key(store: str, made: Key, token: str) -> str:
    with closing(open_registry(store)) as registry:
        registry.set_key(made)
    return token
