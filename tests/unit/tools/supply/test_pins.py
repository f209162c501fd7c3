"""The pins of a release: complete, hashed, without a host, and within the ranges of pyproject.toml."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from tools.supply.pins import (
    RELEASED,
    Pin,
    check_pins,
    find_stale,
    list_files,
    list_requirements,
    read_pins,
    read_project,
)

FILES = list(list_files(read_project()))
PINS = [Pin("numpy", "2.4.6", ("a" * 64,)), Pin("numpy", "2.5.4", ("b" * 64,)), Pin("pyjwt", "2.15.1", ("c" * 64,))]


def test_the_committed_pins_are_not_older_than_the_project() -> None:
    assert check_pins() == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_pins_with_hashes_and_nothing_else(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    starts = [line for line in lines if not line.startswith(" ")]
    assert len(starts) == len(read_pins(path)) > 0  # each line that is not a hash begins a pin that was read
    hashes = [line.strip(" \\") for line in lines if line.startswith(" ")]
    assert all(one.startswith("--hash=sha256:") and len(one) == len("--hash=sha256:") + 64 for one in hashes)
    assert sum(len(pin.hashes) for pin in read_pins(path)) == len(hashes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_names_no_host(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not [word for word in ("://", "index-url", "find-links", "trusted-host", " @ ") if word in text]


@pytest.mark.parametrize(
    ("required", "problems"),
    [
        ("numpy>=2.0", []),
        ("PyJWT[crypto]>=2.10", []),
        ("numpy>=2.5", ["numpy>=2.5 is required, 2.4.6 and 2.5.4 is pinned"]),
        ("pyjwt<2", ["pyjwt<2 is required, 2.15.1 is pinned"]),
        ("orjson>=3", ["orjson>=3 is required, nothing is pinned"]),
    ],
)
def test_a_pin_outside_of_its_range_is_named(required: str, problems: list[str]) -> None:
    assert find_stale(PINS, [Requirement(required)]) == problems


@given(pinned=st.integers(0, 50), least=st.integers(0, 50))
def test_a_raised_range_makes_a_pin_stale(pinned: int, least: int) -> None:
    stale = find_stale([Pin("apsw", f"3.{pinned}", ())], [Requirement(f"apsw>=3.{least}")])
    assert bool(stale) == (pinned < least)


def test_extras_that_name_extras_are_followed() -> None:
    project = read_project()["project"]
    names = {one.name for one in list_requirements(project, RELEASED["service"])}
    assert {"apsw", "fastapi", "psycopg", "typer", "mcp", "fastembed"} <= names
    assert "waylore" not in names
    assert {one.name for one in list_requirements(project, [])} == {"apsw", "cachetools", "numpy", "PyStemmer"}
