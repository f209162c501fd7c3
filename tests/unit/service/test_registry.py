"""The registry's SQL is in its files: every statement is used, and both dialects have the same."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.service.registry import postgres, rows, sqlite
from waylore.store.postgres import setup as postgres_migrating
from waylore.store.sql import load_migrations, load_queries

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
        ("sqlite", [rows, sqlite]),
        ("postgres", [rows, postgres, postgres_migrating]),
    ],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("REGISTRY", "_rows", *modules) == set(load_queries("waylore.service.registry", dialect))


def test_both_dialects_have_the_same_but_for_a_reason() -> None:
    assert (
        set(load_queries("waylore.service.registry", "sqlite"))
        ^ set(load_queries("waylore.service.registry", "postgres"))
        == OF_A_FILE | OF_A_SERVER
    )


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.service.registry", "postgres")]
    assert numbers == [*range(1, len(numbers) + 1)]
