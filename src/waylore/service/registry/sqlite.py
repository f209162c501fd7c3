"""The registry in a SQLite file, next to the store, for a service on one machine."""

import threading
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from waylore.service.registry.rows import RowsRegistry
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
    translate_errors,
)

REGISTRY = load_queries("waylore.service.registry", "sqlite")
MIGRATIONS = load_migrations("waylore.service.registry", "sqlite")


def open_sqlite(path: str | Path, *, busy_seconds: float = 60.0) -> RowsRegistry:
    """Open the registry of a file, and create it if it does not exist. A file that may not be written can be read."""
    name = str(path)
    read_only = is_read_only(name)
    with translate_errors(name):
        db = connect(name, busy_seconds=busy_seconds, read_only=read_only)
        try:
            check_kind(db, STORE, CATALOGUE)
            migrate_file(db, REGISTRY, MIGRATIONS, busy_seconds=busy_seconds)
        except BaseException:
            db.close()
            raise
    if read_only:
        return RowsRegistry(partial(_read, name), db.close)
    return RowsRegistry(partial(_run, name, db, threading.Lock()), partial(_close, name, db))


def _run(path: str, db: apsw.Connection, lock: threading.Lock, statement: str, /, **bound: Any) -> list[Any]:
    with translate_errors(path), lock:
        return db.execute(REGISTRY[statement], bound).fetchall()


def _read(path: str, statement: str, /, **bound: Any) -> list[Any]:
    """Run a statement on a new connection, because an open one to a read-only file may miss changes."""
    with translate_errors(path), closing(open_to_read(path)) as db:
        try:
            return db.execute(REGISTRY[statement], bound).fetchall()
        except apsw.ReadOnlyError:
            check_writable(db)
            raise


def _close(path: str, db: apsw.Connection) -> None:
    """Close a connection, and copy the log to the file, so that the file can be read if it becomes read-only."""
    db.close()
    with suppress(apsw.Error):  # pages in the log are safe there
        pages.checkpoint(path)
