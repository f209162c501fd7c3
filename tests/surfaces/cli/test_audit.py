"""Test `waylore audit`: it shows each change, and notices a log that was changed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surfaces.commands import run, run_json
from waylore import Waylore
from waylore.store.sqlite import file
from waylore.surfaces.cli.maintain import AUDIT_PAGE, _list_newest
from waylore.types.audit import AuditEntry, make_entry
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
        ("local", "relabel", 1, ["staff"], ["guests"]),
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


def test_changes_of_keys_are_shown() -> None:
    made = run_json("keys", "create", "assistant", "--label", "red")
    run("keys", "rotate", made["id"])
    run("keys", "revoke", made["id"])
    run("keys", "revoke", made["id"])
    run("keys", "create", "owner")
    entries = run_json("audit", "--keys")
    assert [(e["verb"], e["author"], e["labels_before"], e["labels_after"]) for e in entries] == [
        ("create_key", "local", [], ["red"]),
        ("rotate_key", "local", ["red"], ["red"]),
        ("revoke_key", "local", ["red"], ["red"]),
        ("create_key", "local", [], ["*"]),
    ]
    assert {e["key"] for e in entries[:3]} == {made["id"]}
    assert made["token"] not in str(entries)
    assert "assistant" not in str(entries)
    printed = run("audit", "--keys", "--verify")
    assert f"revoke key {made['id']}" in printed
    assert "the log is whole" in printed
    assert run_json("audit", "--limit", "1")[0]["verb"] == "forget"  # the log of the collection has no keys


class Log:
    """A log that counts the entries that were read. Numbers begin at 1, and the oldest may be deleted."""

    def __init__(self, entries: list[AuditEntry]) -> None:
        self.entries = entries
        self.read = 0

    def audit(self, *, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Return entries as a store does."""
        start = after + self.entries[-1].number if after < 0 and self.entries else after
        found = [entry for entry in self.entries if entry.number > start][:limit]
        self.read += len(found)
        return tuple(found)


def make_log(length: int, authors: str = "a", deleted: int = 0) -> Log:
    entries = list[AuditEntry]()
    for number in range(length):
        last = (entries[-1].number, entries[-1].hash) if entries else None
        author = authors[number % len(authors)]
        entries.append(make_entry(last, "write", author=author, request="", documents=()))
    return Log(entries[deleted:])


@given(st.integers(0, 2_500), st.integers(0, 2_500), st.integers(1, 1_500), st.sampled_from(["", "a", "b", "c"]))
def test_newest_entries_are_those_at_the_end(length: int, deleted: int, limit: int, author: str) -> None:
    log = make_log(length, "aab", deleted)
    wanted = [entry for entry in log.entries if author in ("", entry.author)][-limit:]
    assert _list_newest(log, limit, author) == wanted


def test_end_of_a_long_log_is_read_alone() -> None:
    log = make_log(12_000)
    assert [entry.number for entry in _list_newest(log, 3, "")] == [11_998, 11_999, 12_000]
    assert log.read <= 2 * AUDIT_PAGE


def test_document_shows_its_author() -> None:
    assert run_json("show", "tea.md")[0]["document"]["author"] == "key:red"
    assert "written by: key:red" in run("show", "tea.md")
