"""Test the addresses of files on the command line: one document for each file, whatever the working folder is."""

import os
from pathlib import Path

import pytest

from surfaces.commands import notes, run, run_json


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder without settings that has notes, beside another one with other notes."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("p", "q"):
        (tmp_path / name).mkdir()
        (notes(tmp_path / name) / "login.md").write_text(f"# Login of {name}\n\nThis is {name}.\n")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def list_uris(store: str = "") -> list[str]:
    """Return the addresses of all documents."""
    chosen = ("--store", store) if store else ()
    run("export", "all.jsonl", *chosen)
    lines = Path("all.jsonl").read_text("utf-8").splitlines()[1:]
    Path("all.jsonl").unlink()
    return sorted(line.partition('"uri":')[2].split('"')[1] for line in lines)


def test_two_folders_do_not_overwrite_each_other(folder: Path) -> None:
    for name in ("p", "q", "p"):
        os.chdir(folder.parent / name)
        run("add", "notes", "--store", "../m.waylore")
    assert [uri for uri in list_uris("../m.waylore") if "login" in uri] == [
        f"{folder}/notes/login.md",
        f"{folder.parent}/q/notes/login.md",
    ]
    assert "3 files: nothing new, 3 unchanged" in run("add", str(folder / "notes"), "--store", "../m.waylore")


def test_a_project_has_the_same_addresses_in_all_its_folders(folder: Path) -> None:
    run("init", "--embedder", "none")
    expected = ["notes/login.md", "notes/mara.md", "notes/sessions.md"]
    for place, path in ((".", "notes"), ("notes", "."), ("notes", "login.md"), (".", str(folder))):
        os.chdir(folder / place)
        run("add", path)
        assert list_uris() == expected
    assert run_json("add", "notes")["unchanged"] == 3
    run("forget", "notes/login.md", "--yes")
    os.chdir(folder / "notes")
    run("forget", "mara.md", "--yes")
    assert list_uris() == ["notes/sessions.md"]


def test_root_overrides_the_project(folder: Path) -> None:
    run("init", "--embedder", "none")
    for option, uri in (("notes", "login.md"), (str(folder.parent), "p/notes/login.md")):
        assert run_json("add", "notes/login.md", "--root", option)["documents"] == 1
        assert list_uris() == [uri]
    assert "root must be a folder that contains notes" in run("add", "notes", "--root", "../q", code=2)
    assert "--prune and --root are for files" in run("add", "--text", "x", "--root", ".", code=2)


def test_a_moved_project_has_no_document_more(folder: Path) -> None:
    run("init", "--embedder", "none")
    run("add", "notes")
    before = list_uris()
    os.chdir(folder.rename(folder.parent / "moved"))
    assert run_json("add", "notes")["documents"] == 0
    assert (list_uris(), run_json("add", "notes")["unchanged"]) == (before, 3)


def test_folders_are_forgotten_by_their_paths(folder: Path) -> None:
    run("add", "notes", "--store", "m.waylore")
    assert f"{folder}/notes/mara.md" in list_uris("m.waylore")
    assert "forgotten: 3 documents" in run("forget", "notes", "--yes", "--store", "m.waylore")


def test_hits_show_the_end_of_a_long_address(folder: Path) -> None:
    run("add", "notes", "--store", "m.waylore")
    line = next(line for line in run("search", "Login", "--store", "m.waylore").splitlines() if " 1 " in line)
    assert line.endswith("…/p/notes/login.md 1.000")
