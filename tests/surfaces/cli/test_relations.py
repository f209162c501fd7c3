"""Test `waylore related`, `connect` and `entities`: the same answers as from Python, and trees that people read."""

from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from waylore import Waylore

SERVICES = [
    ("Billing", "needs", "Quarry"),
    ("Ledger", "relies on", "Billing"),
    ("Quarry", "is used by", "Search"),
    ("Mara", "owns", "Quarry"),
]
TREE = """\
Quarry  3 passages
├── ←needs— Billing
│   └── ←relies on— Ledger
└── —is used by→ Search

all 3 facts
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    run("init", "--embedder", "none")
    [store] = tmp_path.glob("*.waylore")
    with Waylore.open(store) as memory:
        memory.add_facts(SERVICES, source="file")
    return store


def test_related_is_a_tree_and_says_that_it_is_complete(folder: Path) -> None:
    options = ("related", "quarry", "--predicate", "depends on", "--direction", "in", "--hops", "3")
    assert run(*options).startswith(TREE)
    assert "not matched: owns (1)" in run(*options)
    with Waylore.open(folder) as memory:
        answer = memory.related("quarry", predicates="depends on", direction="in", hops=3)
    assert run_json(*options) == answer.to_dict()
    assert run_json("related", "Quarry", "--limit", "1")["complete"] is False
    assert "1 of 3 facts" in run("related", "Quarry", "--limit", "1")
    assert "no entity 'Nobody'" in run("related", "Nobody")
    assert "is not one of" in run("related", "Quarry", "--direction", "up", code=2)


def test_connect_shows_each_step(folder: Path) -> None:
    assert "Ledger\n└── —relies on→ Billing\n    └── —needs→ Quarry\n        └── ←owns— Mara" in run(
        "connect", "Ledger", "Mara"
    )
    with Waylore.open(folder) as memory:
        assert run_json("connect", "Ledger", "Mara") == memory.connect("Ledger", "Mara").to_dict()
    assert "no path within 2 hops" in run("connect", "Ledger", "Mara", "--max-hops", "2")
    assert "no entity 'Nobody'" in run("connect", "Ledger", "Nobody")


def test_entities_are_listed_in_pages(folder: Path) -> None:
    with Waylore.open(folder) as memory:
        assert run_json("entities", "--limit", "2") == memory.list_entities(limit=2).to_dict()
    shown = run("entities", "--limit", "2")
    assert "2 of 5 entities\n--after " in shown
    assert run_json("entities", "--predicate", "maintains", "--object", "quarry")["entities"][0]["name"] == "Mara"
    assert "no entities" in run("entities", "--type", "planet")
    assert "after must be the cursor" in run("entities", "--after", "x", code=2)
