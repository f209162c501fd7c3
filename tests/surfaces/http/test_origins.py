"""Test that no foreign web page reaches a route or tool, with and without keys (finding H4), nor keeps an answer."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from surfaces.operations import QUERIES, make_bodies
from surfaces.serving import create_client, create_token, make_receipt, make_settings, read_json, start_app
from waylore.surfaces.tools.tools import TOOLS

NOTES = "/v1/collections/default"
SECRET = "Xylophone"
LISTED = "https://app.example"
Headers = list[tuple[str, str]]
BODIES = make_bodies(SECRET, collection="default", author="key:other")
ARGUMENTS: dict[str, Any] = {
    "memory_search": {"query": SECRET},
    "memory_get": {"id": "{document}"},
    "memory_profile": {},
    "memory_changes": {"entity": SECRET},
    "memory_graph": {"entity": SECRET},
    "memory_add": {"text": "Planted."},
    "memory_remember": {"text": "Planted."},
    "memory_forget": {"documents": ["{document}"]},
    "search": {"query": SECRET},
    "fetch": {"id": "{document}"},
}
HIDDEN = [
    *(("GET", path, None) for path in ("/openapi.json", "/metrics", "/docs", "/redoc", "/login")),
    ("POST", "/login", b"{}"),
]
HOST = ("Host", "localhost:8080")
JSON = ("Content-Type", "application/json")
BYTES = ("Content-Type", "application/octet-stream")
FOREIGN: dict[str, Headers] = {
    "foreign origin": [HOST, JSON, ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")],
    "foreign origin of an old browser": [HOST, JSON, ("Origin", "http://evil.example")],
    "page of another port": [HOST, JSON, ("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-site")],
    "null origin": [HOST, JSON, ("Origin", "null")],
    "two origins": [HOST, JSON, ("Origin", LISTED), ("Origin", "https://evil.example")],
    "cross-site without an origin": [HOST, JSON, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
    "foreign host": [("Host", "evil.example:8080"), JSON, ("Origin", "http://evil.example:8080")],
    "loopback as a prefix": [("Host", "127.0.0.1.evil.example"), JSON],
    "host without a dot": [("Host", "evil"), JSON],
    "host with a user": [("Host", "localhost@evil"), JSON],
    "no host": [JSON],
    "empty host": [("Host", ""), JSON],
    "two hosts": [HOST, ("Host", "evil.example"), JSON],
}
SIMPLE: dict[str, Headers] = {  # what a form or a page may send to any address, without asking first
    "text": [HOST, ("Content-Type", "text/plain")],
    "form": [HOST, ("Content-Type", "application/x-www-form-urlencoded")],
    "multipart form": [HOST, ("Content-Type", "multipart/form-data; boundary=x")],
    "no type": [HOST],
    "text that names JSON": [HOST, ("Content-Type", "text/plain; application/json")],
    "two types": [HOST, ("Content-Type", "text/plain"), JSON],
}


@dataclass(frozen=True, slots=True)
class World:
    """A service with one document, and the values of the placeholders in requests to it."""

    app: FastAPI
    token: str
    names: dict[str, str]

    def list_requests(self) -> Iterator[tuple[str, str, bytes | None]]:
        """Yield a valid request for every route and every tool: its method, its path, its body."""
        for path, methods in self.app.openapi()["paths"].items():
            for method, operation in methods.items():
                query = QUERIES.get(operation["operationId"], "")
                body = BODIES[operation["operationId"]] if "requestBody" in operation else None
                yield method.upper(), self._fill(path) + query, self._encode(body)
        for tool in TOOLS:
            call = {"name": tool.name, "arguments": ARGUMENTS[tool.name]}
            yield (
                "POST",
                "/mcp",
                self._encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
            )
        yield from HIDDEN

    async def send(self, method: str, path: str, body: bytes | None, headers: Headers) -> tuple[int, bytes]:
        """Send a request with exactly these headers and the key; return the status and the answer."""
        given = [*headers, ("Accept", "application/json, text/event-stream")]
        given += [("Authorization", f"Bearer {self.token}")] if self.token else []
        given += [("Content-Length", str(len(body)))] if body else []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path.partition("?")[0],
            "raw_path": path.partition("?")[0].encode(),
            "query_string": path.partition("?")[2].encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8080),
        }
        return await _call(self.app, scope, body or b"")

    def _encode(self, body: Any) -> bytes | None:
        return None if body is None else self._fill(json.dumps(body)).encode()

    def _fill(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.names[found[1]], text)


async def _call(app: FastAPI, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    status, parts, incoming = 0, [], [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = dict(message["headers"])
            assert headers[b"cache-control"] == b"no-store", scope["path"]
            assert headers[b"x-content-type-options"] == b"nosniff", scope["path"]
        else:
            parts.append(message.get("body", b""))

    async with asyncio.timeout(60):
        await app(scope, receive, send)
    return status, b"".join(parts)


@asynccontextmanager
async def open_world(folder: Path, *, auth: bool, **http: Any) -> AsyncIterator[World]:
    """Start a service with a document of the word SECRET."""
    of = make_settings(
        folder / "memory.waylore",
        http={"auth": auth, "upload_dir": folder / "spool", "cors_origins": [LISTED], **http},
        telemetry={"metrics": True},
    )
    token = create_token(of.store)
    async with start_app(of) as app, create_client(app, token) as admin:
        read_json(await admin.put(NOTES, json={}))
        document = read_json(await admin.post(f"{NOTES}/documents", json={"text": f"{SECRET}: a secret."}))["id"]
        found = read_json(await admin.post(f"{NOTES}/search", json={"query": SECRET}))
        job = read_json(await admin.put(f"{NOTES}/uploads/notes.md", content=b"Notes."))["id"]
        while not read_json(await admin.get(f"{NOTES}/jobs/{job}"))["ended_at"]:
            await asyncio.sleep(0.02)
        key = read_json(await admin.post("/v1/keys", json={"name": "theirs", "collections": ["default"]}))
        names = {"collection": "default", "document": document, "job": job, "uri": "planted.jsonl"}
        names |= {"passage": found["hits"][0]["passage"]["id"], "key": key["info"]["id"]}
        names["receipt"] = await make_receipt(admin, "default")
        yield World(app, token if auth else "", names)


@pytest.mark.parametrize("auth", [True, False], ids=["keys", "no keys"])
async def test_no_route_or_tool_answers_a_foreign_page(tmp_path: Path, auth: bool) -> None:
    """Send every request in every foreign way: all are refused, and nothing is shown or changed."""
    async with open_world(tmp_path, auth=auth) as world:
        before, attempts = await _read_state(world), 0
        for method, path, body in world.list_requests():
            attacks = FOREIGN | (SIMPLE if method == "POST" and body else {})
            for name, headers in attacks.items():
                status, answer = await world.send(method, path, body, headers)
                assert status in (400, 403, 415), (name, method, path, status, answer)
                assert SECRET.encode() not in answer
                attempts += 1
        assert attempts > 400
        assert await _read_state(world) == before


@pytest.mark.parametrize("auth", [True, pytest.param(False, marks=pytest.mark.full)], ids=["keys", "no keys"])
@pytest.mark.parametrize(
    "headers",
    [
        [HOST, JSON],
        [HOST, BYTES],
        [HOST, JSON, ("Origin", LISTED), ("Sec-Fetch-Site", "cross-site")],
        [HOST, JSON, ("Origin", "http://localhost:8080"), ("Sec-Fetch-Site", "same-origin")],
        [("Host", "memory.example"), JSON, ("Origin", "https://memory.example")],
        [("Host", "a.b.internal:443"), JSON],
        [("Host", "[::1]:8080"), JSON],
        [("Host", "127.0.0.1"), JSON, ("Sec-Fetch-Site", "none")],
    ],
    ids=["program", "bytes", "listed page", "own page", "listed host", "pattern", "loopback", "typed address"],
)
async def test_listed_pages_and_programs_are_served(tmp_path: Path, auth: bool, headers: Headers) -> None:
    """Check that the requests of the test above are valid: without the foreign parts each of them gets through."""
    async with open_world(tmp_path, auth=auth, hosts=["memory.example", "*.internal"]) as world:
        for method, path, body in world.list_requests():
            status, answer = await world.send(method, path, body, headers)
            refusals = (400, 403) if BYTES in headers else (400, 403, 415)  # a route for JSON takes no bytes
            assert status not in refusals, (method, path, status, answer)


async def test_request_without_a_body_needs_no_type(tmp_path: Path) -> None:
    async with open_world(tmp_path, auth=True) as world:
        job = f"{NOTES}/jobs/{world.names['job']}/cancel"
        assert (await world.send("POST", job, None, [HOST]))[0] == 200
        assert (await world.send("POST", job, None, [HOST, ("Content-Type", "text/plain")]))[0] == 415


async def test_probes_may_use_the_address_of_a_pod(tmp_path: Path) -> None:
    """Check that only health and metrics answer to an address: a kubelet and Prometheus ask a pod by it."""
    async with open_world(tmp_path, auth=False) as world:
        for address in ("10.1.2.3:8080", "[fd00::7]:8080"):
            for path, expected in (("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/collections", 403)):
                assert (await world.send("GET", path, None, [("Host", address)]))[0] == expected, (address, path)
            foreign = [("Host", address), ("Origin", "https://evil.example")]
            assert (await world.send("GET", "/healthz", None, foreign))[0] == 403


async def test_refusal_is_a_problem_that_names_the_remedy(tmp_path: Path) -> None:
    async with open_world(tmp_path, auth=False) as world, create_client(world.app) as client:
        for headers, remedy in (({"Host": "evil"}, "http.hosts"), ({"Origin": "null"}, "http.cors_origins")):
            refused = await client.get("/v1/collections", headers=headers)
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["request_id"] == refused.headers["x-request-id"]
            assert remedy in refused.json()["detail"]


async def test_openapi_document_needs_a_key_and_no_page_loads_foreign_scripts(tmp_path: Path) -> None:
    async with open_world(tmp_path, auth=True) as world:
        async with create_client(world.app) as anyone:
            assert (await anyone.get("/openapi.json")).status_code == 401
            for path in ("/redoc", "/docs/oauth2-redirect", "/docs/docs.html", "/docs/..%2Fapp.py"):
                assert (await anyone.get(path)).status_code == 404
            page = await anyone.get("/docs")
            assert (page.status_code, "http" in page.text) == (200, False)
            assert "default-src 'none'; script-src 'self';" in page.headers["content-security-policy"]
        async with create_client(world.app, world.token) as known:
            assert read_json(await known.get("/openapi.json"))["paths"]
    async with open_world(tmp_path, auth=False) as world, create_client(world.app) as anyone:
        assert read_json(await anyone.get("/openapi.json"))["paths"]


async def _read_state(world: World) -> object:
    """Return everything that a page could have changed."""
    async with create_client(world.app, world.token) as client:
        export = (await client.get(f"{NOTES}/export")).text
        described = read_json(await client.get("/v1/collections"))
        jobs = read_json(await client.get(f"{NOTES}/jobs"))
    keys = [(key.id, key.scope, key.revoked) for key in world.app.state.service.registry.list_keys()]
    return export, described, jobs, keys
