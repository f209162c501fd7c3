"""Test that the old name is recognised in paths, settings, client entries and keys."""

from pathlib import Path
from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore import legacy
from waylore.cells.catalogue import postgres as catalogue
from waylore.service.keys import make_key, split_token
from waylore.store.postgres import setup
from waylore.store.sql import load_queries

UVX = {"command": "uvx", "args": ["--from", "weft[mcp]", "weft", "mcp"]}
MODULE = {"command": "/usr/bin/python3", "args": ["-m", "weft.surfaces.command", "mcp", "--read-only"]}
WINDOWS = {"command": "weft.exe", "args": ["mcp"]}


@pytest.mark.parametrize(
    ("package", "dialect", "module"),
    [
        ("waylore.store.postgres", "", setup),
        ("waylore.cells.catalogue", "postgres", catalogue),
    ],
)
def test_every_statement_is_used(package: str, dialect: str, module: ModuleType) -> None:
    assert asked_for("RENAMING", "", module) - set(load_queries(package, dialect)) == set(
        load_queries(package, dialect, "legacy")
    )


def test_every_schema_has_an_old_name() -> None:
    assert {new: new.replace("waylore", "weft") for new in legacy.SCHEMAS} == legacy.SCHEMAS


@pytest.mark.parametrize(
    ("existing", "found"),
    [(["a.weft"], "a.weft"), (["a.weft", "a.waylore"], None), ([], None), (["b.weft"], None)],
)
def test_old_path_is_found_if_only_it_exists(tmp_path: Path, existing: list[str], found: str | None) -> None:
    for name in existing:
        (tmp_path / name).touch()
    assert legacy.find_old_path(tmp_path / "a.waylore") == (tmp_path / found if found else None)
    assert legacy.find_old_path(tmp_path / "b.weft") is None


def test_variables_keep_their_case_and_files_must_exist(tmp_path: Path) -> None:
    (tmp_path / "weft").mkdir()
    (tmp_path / "weft" / "config.toml").touch()
    files = [tmp_path / "waylore" / "config.toml", tmp_path / "waylore.toml"]
    assert list(legacy.rename_settings(["HOME", "WEFT_STORE", "weft_store", "MY_WEFT_STORE"], files)) == [
        ("WEFT_STORE", "WAYLORE_STORE"),
        ("weft_store", "waylore_store"),
        (str(tmp_path / "weft" / "config.toml"), str(files[0])),
    ]


@pytest.mark.parametrize("entry", [UVX, MODULE, WINDOWS])
def test_entry_that_starts_the_old_name_is_ours(entry: dict[str, object]) -> None:
    assert legacy.is_client_entry("weft", entry)
    assert not legacy.is_client_entry("loom", entry)


@pytest.mark.parametrize("entry", [None, {}, {"command": "weft", "args": ["serve"]}, {"url": "http://weft/mcp"}])
def test_other_entry_of_the_old_name_is_not_ours(entry: object) -> None:
    assert not legacy.is_client_entry("weft", entry)


def test_keys_may_have_both_prefixes() -> None:
    key, token = make_key("a test")
    assert token.startswith("waylore_")
    secret = split_token(token)
    assert secret[0] == key.id
    assert split_token(token.replace("waylore_", "weft_", 1)) == secret
    assert split_token(token.removeprefix("waylore_")) == ("", "")
    assert split_token("weft_") == split_token("weft_id_") == ("", "")
