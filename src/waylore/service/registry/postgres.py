"""The registry on a PostgreSQL server, for a service of many processes.

It has its own schema, `waylore_service`, in the database of the store or of the catalogue of cells.
"""

from typing import Any

from waylore.service.registry.rows import RowsRegistry
from waylore.store.postgres.connections import Connection, IdleConnections, fetch_rows, translate_errors
from waylore.store.postgres.setup import migrate_schema
from waylore.store.sql import load_migrations, load_queries

REGISTRY = load_queries("waylore.service.registry", "postgres")
MIGRATIONS = load_migrations("waylore.service.registry", "postgres")


def _migrate(db: Connection) -> None:
    migrate_schema(db, REGISTRY, MIGRATIONS, schema="waylore_service")


def open_postgres(url: str, *, wait_seconds: int = 5) -> RowsRegistry:
    """Open the registry of a database, and create it if it does not exist."""
    connections = IdleConnections(url, wait_seconds=wait_seconds)

    def run(statement: str, **bound: Any) -> list[Any]:
        with translate_errors(url):
            return connections.run_with_retry(lambda db: fetch_rows(db, REGISTRY[statement], bound))

    try:
        with translate_errors(url):
            connections.run_with_retry(_migrate)
    except BaseException:
        connections.close()
        raise
    return RowsRegistry(run, connections.close)
