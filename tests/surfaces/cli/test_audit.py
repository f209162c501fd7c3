"""Test `waylore audit`: it shows each change, and notices a log that was changed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from waylore import Waylore
from waylore.store.sqlite import file
from waylore.types.author import Author


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    with Waylore.open("memory.waylore") as memory:
        memory.add("The door code is 4471.", uri="door.md", labels="staff")
        memory.add("The door code is 4471.", uri="door.md", labels="guests")
        memory.as_author(Author("key:red", frozenset({"red"}))).add("Tea.", uri="tea.md")
        memory.forget("door.md")
    return tmp_path


def test_changes_are_shown_without_content() -> None:
    entries = run_json("audit")
    assert [(e["author"], e["verb"], e["count"], e["labels_before"], e["labels_after"]) for e in entries] == [
        ("local", "write", 1, [], ["staff"]),
        ("local", "write", 1, ["staff"], ["guests"]),
        ("key:red", "write", 1, [], ["red"]),
        ("local", "forget", 1, ["guests"], []),
    ]
    printed = run("audit")
    assert "staff → guests" in printed
    assert "4471" not in printed + str(entries)
    assert "door" not in printed + str(entries)
    assert [entry["number"] for entry in run_json("audit", "--author", "key:red")] == [3]
    assert [entry["number"] for entry in run_json("audit", "--limit", "2")] == [3, 4]
    assert "the log is whole" in run("audit", "--verify")


def test_rows_cannot_be_changed_and_a_changed_log_is_noticed() -> None:
    with closing(sqlite3.connect("memory.waylore")) as db:
        for change in ("UPDATE audit SET author = 'other'", "DELETE FROM audit"):
            with pytest.raises(sqlite3.IntegrityError, match="audit log"):
                db.execute(change)
    with closing(file.connect("memory.waylore", busy_seconds=1)) as db:
        file.prepare(db, busy_seconds=1)
        db.execute("DROP TRIGGER audit_is_not_changed; UPDATE audit SET author = 'other' WHERE number = 3")
    assert "an entry was changed or taken out" in run("audit", "--verify", code=1)


def test_document_shows_its_author() -> None:
    assert run_json("show", "tea.md")[0]["document"]["author"] == "key:red"
    assert "written by: key:red" in run("show", "tea.md")
