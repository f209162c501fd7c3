"""The registry in a SQLite file, next to the store, for a service on one machine.

Reads have their own connection, because a write may wait long for another writing process.
"""

import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from waylore.deadline import limit_wait
from waylore.service.registry.rows import RowsRegistry, RunStatement
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite import pages
from waylore.store.sqlite.file import (
    CATALOGUE,
    STORE,
    check_kind,
    check_writable,
    connect,
    is_read_only,
    migrate_file,
    open_to_read,
    open_transaction,
    translate_errors,
)

REGISTRY = load_queries("waylore.service.registry", "sqlite")
MIGRATIONS = load_migrations("waylore.service.registry", "sqlite")
READS = frozenset(
    {"secret", "keys", "key", "collections", "collection", "kept", "audit"}
)  # statements that never write


def open_sqlite(path: str | Path, *, busy_seconds: float = 60.0) -> RowsRegistry:
    """Open the registry of a file, and create it if it does not exist. A read-only file can be read."""
    name = str(path)
    read_only = is_read_only(name)
    with translate_errors(name):
        writer = connect(name, busy_seconds=busy_seconds, read_only=read_only)
        try:
            check_kind(writer, STORE, CATALOGUE)
            migrate_file(writer, REGISTRY, MIGRATIONS, busy_seconds=busy_seconds)
            if read_only:
                return RowsRegistry(partial(_read, name), lambda _: check_writable(writer), writer.close)
            reader = connect(name, busy_seconds=busy_seconds)
        except BaseException:
            writer.close()
            raise
    locks = {reader: threading.Lock(), writer: threading.Lock()}

    def run(statement: str, **bound: Any) -> list[Any]:
        db = reader if statement in READS else writer
        with translate_errors(name), locks[db]:
            db.set_busy_timeout(int(limit_wait(busy_seconds) * 1000))
            return db.execute(REGISTRY[statement], bound).fetchall()

    def change_keys(change: Callable[[RunStatement], None]) -> None:
        with translate_errors(name), locks[writer], open_transaction(writer, busy_seconds=busy_seconds) as db:
            change(lambda statement, **bound: db.execute(REGISTRY[statement], bound).fetchall())

    return RowsRegistry(run, change_keys, partial(_close, name, reader, writer))


def _read(path: str, statement: str, /, **bound: Any) -> list[Any]:
    """Run a statement on a new connection, because an open one to a read-only file may miss changes."""
    with translate_errors(path), closing(open_to_read(path)) as db:
        try:
            return db.execute(REGISTRY[statement], bound).fetchall()
        except apsw.ReadOnlyError:
            check_writable(db)
            raise


def _close(path: str, *connections: apsw.Connection) -> None:
    """Close connections, and copy the log to the file, so that the file can be read if it becomes read-only."""
    for db in connections:
        db.close()
    with suppress(apsw.Error):  # pages in the log are safe there
        pages.checkpoint(path)
