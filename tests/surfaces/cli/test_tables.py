"""Test that commands print one kind of table: a header over a line, without other lines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from surfaces.commands import run
from waylore import Waylore


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    with Waylore.open("memory.waylore", clock=lambda: datetime(2026, 3, 17, tzinfo=UTC)) as memory:
        memory.add_facts([("Mara", "owns", "Sessions")])


@pytest.mark.parametrize(
    ("command", "header"),
    [
        ("config", "setting"),
        ("facts Mara", "subject"),
        ("audit", "when"),
        ("keys list", "key"),
        ("collections list", "collection"),
        ("cells list --catalogue cells.db", "cell"),
    ],
)
def test_table_has_a_header_over_a_line(command: str, header: str) -> None:
    run("keys", "create", "assistant")
    run("cells", "add", "one", "one.waylore", "--catalogue", "cells.db")
    first, line, row, *_ = run(*command.split()).splitlines()
    assert first.startswith(f"{header} ")
    assert set(line) <= {"─", " "}
    assert not set(row) & set("│┃╿┏└")
