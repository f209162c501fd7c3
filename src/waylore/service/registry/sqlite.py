"""The registry in a SQLite file, next to the store, for a service on one machine.

Reads have a connection of their own: a write may wait long for another process that writes to the file.
"""

import threading
from pathlib import Path
from typing import Any

from waylore.service.registry.rows import RowsRegistry
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite.file import connect, migrate_file, translate_errors

REGISTRY = load_queries("waylore.service.registry", "sqlite")
MIGRATIONS = load_migrations("waylore.service.registry", "sqlite")
READS = frozenset({"secret", "keys", "key", "collections", "collection", "kept"})  # statements that never write


def open_sqlite(path: str | Path, *, busy_seconds: float = 60.0) -> RowsRegistry:
    """Open the registry of a file, and create it if it does not exist."""
    name = str(path)
    with translate_errors(name):
        writer = connect(name, busy_seconds=busy_seconds)
        try:
            migrate_file(writer, REGISTRY, MIGRATIONS, busy_seconds=busy_seconds)
            reader = connect(name, busy_seconds=busy_seconds)
        except BaseException:
            writer.close()
            raise
    locks = {reader: threading.Lock(), writer: threading.Lock()}

    def run(statement: str, **bound: Any) -> list[Any]:
        db = reader if statement in READS else writer
        with translate_errors(name), locks[db]:
            return db.execute(REGISTRY[statement], bound).fetchall()

    def close() -> None:
        reader.close()
        writer.close()

    return RowsRegistry(run, close)
