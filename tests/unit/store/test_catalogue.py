"""A catalogue's SQL is in its file: every statement is used, and every name used is there."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.store import catalogue_postgres, catalogue_sqlite, postgres_migrating
from waylore.store.queries import migrations, queries


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [("sqlite", [catalogue_sqlite]), ("postgres", [catalogue_postgres, postgres_migrating])],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("CATALOGUE", "_read", *modules) == set(queries(dialect, "catalogue"))


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in migrations("postgres", "catalogue")]
    assert numbers == [*range(1, len(numbers) + 1)]
