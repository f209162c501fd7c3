"""A catalogue's SQL is in its file: every statement is used, and every name used is there."""

import ast
from pathlib import Path
from types import ModuleType

import pytest

from weft.store import catalogue_postgres, catalogue_sqlite, postgres_migrating
from weft.store.queries import migrations, queries


def asked_for(*modules: ModuleType) -> set[str]:
    """The names of statements that modules run, by either way to run one."""
    trees = [ast.parse(Path(str(module.__file__)).read_text("utf-8")) for module in modules]
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Subscript(value=ast.Name("CATALOGUE" | "sql"), slice=ast.Constant(str(name))):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr="_read"), args=[ast.Constant(str(name)), *_]):
                found.add(name)
    return found


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [("sqlite", [catalogue_sqlite]), ("postgres", [catalogue_postgres, postgres_migrating])],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for(*modules) == set(queries(dialect, "catalogue"))


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in migrations("postgres", "catalogue")]
    assert numbers == [*range(1, len(numbers) + 1)]
