"""Test `waylore remember`, and users, sessions and dates of the other commands."""

import json
from pathlib import Path

import pytest

from surfaces.commands import run, run_json

TRANSCRIPT = "Mara: I moved to Bergen.\nClerk: When was that?\nMara: On the first of March.\n"
MESSAGES = [{"role": "user", "content": "The harbour is closed.", "at": "2026-04-02"}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "talk.txt").write_text(TRANSCRIPT)
    (tmp_path / "messages.json").write_text(json.dumps(MESSAGES))
    run("init", "--embedder", "none")
    return tmp_path


def test_transcript_is_remembered_once() -> None:
    assert "3 new turns" in run("remember", "talk.txt", "--user", "mara", "--at", "2026-03-08")
    again = run_json("remember", "talk.txt", "--user", "mara", "--at", "2026-03-08")
    assert (again["new"], again["known"]) == (0, 3)
    assert run_json("remember", "talk.txt", "--user", "jonas")["new"] == 3


def test_hits_show_speaker_and_day() -> None:
    run("remember", "talk.txt", "--user", "mara", "--at", "2026-03-08")
    assert "2026-03-08, Mara" in run("search", "Bergen", "--user", "mara")
    assert run_json("search", "Bergen")["hits"] == []
    [hit] = run_json("search", "Bergen", "--user", "mara")["hits"]
    assert (hit["passage"]["speaker"], hit["passage"]["role"]) == ("Mara", "user")


def test_search_selects_by_session_and_time() -> None:
    run("remember", "talk.txt", "--user", "mara", "--session", "one", "--at", "2026-03-08")
    run("remember", "messages.json", "--user", "mara", "--session", "two")

    def count(*options: str) -> int:
        return len(run_json("search", "harbour Bergen", "--user", "mara", *options)["hits"])

    assert count() == 2
    assert count("--session", "one") == 1
    assert count("--since", "2026-04-01") == 1
    assert count("--until", "2026-04-02") == 1
    assert count("--as-of", "2026-03-09") == 1


def test_pipe_is_one_message() -> None:
    said = json.loads(run("remember", "--user", "mara", "--json", stdin="I am allergic to nuts."))
    assert said["new"] == 1
    assert "I am allergic to nuts." in run("search", "allergic", "--user", "mara")


def test_forget_by_user_asks_with_dry_run() -> None:
    run("remember", "talk.txt", "--user", "mara", "--session", "one")
    run("remember", "messages.json", "--user", "mara", "--session", "two")
    assert len(run_json("forget", "--user", "mara", "--session", "one", "--dry-run")["documents"]) == 3
    assert len(run_json("forget", "--user", "mara", "--session", "one", "--yes")["documents"]) == 3
    assert len(run_json("forget", "--user", "mara", "--yes", "--verify")["documents"]) == 1
    assert run_json("forget", "--user", "mara", "--yes")["documents"] == []
    assert "documents must not be empty" in run("forget", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remember", "nowhere.txt"], "no file or folder nowhere.txt"),
        (["remember", "-", "talk.txt"], "leave out the files"),
        (["remember", "talk.txt", "--format", "smoke"], "unknown format"),
        (["add", "talk.txt", "--user", "mara"], "--user and --at are for one text"),
    ],
)
def test_wrong_calls_name_the_next_step(arguments: list[str], message: str) -> None:
    assert message in run(*arguments, code=2)
