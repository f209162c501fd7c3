"""A service's registry on a PostgreSQL server: for a service of many processes.

It has a schema of its own, `waylore_service`, and shares a database with the store or the catalogue of cells.
"""

from typing import Any

from waylore.service.registry.rows import RowsRegistry
from waylore.store.postgres.connections import KeptConnections, fetched, wrapped_errors
from waylore.store.postgres.setup import migrated
from waylore.store.sql import load_migrations, load_queries

REGISTRY = load_queries("waylore.service.registry", "postgres")
MIGRATIONS = load_migrations("waylore.service.registry", "postgres")


def open_postgres(url: str, *, wait_seconds: int = 5) -> RowsRegistry:
    """The registry of a database, made if there is none."""
    connections = KeptConnections(url, wait_seconds=wait_seconds)

    def rows(statement: str, **bound: Any) -> list[Any]:
        with wrapped_errors(url):
            return connections.retried(lambda db: fetched(db, REGISTRY[statement], bound))

    try:
        with wrapped_errors(url):
            connections.retried(lambda db: migrated(db, REGISTRY, MIGRATIONS))
    except BaseException:
        connections.close()
        raise
    return RowsRegistry(rows, connections.close)
