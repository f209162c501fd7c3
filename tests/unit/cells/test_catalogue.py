"""The SQL of the catalogue: every statement is used, and every name that is used exists."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.cells.catalogue import postgres, sqlite
from waylore.store.postgres import setup as postgres_setup
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite import file as sqlite_file


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [("sqlite", [sqlite, sqlite_file]), ("postgres", [postgres, postgres_setup])],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("CATALOGUE", "_read", *modules) == set(load_queries("waylore.cells.catalogue", dialect))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.cells.catalogue", dialect)]
    assert numbers == [*range(1, len(numbers) + 1)]
