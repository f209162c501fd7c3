"""Test `waylore cells` and `waylore collections` as processes: output, exit codes and errors."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.waiting import HANG_SECONDS

from surfaces.commands import process
from waylore import Waylore


def waylore(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return process(folder, *arguments, "--catalogue", "catalogue.waylore")


def read_json(folder: Path, *arguments: str) -> object:
    done = waylore(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("east", "west"):
        assert read_json(tmp_path, "cells", "add", name, f"{name}.waylore") == {"cell": name, "state": "active"}
    with Waylore.open(f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}", collection="team") as team:
        team.add("The login needs the session service.")
    return tmp_path


@pytest.mark.full
def test_collections_move_between_cells(folder: Path) -> None:
    sizes = {name: (folder / f"{name}.waylore").stat().st_size for name in ("east", "west")}
    assert read_json(folder, "cells", "list") == [
        {"cell": "east", "state": "active", "bytes": sizes["east"], "collections": ["team"]},
        {"cell": "west", "state": "active", "bytes": sizes["west"], "collections": []},
    ]
    assert read_json(folder, "collections", "move", "team", "west") == {"collection": "team", "cell": "west"}
    assert read_json(folder, "cells", "drain", "west") == {"cell": "west", "moved": ["team"]}
    listed = json.loads(waylore(folder, "cells", "list", "--json").stdout)
    assert [(cell["cell"], cell["state"], cell["collections"]) for cell in listed] == [
        ("east", "active", ["team"]),
        ("west", "draining", []),
    ]
    with Waylore.open(f"cells+sqlite:///{folder / 'catalogue.waylore'}", collection="team") as team:
        assert len(team.search("login").hits) == 1


def test_collections_are_listed(folder: Path) -> None:
    for name in ("two", "one"):
        with Waylore.open(str(folder / "memory.waylore"), collection=name) as memory:
            memory.add("The login needs the session service.")
    listed = [{"collection": name, "documents": 1, "passages": 1} for name in ("one", "two")]
    assert json.loads(process(folder, "collections", "list", "--json").stdout) == listed
    of_cells = process(folder, "collections", "list", "--store", "cells+sqlite:///catalogue.waylore", "--json")
    assert json.loads(of_cells.stdout) == [{"collection": "team"}]
    done = process(folder, "search", "login", "--collection", "typo")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no collection 'typo'; name one of these with --collection: one, two" in done.stderr
    assert json.loads(process(folder, "collections", "list", "--json").stdout) == listed  # none was created


def test_catalogue_of_the_settings_is_the_default(folder: Path) -> None:
    done = process(folder, "cells", "list", "--json", WAYLORE_STORE="cells+sqlite:///catalogue.waylore")
    assert [cell["cell"] for cell in json.loads(done.stdout)] == ["east", "west"]


def test_list_prints_a_table_without_colours_in_a_pipe(folder: Path) -> None:
    shown = waylore(folder, "cells", "list").stdout
    rows = [re.split(r" {2,}", line) for line in shown.splitlines()]
    assert ["east", "active", "team"] in [[*row[:2], *row[3:]] for row in rows]
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("collections", "move", "team", "north"), 2, "no cell 'north'; the cells are east, west"),
        (("cells", "drain", "north"), 3, "no cell 'north'"),
        (("cells", "add", "north", "postgresql://nobody@127.0.0.1:1/x"), 4, "127.0.0.1:1/x cannot be reached"),
        (("cells", "add", "east", "other.waylore"), 2, "cell name east or its URL is in use"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    folder: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = waylore(folder, *arguments)
    assert done.returncode == code
    assert done.stderr.startswith("waylore: ")
    assert message in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("cells", "list"), ("cells", "drain", "a"), ("collections", "move", "a", "b")])
def test_only_adding_a_cell_creates_a_catalogue(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = waylore(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no catalogue of cells at catalogue.waylore; create one with `waylore cells add" in done.stderr
    assert list(tmp_path.glob("*.waylore")) == []


def test_missing_typer_names_the_extra(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['typer'] = None; from waylore.surfaces.cli.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 1
    assert "pip install 'waylore[cli]'" in done.stderr
