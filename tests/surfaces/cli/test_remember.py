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
    [hit] = run_json("search", "Bergen", "--user", "mara", "--method", "keyword")["hits"]
    assert (hit["passage"]["speaker"], hit["passage"]["role"]) == ("Mara", "user")


def test_search_selects_by_session_and_time() -> None:
    run("remember", "talk.txt", "--user", "mara", "--session", "one", "--at", "2026-03-08")
    run("remember", "messages.json", "--user", "mara", "--session", "two")

    def count(*options: str) -> int:
        return len(run_json("search", "harbour Bergen", "--user", "mara", "--method", "keyword", *options)["hits"])

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


def test_group_by_session_shows_one_turn_of_each() -> None:
    run("remember", "talk.txt", "--user", "mara", "--session", "one", "--at", "2026-03-08")
    run("remember", "messages.json", "--user", "mara", "--session", "two")
    every, grouped = (
        [hit["document"]["session"] for hit in run_json("search", "harbour Bergen", "--user", "mara", *options)["hits"]]
        for options in ((), ("--group-by", "session"))
    )
    assert (sorted(every), sorted(grouped)) == (["one", "one", "one", "two"], ["one", "two"])
    assert "'day' is not one of" in run("search", "x", "--group-by", "day", code=2)


def test_expired_memories_are_hidden_and_forgotten() -> None:
    run("remember", "talk.txt", "--user", "mara", "--expires", "2026-01-01")
    run("remember", "messages.json", "--user", "mara", "--expires", "2999-01-01")
    run("add", "--text", "The canteen is closed.", "--uri", "canteen", "--expires", "2026-01-01")
    run("add", "messages.json", "--expires", "2026-01-01")
    assert len(run_json("search", "Bergen harbour", "--user", "mara")["hits"]) == 1
    [hit] = run_json("search", "Bergen harbour", "--user", "mara", "--as-of", "2025-12-31")["hits"]
    assert hit["document"]["uri"] == "messages.json"  # a file without a time, which had not expired
    assert run_json("search", "canteen")["hits"] == []
    assert len(run_json("forget", "--expired", "--dry-run")["documents"]) == 5
    assert len(run_json("forget", "--expired", "--user", "mara", "--yes")["documents"]) == 3
    assert len(run_json("forget", "canteen", "--yes")["documents"]) == 1  # by its name, although it has expired
    assert "forgotten: 1 document," in run("forget", "--expired", "--yes", "--verify")
    assert run_json("forget", "--expired", "--yes")["documents"] == []


def test_views_show_what_holds_and_what_changed() -> None:
    for day, text in (("2026-01-10", "I live in Oslo."), ("2026-03-10", "I live in Bergen now.")):
        run("remember", "--user", "mara", "--at", day, stdin=text)
    shown = run("profile", "mara")
    assert "since 2026-03-10  mara —lives_in→ Bergen" in shown.replace("lives in", "lives_in")
    assert "Oslo" not in shown
    assert [line["text"].partition(" (")[0] for line in run_json("profile", "mara")["lines"]] == ["lives in: Bergen"]
    assert run_json("profile", "mara", "--max-tokens", "1")["has_more"]
    assert "no facts about 'jonas'" in run("profile", "jonas")

    shown = run("changes", "--user", "mara", "--since", "2026-02-01").replace("lives in", "lives_in")
    assert "2026-03-10 changed  mara —lives_in→ Oslo, now Bergen" in shown
    assert "“I live in Bergen now.” 2026-03-10, mara" in shown
    changes = run_json("changes", "--user", "mara", "--until", "2026-02-01", "--entity", "Oslo")["changes"]
    assert [(change["kind"], change["after"]["fact"]["object"]) for change in changes] == [("began", "Oslo")]
    assert run_json("changes", "--user", "mara", "--limit", "1")["has_more"]
    assert run("changes", "--user", "jonas") == "nothing changed\n"

    shown = run("timeline", "mara", "--user", "mara")
    assert "2026-01-10 to 2026-03-10" in shown
    assert "changed 2026-03-10: I live in Bergen now." in shown
    assert len(run_json("timeline", "mara", "--user", "mara", "--until", "2026-02-01")["entries"]) == 1
    assert "no statements about 'mara'" in run("timeline", "mara")
    assert "no statements about 'mara'" in run("timeline", "mara", "--user", "jonas", "--label", "crew")
