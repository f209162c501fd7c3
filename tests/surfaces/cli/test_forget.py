"""Test `waylore forget --about`, `--statements` and `--ignore`."""

from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from waylore.indexing.redaction import MARK


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    (tmp_path / "waylore.toml").write_text('[embedding]\nprovider = "hashing"\n')
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "teams.md").write_text("# Teams\n\nPlatform owns Login. Mara Lind leads Platform.\n")
    (notes / "a #1.md").write_text("# Other\n\nOlek likes Mara Lind.\n")
    run("add", "notes")
    return tmp_path


def test_dry_run_lists_statements() -> None:
    printed = run("forget", "--about", "mara lind", "--dry-run")
    assert "notes/teams.md\n    Mara Lind leads Platform." in printed
    about = run_json("forget", "--about", "Mara Lind", "--dry-run")["about"]
    assert [(each["uri"], each["statements"]) for each in about] == [
        ("notes/a %231.md", ["Olek likes Mara Lind."]),
        ("notes/teams.md", ["Mara Lind leads Platform."]),
    ]
    assert len(run_json("list")) == 2


def test_statements_are_removed_and_verified() -> None:
    done = run_json("forget", "--about", "Mara Lind", "--statements", "--verify", "--yes")
    assert done["remains"] == []
    assert done["documents"] == []
    assert f"Platform owns Login. {MARK}" in run("show", "notes/teams.md")
    run("add", "--text", "Zoe leads Quarry.")
    assert "removed from 1 document: parts of 1 passage, " in run("forget", "--about", "Zoe", "--statements", "--yes")
    assert "about" not in run_json("forget", "--about", "Mara Lind", "--dry-run")
    assert "--statements needs --about" in run("forget", "--statements", code=2)


def test_forgotten_files_can_be_ignored(folder: Path) -> None:
    done = run_json("forget", "--about", "Olek", "--ignore", "--verify", "--yes")
    assert (len(done["documents"]), done["remains"]) == (1, [])
    assert (folder / ".wayloreignore").read_text() == "/notes/a\\ \\#1.md\n"
    run("forget", "notes/teams.md", "--ignore", "--yes")
    assert (folder / ".wayloreignore").read_text().splitlines()[1:] == ["/notes/teams.md"]
    assert run_json("add", "notes")["documents"] == 0
    run("add", "notes/teams.md")  # named by itself
    run("forget", "notes/teams.md", "--ignore", "--yes")
    assert len((folder / ".wayloreignore").read_text().splitlines()) == 2
