"""Digests of images, asked of a small registry on loopback that speaks the protocol of real ones."""

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tools.supply.images import FILES, RegistryError, ask_digest, find_unpinned, pin_images

DOCKERFILE = """ARG NODE=node:22-slim
ARG EXTRAS=http,files
FROM ${NODE} AS page
FROM --platform=linux/amd64 example/base:1.2 AS build
COPY --from=page /a:b /c
"""
COMPOSE = """services:
  own:
    image: waylore
  postgres:
    image: pgvector/pgvector:${POSTGRES_TAG:-pg17}
"""


@dataclass
class Registry:
    """What the registry has, and whether it wants a token, tells a wrong digest, or asks for an account."""

    manifests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    wants_token: bool = False
    wrong_digest: bool = False
    challenge: str = 'Bearer realm="{address}/token",service="test",scope="repository:{name}:pull"'
    address: str = ""
    accepted: list[str] = field(default_factory=list)

    def add(self, name: str, tag: str, content: str) -> str:
        """Add a manifest and return its digest."""
        body = json.dumps({"schemaVersion": 2, "content": content}).encode()
        self.manifests[name, tag] = body
        return f"sha256:{hashlib.sha256(body).hexdigest()}"


def make_handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path == "/token":
                return self.answer(200, json.dumps({"token": parse_qs(url.query)["scope"][0]}).encode())
            name, _, tag = url.path.removeprefix("/v2/").rpartition("/manifests/")
            if registry.wants_token and self.headers["Authorization"] != f"Bearer repository:{name}:pull":
                challenge = registry.challenge.format(address=registry.address, name=name)
                return self.answer(401, b"{}", {"WWW-Authenticate": challenge})
            if (body := registry.manifests.get((name, tag))) is None:
                return self.answer(404, b"{}")
            registry.accepted.append(self.headers["Accept"])
            told = hashlib.sha256(b"another" if registry.wrong_digest else body).hexdigest()
            return self.answer(200, body, {"Docker-Content-Digest": f"sha256:{told}"})

        def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None: ...

    return Handler


@pytest.fixture
def registry() -> Iterator[Registry]:
    known = Registry()
    with ThreadingHTTPServer(("127.0.0.1", 0), make_handler(known)) as server:
        known.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield known
        server.shutdown()
        thread.join()


@pytest.fixture
def client(registry: Registry) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=registry.address, trust_env=False) as opened:
        yield opened


@pytest.mark.parametrize("wants_token", [False, True])
def test_each_tag_gets_its_digest_and_a_second_time_the_newest(
    registry: Registry, client: httpx.Client, wants_token: bool
) -> None:
    registry.wants_token = wants_token
    node = registry.add("library/node", "22-slim", "first")
    base = registry.add("example/base", "1.2", "base")
    pinned = pin_images(DOCKERFILE, client)
    expected = DOCKERFILE.replace("22-slim", f"22-slim@{node}").replace("base:1.2", f"base:1.2@{base}")
    assert (pinned, find_unpinned(pinned)) == (expected, [])
    moved = registry.add("library/node", "22-slim", "second")
    assert pin_images(pinned, client) == expected.replace(node, moved)
    assert all("image.index" in kinds and "manifest.list" in kinds for kinds in registry.accepted)


def test_the_default_of_a_variable_is_pinned(registry: Registry, client: httpx.Client) -> None:
    digest = registry.add("pgvector/pgvector", "pg17", "database")
    assert pin_images(COMPOSE, client) == COMPOSE.replace("pg17}", f"pg17@{digest}}}")


def test_images_without_a_digest_are_named() -> None:
    assert find_unpinned(DOCKERFILE) == ["node:22-slim", "example/base:1.2"]
    assert find_unpinned(COMPOSE) == ["pgvector/pgvector:pg17"]


def test_a_digest_that_is_not_that_of_the_manifest_is_refused(registry: Registry, client: httpx.Client) -> None:
    registry.add("library/node", "22-slim", "first")
    registry.wrong_digest = True
    with pytest.raises(RegistryError, match="does not have the digest that the registry names"):
        ask_digest(client, "node", "22-slim")


def test_a_missing_tag_is_an_error(registry: Registry, client: httpx.Client) -> None:
    with pytest.raises(RegistryError, match="answered 404 for node:22-slim"):
        pin_images(DOCKERFILE, client)


@pytest.mark.parametrize("challenge", ['Basic realm="x"', 'Bearer realm="ftp://127.0.0.1/token"', ""])
def test_a_registry_that_wants_an_account_is_an_error(registry: Registry, client: httpx.Client, challenge: str) -> None:
    registry.wants_token, registry.challenge = True, challenge
    with pytest.raises(RegistryError, match="asks for an account"):
        ask_digest(client, "node", "22-slim")


def test_the_files_of_deploy_name_no_registry() -> None:
    texts = [path.read_text("utf-8") for path in FILES]
    assert not [
        name for text in texts for name in find_unpinned(text) if "." in name.partition("/")[0].partition(":")[0]
    ]
