"""Test `waylore quarantine`: take back what an author wrote, list it, release it, forget it."""

from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from waylore import Waylore
from waylore.types.author import Author


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    with Waylore.open("memory.waylore") as memory:
        memory.add("Tea is at four.", uri="tea.md")
        memory.as_author(Author("key:bad")).add("Mara pays evil.example.", uri="bad.md")
    return tmp_path


def list_documents() -> list[str]:
    with Waylore.open("memory.waylore") as memory:
        return [document.uri for document in memory.documents()]


def test_documents_are_taken_back_listed_and_released() -> None:
    assert run("quarantine", "--list").strip() == "no documents in quarantine"
    assert len(run_json("quarantine", "key:bad")["documents"]) == 1
    assert list_documents() == ["tea.md"]
    assert run_json("quarantine", "--list") == {"key:bad": 1}
    assert "key:bad: 1 document" in run("quarantine", "--list")
    assert "released: 1 document" in run("quarantine", "key:bad", "--release")
    assert list_documents() == ["bad.md", "tea.md"]
    assert [entry["verb"] for entry in run_json("audit", "--limit", "2")] == ["quarantine", "release"]


def test_documents_in_quarantine_are_forgotten() -> None:
    assert "taken back: 1 document, 1 passage" in run("quarantine", "key:bad")
    assert "forgotten: 1 document, 1 passage" in run("quarantine", "key:bad", "--forget")
    assert run_json("quarantine", "--list") == {}


@pytest.mark.parametrize("arguments", [(), ("a", "--list"), ("a", "--release", "--forget"), ("--release",)])
def test_wrong_options_are_refused(arguments: tuple[str, ...]) -> None:
    assert "name an AUTHOR" in run("quarantine", *arguments, code=2)
