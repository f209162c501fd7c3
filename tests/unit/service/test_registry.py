"""The SQL of the registry: every statement is used, and both dialects define the same names."""

from types import ModuleType

import pytest

from unit.store.statements import asked_for
from waylore.service.registry import postgres, rows, sqlite
from waylore.store.postgres import setup as postgres_setup
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite import file as sqlite_file

POSTGRES_ONLY = {"lock_migrations", "lock_keys"}


@pytest.mark.parametrize(
    ("dialect", "modules"),
    [
        ("sqlite", [rows, sqlite, sqlite_file]),
        ("postgres", [rows, postgres, postgres_setup]),
    ],
)
def test_every_statement_is_used_and_every_name_exists(dialect: str, modules: list[ModuleType]) -> None:
    assert asked_for("REGISTRY", "_rows", *modules) == set(load_queries("waylore.service.registry", dialect))


def test_both_dialects_define_the_same_statements() -> None:
    assert (
        set(load_queries("waylore.service.registry", "sqlite"))
        ^ set(load_queries("waylore.service.registry", "postgres"))
        == POSTGRES_ONLY
    )


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.service.registry", dialect)]
    assert numbers == [*range(1, len(numbers) + 1)]
