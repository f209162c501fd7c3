"""The registry on a PostgreSQL server, for a service of many processes.

It has its own schema, `waylore_service`, in the database of the store or of the catalogue of cells.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from waylore.deadline import commit_in_time
from waylore.service.registry.rows import RowsRegistry, RunStatement
from waylore.store.postgres.connections import Connection, IdleConnections, fetch_rows, translate_errors
from waylore.store.postgres.setup import migrate_schema
from waylore.store.sql import load_migrations, load_queries

REGISTRY = load_queries("waylore.service.registry", "postgres")
MIGRATIONS = load_migrations("waylore.service.registry", "postgres")


def _migrate(db: Connection) -> None:
    migrate_schema(db, REGISTRY, MIGRATIONS, schema="waylore_service")


def _run(db: Connection, statement: str, /, **bound: Any) -> list[Any]:
    return fetch_rows(db, REGISTRY[statement], bound)


def _change_keys(change: Callable[[RunStatement], None], db: Connection) -> None:
    """Run a change in one transaction, after all others."""
    with commit_in_time(), db.transaction():
        _run(db, "lock_keys")
        change(partial(_run, db))


def open_postgres(url: str, *, wait_seconds: int = 5) -> RowsRegistry:
    """Open the registry of a database, and create it if it does not exist."""
    connections = IdleConnections(url, wait_seconds=wait_seconds)

    def run(statement: str, **bound: Any) -> list[Any]:
        with translate_errors(url):
            return connections.run_with_retry(lambda db: _run(db, statement, **bound))

    def change_keys(change: Callable[[RunStatement], None]) -> None:
        with translate_errors(url):
            connections.run_with_retry(partial(_change_keys, change))

    try:
        with translate_errors(url):
            connections.run_with_retry(_migrate)
    except BaseException:
        connections.close()
        raise
    return RowsRegistry(run, change_keys, connections.close)
