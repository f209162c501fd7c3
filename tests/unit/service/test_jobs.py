"""The SQL of jobs is in its files: every statement is used, and migrations are numbered without gaps."""

from unit.store.statements import asked_for
from waylore.service.jobs import postgres
from waylore.store.postgres import setup as postgres_migrating
from waylore.store.sql import load_migrations, load_queries


def test_every_statement_is_used_and_every_name_exists() -> None:
    assert asked_for("JOBS", "_rows", postgres, postgres_migrating) == set(
        load_queries("waylore.service.jobs", "postgres")
    )


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in load_migrations("waylore.service.jobs", "postgres")]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_the_address_keeps_what_it_had_and_names_our_schema() -> None:
    told = postgres.address("postgresql://me@host:1/db?options=-c%20work_mem%3D9MB&sslmode=require")
    assert "-c work_mem=9MB -c search_path=waylore_jobs" in told
    assert "sslmode=require" in told
