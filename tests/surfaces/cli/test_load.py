"""`waylore load`: its report, and what it refuses."""

from pathlib import Path

import pytest

from surfaces.commands import notes, run, run_json


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    return notes(tmp_path)


def test_report_is_that_of_adding(folder: Path) -> None:
    loaded = run_json("load", "notes", "--workers", "1", "--label", "staff", "--store", "loaded.waylore")
    added = run_json("add", "notes", "--label", "staff", "--store", "added.waylore")
    assert {**loaded, "seconds": 0} == {**added, "seconds": 0}
    assert "3 files: nothing new, 3 unchanged" in run("load", "notes", "--label", "staff", "--store", "loaded.waylore")
    assert "login service" in run("search", "login", "--label", "staff", "--store", "loaded.waylore")


def test_url_is_loaded_with_the_url_as_address(folder: Path) -> None:
    report = run_json("load", f"file://{folder}/*.md", "--workers", "1")
    assert (report["files"], report["documents"]) == (3, 3)
    assert f"file://{folder}/login.md" in str(run_json("list"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no file or folder nowhere"),
        (["file:///nowhere/at/all"], "no files at"),
        (["notes", "--writers", "2"], "a SQLite file has one writer"),
        (["notes", "--cluster", "auto"], "needs a store on a server"),
        (["file:///notes", "--root", "notes"], "--root is for a path"),
        (["notes", "--label", ""], "--label must not be empty"),
    ],
)
def test_wrong_options_name_the_remedy(arguments: list[str], message: str) -> None:
    done = run("load", *arguments, code=3 if "nowhere/at" in arguments[0] else 2)
    assert message in done
