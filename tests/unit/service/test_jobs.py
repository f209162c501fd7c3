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


def test_add_search_path_keeps_other_options() -> None:
    url = postgres.add_search_path("postgresql://me@host:1/db?options=-c%20work_mem%3D9MB&sslmode=require")
    assert "-c work_mem=9MB -c search_path=waylore_jobs" in url
    assert "sslmode=require" in url
