"""The registry in a SQLite file, next to the store, for a service on one machine."""

import threading
from pathlib import Path
from typing import Any

from waylore.service.registry.rows import RowsRegistry
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite.file import connect, migrate_file, translate_errors

REGISTRY = load_queries("waylore.service.registry", "sqlite")
MIGRATIONS = load_migrations("waylore.service.registry", "sqlite")


def open_sqlite(path: str | Path, *, busy_seconds: float = 60.0) -> RowsRegistry:
    """Open the registry of a file, and create it if it does not exist."""
    name, lock = str(path), threading.Lock()
    with translate_errors(name):
        db = connect(name, busy_seconds=busy_seconds)
        try:
            migrate_file(db, REGISTRY, MIGRATIONS, busy_seconds=busy_seconds)
        except BaseException:
            db.close()
            raise

    def run(statement: str, **bound: Any) -> list[Any]:
        with translate_errors(name), lock:
            return db.execute(REGISTRY[statement], bound).fetchall()

    return RowsRegistry(run, db.close)
