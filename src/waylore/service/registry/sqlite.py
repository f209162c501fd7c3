"""A service's registry in a SQLite file, beside the knowledge: for a service on one machine."""

import threading
from pathlib import Path
from typing import Any

import apsw

from waylore.errors import SchemaOutdated
from waylore.service.registry.rows import RowsRegistry
from waylore.store.sql import load_queries
from waylore.store.sqlite.file import connect, set_up, wrapped_errors, writing

REGISTRY = load_queries("waylore.service.registry", "sqlite")
SCHEMA = 1


def open_sqlite(path: str | Path, *, busy_seconds: float = 60.0) -> RowsRegistry:
    """The registry of a file, made if there is none."""
    name, lock = str(path), threading.Lock()
    with wrapped_errors(name):
        db = connect(name, busy_seconds=busy_seconds)
        if not db.execute(REGISTRY["has_registry"]).get:
            set_up(db, busy_seconds)
            with writing(db):
                db.execute(REGISTRY["create"]).fetchall()
        _check_schema(db, name)

    def rows(statement: str, **bound: Any) -> list[Any]:
        with wrapped_errors(name), lock:
            return db.execute(REGISTRY[statement], bound).fetchall()

    return RowsRegistry(rows, db.close)


def _check_schema(db: apsw.Connection, path: str) -> None:
    schema = int(db.execute(REGISTRY["schema"]).get)
    if schema > SCHEMA:
        db.close()
        raise SchemaOutdated(
            f"the registry of {path} has schema {schema}, this Waylore knows {SCHEMA}: upgrade Waylore to open it"
        )
