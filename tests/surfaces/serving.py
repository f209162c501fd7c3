"""The HTTP service for tests: within the process, or as a process of its own on a port of its own."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from waylore.service.keys import issued
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import EVERY, Scope
from waylore.settings.load import Settings, load
from waylore.surfaces.http.app import create_app

WAYLORE = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]
ADMIN: Scope = "admin"


def settings(store: str | Path, *, http: dict[str, Any] | None = None, **others: Any) -> Settings:
    """Settings of a test: vectors that cost nothing, and no limit on requests unless it is asked for."""
    return load(store=str(store), embedding={"provider": "hashing"}, http={"rate": 0, **(http or {})}, **others)


def key(
    store: str | Path,
    *,
    scope: Scope = ADMIN,
    collections: Iterable[str] = (EVERY,),
    labels: Iterable[str] | None = None,
) -> str:
    """The token of a new key."""
    made, token = issued("a test", collections=collections, scope=scope, labels=labels)
    with closing(open_registry(str(store))) as registry:
        registry.set_key(made)
    return token


@asynccontextmanager
async def running(of: Settings) -> AsyncIterator[FastAPI]:
    """The application, started."""
    app = create_app(of)
    async with app.router.lifespan_context(app):
        yield app


def client(app: FastAPI, token: str = "") -> httpx.AsyncClient:
    """Asks an application of this process."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=transport, base_url="http://waylore", headers=headers)


@asynccontextmanager
async def asking(of: Settings, **opens: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A started service, and a client with a key of its own."""
    async with running(of) as app, client(app, key(of.store, **opens)) as asked:
        yield asked


@dataclass(frozen=True, slots=True)
class Served:
    """A `waylore serve` that runs."""

    process: subprocess.Popen[str]
    url: str
    token: str
    log: Path

    def client(self, **options: Any) -> httpx.Client:
        """Asks it, with its key, and no proxy in between."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=30, **options)


@contextmanager
def served(store: str | Path, folder: Path, *options: str, **variables: str) -> Iterator[Served]:
    """A `waylore serve` process, ready to answer; it is told to stop in the end, if it has not been."""
    token = key(store)
    environment = {
        **os.environ,
        "WAYLORE_STORE": str(store),
        "WAYLORE_EMBEDDING_PROVIDER": "hashing",
        "WAYLORE_HTTP_PORT": "0",
        "WAYLORE_HTTP_RATE": "0",
        **variables,
    }
    log = folder / "serve.log"
    with (
        log.open("w") as to,
        subprocess.Popen(
            [*WAYLORE, "serve", *options], cwd=folder, env=environment, stderr=to, text=True
        ) as process,
    ):
        try:
            made = Served(process, _address(process, log), token, log)
            with made.client() as asked:
                assert asked.get("/readyz").status_code == 200
            yield made
        finally:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """Where it says that it listens."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"^listening on (\S+) ", log.read_text(), re.MULTILINE):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"it does not listen: {log.read_text()}")


def told(done: httpx.Response) -> Any:
    """What an answer says, which must be a good one."""
    assert done.status_code < 300, done.text
    return json.loads(done.content) if done.content else None
