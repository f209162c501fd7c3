"""The catalogue of cells in a SQLite file: for cells on one machine, and for trying things out."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from waylore.cells.catalogue.protocol import Cell, Placed, changed, checked_name, no_active_cell
from waylore.errors import SchemaOutdated, StoreUnavailable
from waylore.store.sql import load_queries
from waylore.store.sqlite.file import wrapped_errors

CATALOGUE = load_queries("waylore.cells.catalogue", "sqlite")
SCHEMA = 1


class SqliteCatalogue:
    """Cells and places in a file; a second file beside it is locked by whoever moves a collection."""

    def __init__(self, path: str | Path, *, busy_seconds: float = 60.0) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        with wrapped_errors(self._path):
            self._db = apsw.Connection(self._path)
            self._db.set_busy_timeout(int(busy_seconds * 1000))
            self._db.execute(CATALOGUE["settings"])
            if not self._db.execute(CATALOGUE["has_catalogue"]).get:
                self._db.execute(CATALOGUE["file_settings"]).fetchall()
                with self._changing() as db:
                    db.execute(CATALOGUE["create"])
        self._check_schema()

    # -- cells -----------------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with every change."""
        [(version,)] = self._read("version")
        return int(version)

    def cells(self) -> Mapping[str, Cell]:
        """All cells by name."""
        return {name: Cell(name, url, state) for name, url, state in self._read("cells")}

    def set_cell(self, cell: Cell) -> None:
        """Add a cell, or change its state."""
        with self._changing() as db:
            db.execute(CATALOGUE["set_cell"], {"name": cell.name, "url": cell.url, "state": cell.state})
            db.execute(CATALOGUE["grow"])

    # -- places ------------------------------------------------------------------------------------

    def names(self, cell: str = "") -> tuple[str, ...]:
        """All collections, or those that live in a cell or are on their way into or out of it."""
        return tuple(name for (name,) in self._read("names", cell=cell))

    def placed(self, collections: Sequence[str]) -> Mapping[str, Placed]:
        """Where collections live; those that have no place yet are left out."""
        rows = self._read("placed", names=json.dumps(list(collections)))
        return {row[0]: Placed(*row) for row in rows}

    def place(self, collection: str) -> Placed:
        """Where a collection lives; a new one comes to the active cell that has the fewest."""
        known = self.placed([collection])
        if not known:
            self._place(checked_name(collection))
            known = self.placed([collection])
        return known[collection]

    def change(self, before: Placed, after: Placed) -> Placed | None:
        """Change a place, unless somebody did since `before` was read."""
        bound = changed(before, after)
        with self._changing() as db:
            db.execute(CATALOGUE["grow"])
            row = db.execute(CATALOGUE["change"], bound).fetchone()
        return None if row is None else Placed(*row)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Held by one mover at a time: a lock of the file system, which ends with the process."""
        with wrapped_errors(self._path):
            lock = apsw.Connection(f"{self._path}.moving")
        try:
            lock.execute(CATALOGUE["begin_alone"])
        except apsw.BusyError as error:
            lock.close()
            raise StoreUnavailable(
                f"somebody else is moving a collection of {self._path}: wait until that is done"
            ) from error
        try:
            yield
        finally:
            lock.close()

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._db.close()

    # -- the file --------------------------------------------------------------------------------------

    def _check_schema(self) -> None:
        [(schema,)] = self._read("schema")
        if schema > SCHEMA:
            self.close()
            raise SchemaOutdated(
                f"{self._path} has schema {schema}, this Waylore knows {SCHEMA}: upgrade Waylore to open it"
            )

    def _read(self, query: str, **bound: Any) -> list[Any]:
        with wrapped_errors(self._path), self._lock:
            return self._db.execute(CATALOGUE[query], bound).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[apsw.Connection]:
        with wrapped_errors(self._path), self._lock:
            self._db.execute(CATALOGUE["begin"])
            try:
                yield self._db
                self._db.execute(CATALOGUE["commit"])
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute(CATALOGUE["rollback"])
                raise

    def _place(self, collection: str) -> None:
        with self._changing() as db:
            cell = db.execute(CATALOGUE["lightest"]).get
            if cell is None:
                raise no_active_cell(self._path, collection)
            if db.execute(CATALOGUE["placed"], {"names": json.dumps([collection])}).get is None:
                db.execute(CATALOGUE["grow"])
                db.execute(CATALOGUE["place"], {"name": collection, "cell": cell})
