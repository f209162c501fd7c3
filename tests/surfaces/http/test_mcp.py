"""Test MCP at `/mcp` of a real `waylore serve`: an agent with a key, and the limits of a key."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tools.waiting import HANG_SECONDS

from surfaces.agents import call, call_wrongly, fill, run_agent
from surfaces.serving import Served, create_token, start_service
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(quiet=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=EMBEDDER) as memory:
        fill(memory)
        memory.add("Mara earns forty crowns an hour.", title="Pay", labels=["office"])
    with start_service(tmp_path / "memory.waylore", tmp_path) as running:
        with running.client() as admin:
            assert admin.put("/v1/collections/other", json={}).status_code < 300
        yield running


@asynccontextmanager
async def agent(service: Served, token: str, query: str = "") -> AsyncIterator[Client]:
    web = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=HANG_SECONDS)
    async with web, Client(streamable_http_client(f"{service.url}/mcp{query}", http_client=web)) as client:
        yield client


async def test_agent_can_search_read_add_and_forget(service: Served) -> None:
    async with agent(service, service.token) as client:
        await run_agent(client)


async def test_key_sets_collection_labels_and_scope(service: Served, tmp_path: Path) -> None:
    store = tmp_path / "memory.waylore"
    crew = create_token(store, scope="read", collections=["default"], labels=["crew"])
    office = create_token(store, scope="write", collections=["default"], labels=["office"])
    other = create_token(store, scope="write", collections=["other"])
    query = "What does Mara earn?"
    async with agent(service, crew) as reader, agent(service, office) as writer, agent(service, other) as away:
        pay = [hit for hit in (await call(writer, "memory_search", query=query))["hits"] if hit["title"] == "Pay"]
        assert pay
        seen = (await call(reader, "memory_search", query=query))["hits"]
        assert seen
        assert "Pay" not in {hit["title"] for hit in seen}
        assert "read-only" in await call_wrongly(reader, "memory_add", text="Mara earns nothing.")
        assert (await call(away, "memory_search", query=query))["hits"] == []
        assert "that you may see" in await call_wrongly(away, "memory_get", id=pay[0]["document_id"])
    async with agent(service, service.token, "?collection=other") as named:
        assert (await call(named, "memory_search", query=query))["hits"] == []


def test_wrong_key_or_collection_is_a_problem(service: Served, tmp_path: Path) -> None:
    other = create_token(tmp_path / "memory.waylore", collections=["other"])
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=service.url, headers=headers, trust_env=False, timeout=HANG_SECONDS) as client:
        for token, query, status in [
            ("", "", 401),
            ("waylore_nobody_nothing", "", 401),
            (other, "?collection=default", 404),
            (other, "?collection=nowhere", 404),
        ]:
            shown = {"Authorization": f"Bearer {token}"} if token else {}
            answer = client.post(f"/mcp{query}", json=hello, headers=shown)
            assert answer.status_code == status, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["x-request-id"] == answer.json()["request_id"]
