"""Test the loop of an agent over MCP: three conversations, restarts between them, a user who changes their mind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp import Client

from requirements import find_model
from surfaces.agents import call
from waylore import Waylore
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.surfaces.mcp.server import create_server
from waylore.surfaces.tools.tools import Agent


@asynccontextmanager
async def start_agent(path: Path, day: str) -> AsyncIterator[Client]:
    """Start a server for mara on a day, as a client does for each conversation."""
    now = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    embedder = FastEmbedder(path=find_model("bge-small"), threads=1)
    with Waylore.open(path, embedder=embedder, clock=lambda: now) as memory:
        async with Client(create_server(lambda _: Agent(memory, user="mara"))) as client:
            yield client


async def ask(client: Client, question: str, **options: Any) -> list[tuple[str, str]]:
    """Return the titles and texts of hits, without the marks around the texts."""
    found = await call(client, "memory_search", query=question, **options)
    return [(hit["title"], hit["text"]) for hit in found["hits"]]


async def test_agent_follows_its_user_over_three_conversations(tmp_path: Path) -> None:
    path = tmp_path / "memory.waylore"
    async with start_agent(path, "2026-01-07") as client:
        await call(client, "memory_remember", text="I live in Oslo and my birthday is on 14 March.", session="january")
        await call(client, "memory_remember", text="My door code is 4471.", session="january")
        [(title, text), *_] = await ask(client, "Where do I live?")
        assert "Oslo" in text
        assert title == "2026-01-07, mara"

    async with start_agent(path, "2026-03-11") as client:  # moves, corrects
        fact = {"subject": "user", "predicate": "lives_in", "object": "Bergen"}
        await call(client, "memory_remember", text="The boxes are in Bergen now.", facts=[fact], session="march")
        await call(client, "memory_remember", text="Sorry, I misspoke: my birthday is on 24 March.", session="march")
        await call(client, "memory_remember", text="Yesterday I ran a half marathon.", session="march")
        [(_, home), (old_title, old), *_] = await ask(client, "Where do I live?")
        assert "Bergen" in home
        assert old_title == "2026-01-07, mara · changed 2026-03-11"
        assert "(until 2026-03-11; then: The boxes are in Bergen now.)" in old
        assert "24 March" in (await ask(client, "When is my birthday?"))[0][1]

    async with start_agent(path, "2026-03-18") as client:  # moves back, asks about last week, forgets
        await call(client, "memory_remember", text="I moved back to Oslo.", session="spring")
        [(title, text), *_] = await ask(client, "Where do I live?")
        assert ("Oslo" in text, title) == (True, "2026-03-18, mara")
        assert "Bergen" in (await ask(client, "Where do I live?", as_of="2026-03-12"))[0][1]
        last_week = await ask(client, "What did I do?", since="last week", until="last week")
        assert {title.split(",")[0] for title, _ in last_week} == {"2026-03-11"}
        assert any("half marathon" in text for _, text in last_week)

        found = await call(client, "memory_search", query="door code")
        code = next(hit for hit in found["hits"] if "4471" in hit["text"])
        gone = await call(client, "memory_forget", documents=[code["document_id"]])
        assert gone["documents"] == 1
        assert not any("4471" in text for _, text in await ask(client, "What is my door code?"))

    async with start_agent(path, "2026-03-19") as client:  # after another restart nothing has come back
        assert not any("4471" in text for _, text in await ask(client, "What is my door code?"))
        assert "Oslo" in (await ask(client, "Where do I live?"))[0][1]
