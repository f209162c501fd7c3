"""Test the MCP server inside another application: each request has the agent of its own key."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from tools.waiting import HANG_SECONDS

from surfaces.agents import call, call_wrongly
from waylore import Waylore
from waylore.errors import Forbidden
from waylore.surfaces.mcp.server import create_application, create_server
from waylore.surfaces.tools.tools import Agent

LABELS = {"crew-key": frozenset({"crew"}), "office-key": frozenset({"office"})}


def create_app(memory: Waylore) -> FastAPI:
    """Return an application that has MCP among its routes."""

    def agent_of(request: Request | None) -> Agent:
        key = request.headers.get("authorization", "") if request else ""
        if key not in LABELS:
            raise Forbidden("there is no such key")
        return Agent(memory, LABELS[key])

    inner = create_application(create_server(agent_of))

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    app = FastAPI(lifespan=running)
    app.get("/healthz")(lambda: {"status": "well"})
    app.router.routes.extend(inner.routes)
    return app


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("Mara earns forty crowns an hour.", title="Pay", labels=["office"])
        running = uvicorn.Server(uvicorn.Config(create_app(memory), port=0, log_level="error", ws="none"))
        thread = threading.Thread(target=running.run)
        thread.start()
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        running.should_exit = True
        thread.join(HANG_SECONDS)


@asynccontextmanager
async def agent(url: str, key: str) -> AsyncIterator[Client]:
    web = httpx2.AsyncClient(headers={"authorization": key}, timeout=HANG_SECONDS)
    async with web, Client(streamable_http_client(f"{url}/mcp", http_client=web)) as client:
        yield client


async def test_each_key_has_its_own_labels(url: str) -> None:
    async with agent(url, "crew-key") as crew, agent(url, "office-key") as office:
        [hit] = (await call(office, "memory_search", query="What does Mara earn?"))["hits"]
        assert (await call(crew, "memory_search", query="What does Mara earn?"))["hits"] == []
        assert "that you may see" in await call_wrongly(crew, "memory_forget", documents=[hit["document_id"]])
        added = await call(crew, "memory_add", text="The crew meets at nine.")
        assert "that you may see" in await call_wrongly(office, "memory_get", id=added["document_id"])


async def test_unknown_key_is_refused(url: str) -> None:
    async with agent(url, "guessed") as stranger:
        assert await call_wrongly(stranger, "memory_search", query="Mara") == "there is no such key"


def test_other_routes_still_work(url: str) -> None:
    assert httpx.get(f"{url}/healthz", timeout=HANG_SECONDS).json() == {"status": "well"}
    assert httpx.get(f"{url}/nowhere", timeout=HANG_SECONDS).status_code == 404
