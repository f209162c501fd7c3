"""Test the setting `timezone` on each surface: words name days in it, times are printed in it, dates stay UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from mcp import Client

from surfaces.agents import call
from surfaces.commands import run, run_json
from waylore import Waylore
from waylore.dates import show_times_in
from waylore.settings.load import load
from waylore.surfaces.mcp.server import create_server
from waylore.surfaces.open import open_collection
from waylore.surfaces.tools.tools import Agent

NOW = datetime(2026, 3, 17, 22, 30, tzinfo=UTC)  # half past seven on the 18th in Tokyo


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("WAYLORE_TIMEZONE", "Asia/Tokyo")
    yield
    show_times_in(UTC)


def test_command_line_prints_local_times_and_keeps_dates() -> None:
    with Waylore.open("memory.waylore", clock=lambda: NOW) as memory:
        memory.add("The harbour opens.", uri="opens.md", at="2026-03-17")
        memory.add("The harbour closes.", uri="closes.md", at="2026-03-17T22:30Z")
    assert "2026-03-17" in run("show", "opens.md")
    shown = run("show", "closes.md")
    assert "2026-03-18" in shown
    assert "2026-03-17" not in shown
    assert {each["at"] for each in run_json("list")} == {"2026-03-17T00:00:00Z", "2026-03-17T22:30:00Z"}
    written = datetime.fromisoformat(run_json("audit")[0]["at"]).astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"{written:%Y-%m-%d %H:%M:%S}" in run("audit")


async def test_agent_means_local_days() -> None:
    settings = load()
    with open_collection(settings) as memory:
        memory.remember("I visited the harbour.", user="mara", at="2026-03-16T16:00Z")  # on the 17th in Tokyo
        assert str(memory.now().tzinfo) == "Asia/Tokyo"
    with Waylore.open(settings.store, clock=lambda: NOW, timezone=settings.timezone) as memory:
        async with Client(create_server(lambda _: Agent(memory, user="mara"))) as client:
            found = await call(client, "memory_search", query="harbour", since="yesterday", until="yesterday")
            assert [hit["title"] for hit in found["hits"]] == ["2026-03-17, mara"]
            changes = await call(client, "memory_changes", since="yesterday", until="2026-03-17")
            assert (changes["since"], changes["until"]) == ("2026-03-16T15:00:00Z", "2026-03-18T00:00:00Z")
