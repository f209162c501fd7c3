"""The SQL of jobs: every statement is used, and migrations are numbered without gaps."""

from unit.store.statements import asked_for
from waylore.service.jobs import postgres
from waylore.store.postgres import setup as postgres_setup
from waylore.store.sql import load_migrations, load_queries


def test_every_statement_is_used_and_every_name_exists() -> None:
    assert asked_for("JOBS", "_rows", postgres, postgres_setup) == set(load_queries("waylore.service.jobs", "postgres"))


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.service.jobs", "postgres")]
    assert numbers == [*range(1, len(numbers) + 1)]
