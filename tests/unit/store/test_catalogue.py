"""The catalogue's SQL is in its file: every statement is used, and every name used is there."""

import ast
from pathlib import Path

from weft.store import catalogue_sqlite
from weft.store.queries import queries

SOURCE = Path(catalogue_sqlite.__file__).read_text("utf-8")


def asked_for() -> set[str]:
    """The names of statements that the module runs, by either way to run one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(SOURCE)):
        match node:
            case ast.Subscript(value=ast.Name("CATALOGUE"), slice=ast.Constant(str(name))):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr="_read"), args=[ast.Constant(str(name)), *_]):
                found.add(name)
    return found


def test_every_statement_is_used_and_every_name_exists() -> None:
    assert asked_for() == set(queries("sqlite", "catalogue"))
