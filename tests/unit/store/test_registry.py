"""The registry's SQL is in its files: every statement is used, and both dialects have the same."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.store import postgres_migrating, registry_postgres, registry_rows, registry_sqlite
from waylore.store.queries import migrations, queries

OF_A_FILE = {"has_registry", "create", "schema"}
OF_A_SERVER = {
    "lock_migrations",
    "has_migrations",
    "create_migrations",
    "applied_migrations",
    "record_migration",
}


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [
        ("sqlite", [registry_rows, registry_sqlite]),
        ("postgres", [registry_rows, registry_postgres, postgres_migrating]),
    ],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("REGISTRY", "_rows", *modules) == set(queries(dialect, "registry"))


def test_both_dialects_have_the_same_but_for_a_reason() -> None:
    assert set(queries("sqlite", "registry")) ^ set(queries("postgres", "registry")) == OF_A_FILE | OF_A_SERVER


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in migrations("postgres", "registry")]
    assert numbers == [*range(1, len(numbers) + 1)]
