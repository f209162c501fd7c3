"""Test `waylore enrich` on a real file, with a scripted model behind a real HTTP server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from unit.providers.loopback import Script, serve
from waylore import Waylore


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Script) -> Path:
    """Create a store of two texts, with the language model in the settings and rules as the extractor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    options = {"MODEL": "m", "BASE_URL": server.url, "CACHE": "answers"}
    for name, value in {
        "STORE": "team.waylore",
        **{f"EXTRACTION_{key}": text for key, text in options.items()},
    }.items():
        monkeypatch.setenv(f"WAYLORE_{name}", value)
    with Waylore.open("team.waylore", extractor=None) as memory:
        memory.add("Kofi owns Ridge.", uri="ridge.md", metadata={"team": "north"})
        memory.add("Ines built Mill.", uri="mill.md")
    return tmp_path


def test_enrich_reads_what_questions_reached_and_is_taken_back(server: Script) -> None:
    run("export", "before.jsonl")
    assert run_json("enrich", "--budget", "100000")["read"] == 0
    run("search", "Who owns Ridge?", "--method", "keyword")
    added = run_json("enrich", "--budget", "100000", "--run", "one")
    assert (added["run"], added["read"], added["facts"], added["calls"]) == ("one", 1, 1, 1)
    assert added["tokens_sent"] + added["tokens_answered"] == server.charged
    assert run_json("facts", "Ridge")[0]["status"] == "staged"
    assert "removed what run one added to 1 passage: 1 fact" in run("enrich", "--undo", "one")
    run("export", "after.jsonl")
    assert Path("after.jsonl").read_bytes() == Path("before.jsonl").read_bytes()
    assert "no run one" in run("enrich", "--undo", "one", code=3)


def test_enrich_reads_what_a_filter_names_once(server: Script) -> None:
    report = run("enrich", "--budget", "100000", "--where", "team=north", "--run", "one")
    assert "run one: 1 passages read" in report
    assert "spent: 1 calls" in report
    assert "waylore enrich --undo one" in report
    again = run_json("enrich", "--budget", "100000", "--where", "team=north")
    assert (again["read"], again["known"], again["calls"]) == (0, 1, 0)
    assert len(server.requests) == 1


def test_budget_that_is_too_small_sends_nothing(server: Script) -> None:
    report = run_json("enrich", "--budget", "10", "--where", "team=north")
    assert (report["read"], report["unread"], report["calls"]) == (0, 1, 0)
    assert server.requests == []


def test_enrich_needs_a_budget_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--budget is missing" in run("enrich", code=2)
    monkeypatch.delenv("WAYLORE_EXTRACTION_MODEL")
    assert "extraction.model is empty" in run("enrich", "--budget", "10", code=2)
