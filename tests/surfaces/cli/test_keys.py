"""Test `waylore keys`: keys of a user are created, listed and rotated with it."""

from pathlib import Path

import pytest

from surfaces.commands import run, run_json


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_key_keeps_its_user() -> None:
    made = run_json("keys", "create", "phone", "--scope", "write", "--user", "mara")
    assert (made["user"], made["max_source"]) == ("mara", "conversation")
    run("keys", "create", "owner")
    rotated = run_json("keys", "rotate", made["id"])
    assert (rotated["user"], rotated["token"] != made["token"]) == ("mara", True)
    assert [(key["name"], key["user"]) for key in run_json("keys", "list")] == [("phone", "mara"), ("owner", "")]
    assert run_json("keys", "revoke", made["id"])["user"] == "mara"
    assert "mara" in run("keys", "list")


def test_empty_user_is_refused() -> None:
    """Refuse what an unset variable of a shell gives: the key would read and write for everybody."""
    assert "user must be text of one line" in run("keys", "create", "phone", "--user", "", code=2)
    assert run_json("keys", "list") == []
