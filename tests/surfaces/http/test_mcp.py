"""MCP at `/mcp` of a real `waylore serve`: the agent's loop with a key, and what a key does not open."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from surfaces.agents import asked, filled, loop, refused
from surfaces.serving import Served, key, served
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(quiet=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=EMBEDDER) as memory:
        filled(memory)
        memory.add("Mara earns forty crowns an hour.", title="Pay", labels=["office"])
    with served(tmp_path / "memory.waylore", tmp_path) as running:
        with running.client() as admin:
            assert admin.put("/v1/collections/other", json={}).status_code < 300
        yield running


@asynccontextmanager
async def agent(service: Served, token: str, query: str = "") -> AsyncIterator[Client]:
    web = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30)
    async with web, Client(streamable_http_client(f"{service.url}/mcp{query}", http_client=web)) as client:
        yield client


async def test_an_agents_loop(service: Served) -> None:
    async with agent(service, service.token) as client:
        await loop(client)


async def test_a_key_is_an_agent_with_its_collection_labels_and_scope(service: Served, tmp_path: Path) -> None:
    store = tmp_path / "memory.waylore"
    crew = key(store, scope="read", collections=["default"], labels=["crew"])
    office = key(store, scope="write", collections=["default"], labels=["office"])
    other = key(store, scope="write", collections=["other"])
    query = "What does Mara earn?"
    async with agent(service, crew) as reader, agent(service, office) as writer, agent(service, other) as away:
        pay = [
            hit for hit in (await asked(writer, "memory_search", query=query))["hits"] if hit["title"] == "Pay"
        ]
        assert pay
        seen = (await asked(reader, "memory_search", query=query))["hits"]
        assert seen
        assert "Pay" not in {hit["title"] for hit in seen}
        assert "read-only" in await refused(reader, "memory_add", text="Mara earns nothing.")
        assert (await asked(away, "memory_search", query=query))["hits"] == []
        assert "that you may see" in await refused(away, "memory_get", id=pay[0]["document_id"])
    async with agent(service, service.token, "?collection=other") as named:
        assert (await asked(named, "memory_search", query=query))["hits"] == []


def test_without_a_key_or_for_another_collection_it_is_a_problem(service: Served, tmp_path: Path) -> None:
    other = key(tmp_path / "memory.waylore", collections=["other"])
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=service.url, headers=headers, trust_env=False) as client:
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
