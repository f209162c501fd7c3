"""A catalogue's SQL is in its file: every statement is used, and every name used is there."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.cells.catalogue import postgres, sqlite
from waylore.store.postgres import setup as postgres_migrating
from waylore.store.sql import load_migrations, load_queries


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [("sqlite", [sqlite]), ("postgres", [postgres, postgres_migrating])],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("CATALOGUE", "_read", *modules) == set(load_queries("waylore.cells.catalogue", dialect))


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.cells.catalogue", "postgres")]
    assert numbers == [*range(1, len(numbers) + 1)]
