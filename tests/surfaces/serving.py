"""Run the HTTP service for tests, inside the process or as a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from tools.waiting import HANG_SECONDS, wait_until

from waylore.service.keys import make_key
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import ALL_COLLECTIONS, Scope
from waylore.settings.load import load
from waylore.settings.sections import Settings
from waylore.surfaces.http.app import create_app

WAYLORE = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]
ADMIN: Scope = "admin"


def make_settings(store: str | Path, *, http: dict[str, Any] | None = None, **others: Any) -> Settings:
    """Return settings with a cheap embedder, and by default without a rate limit."""
    settings = {"embedding": {"provider": "hashing"}, **others}
    return load(store=str(store), http={"rate_limit": 0, **(http or {})}, **settings)


def create_token(
    store: str | Path,
    *,
    scope: Scope = ADMIN,
    collections: Iterable[str] = (ALL_COLLECTIONS,),
    labels: Iterable[str] | None = None,
    user: str | None = None,
) -> str:
    """Create an API key and return its token."""
    made, token = make_key("a test", collections=collections, scope=scope, labels=labels, user=user)
    with closing(open_registry(str(store))) as registry:
        registry.set_key(made)
    return token


@asynccontextmanager
async def start_app(settings: Settings) -> AsyncIterator[FastAPI]:
    """Start the application in this process."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app


def create_client(app: FastAPI, token: str = "") -> httpx.AsyncClient:
    """Return a client for an application of this process."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


@asynccontextmanager
async def open_client(settings: Settings, **rights: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Start a service and return a client with a new key."""
    async with start_app(settings) as app, create_client(app, create_token(settings.store, **rights)) as asked:
        yield asked


@dataclass(frozen=True, slots=True)
class Served:
    """A running `waylore serve`."""

    process: subprocess.Popen[str]
    url: str
    token: str
    log: Path

    def client(self, **options: Any) -> httpx.Client:
        """Return a client with the key of the service, without a proxy."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=HANG_SECONDS, **options)


@contextmanager
def start_service(store: str | Path, folder: Path, *options: str, **variables: str) -> Iterator[Served]:
    """Start a `waylore serve` process, wait until it is ready, and stop it at the end."""
    token = create_token(store)
    environment = {
        **os.environ,
        "WAYLORE_STORE": str(store),
        "WAYLORE_EMBEDDING_PROVIDER": "hashing",
        "WAYLORE_HTTP_PORT": "0",
        "WAYLORE_HTTP_RATE_LIMIT": "0",
        **variables,
    }
    log = folder / "serve.log"
    with (
        log.open("w") as to,
        subprocess.Popen([*WAYLORE, "serve", *options], cwd=folder, env=environment, stderr=to, text=True) as process,
    ):
        try:
            made = Served(process, _wait_for_address(process, log), token, log)
            with made.client() as asked:
                assert asked.get("/readyz").status_code == 200
            yield made
        finally:
            process.terminate()
            try:
                process.wait(HANG_SECONDS)
            finally:
                process.kill()


def _wait_for_address(process: subprocess.Popen[str], log: Path) -> str:
    """Wait for the line with the address of the service, and return the address."""

    def find_address() -> str:
        assert process.poll() is None, f"the service does not listen: {log.read_text()}"
        found = re.search(r"^listening on (\S+) ", log.read_text(), re.MULTILINE)
        return found[1] if found else ""

    return wait_until(find_address)


def read_json(response: httpx.Response) -> Any:
    """Check that a response is no error, and return its JSON."""
    assert response.status_code < 300, response.text
    return json.loads(response.content) if response.content else None


async def make_receipt(asked: httpx.AsyncClient, collection: str) -> str:
    """Forget a document that is added for it, and return the id of the receipt."""
    added = read_json(await asked.post(f"/v1/collections/{collection}/documents", json={"text": "Forget this."}))
    return str(read_json(await asked.delete(f"/v1/collections/{collection}/documents/{added['id']}"))["id"])
