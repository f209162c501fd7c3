"""Test an agent over MCP that has the memory of one user: remembering, dates in words, forgetting in two calls."""

from datetime import UTC, datetime
from pathlib import Path

from mcp import Client

from surfaces.agents import call, call_wrongly
from waylore import Waylore
from waylore.surfaces.mcp.server import create_server
from waylore.surfaces.tools.tools import Agent

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)  # a Wednesday


async def test_agent_remembers_for_its_user_alone(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "users.waylore", clock=lambda: NOW) as memory:
        memory.remember("Jonas likes the harbour.", user="jonas")
        agent = Agent(memory, user="mara")
        async with Client(create_server(lambda _: agent)) as client:
            messages = [
                {"content": "I visited the harbour.", "at": "2026-03-10"},
                {"content": "I visited the old harbour again.", "at": "2026-03-17"},
            ]
            said = await call(client, "memory_remember", messages=messages, session="one")
            assert (said["new"], said["known"]) == (2, 0)
            assert (await call(client, "memory_remember", messages=messages, session="one"))["known"] == 2

            found = await call(client, "memory_search", query="harbour")
            assert {hit["title"] for hit in found["hits"]} == {"2026-03-10, mara", "2026-03-17, mara"}
            last_week = await call(client, "memory_search", query="harbour", since="last week", until="last week")
            assert [hit["title"] for hit in last_week["hits"]] == ["2026-03-10, mara"]
            known_then = await call(client, "memory_search", query="harbour", as_of="2026-03-12")
            assert len(known_then["hits"]) == 1
            assert "since must be a date" in await call_wrongly(client, "memory_search", query="x", since="whenever")

            planned = await call(client, "memory_forget", session="one")
            assert (planned["is_planned"], planned["documents"]) == (True, 2)
            assert len((await call(client, "memory_search", query="harbour"))["hits"]) == 2
            gone = await call(client, "memory_forget", session="one", dry_run=False)
            assert (gone["is_planned"], gone["documents"]) == (False, 2)
            assert "documents must not be empty" in await call_wrongly(client, "memory_forget", dry_run=False)
            assert (await call(client, "memory_search", query="harbour"))["hits"] == []
        assert [hit.document.user for hit in memory.search("harbour", user="jonas").hits] == ["jonas"]
