"""The catalogue of cells in a SQLite file, for cells that one machine can reach."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import apsw

from waylore.cells.catalogue.protocol import (
    Cell,
    CollectionPlacement,
    bind_change,
    check_name,
    make_no_cell_error,
)
from waylore.errors import StoreUnavailable
from waylore.store.sql import load_migrations, load_queries
from waylore.store.sqlite.file import CATALOGUE as KIND
from waylore.store.sqlite.file import (
    check_kind,
    is_read_only,
    migrate_file,
    open_file,
    open_to_read,
    open_transaction,
    translate_errors,
)

CATALOGUE = load_queries("waylore.cells.catalogue", "sqlite")
MIGRATIONS = load_migrations("waylore.cells.catalogue", "sqlite")


class SqliteCatalogue:
    """Cells and placements in a file, which is created if it does not exist.

    A process that moves a collection locks a second file beside it. A read-only file can be read.
    """

    def __init__(self, path: str | Path, *, busy_seconds: float = 60.0) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._is_read_only = is_read_only(self._path)
        with translate_errors(self._path):
            self._db = open_to_read(self._path) if self._is_read_only else open_file(self._path)
            self._db.set_busy_timeout(int(busy_seconds * 1000))
            self._db.execute(CATALOGUE["settings"])
            try:
                check_kind(self._db, KIND)
                migrate_file(self._db, CATALOGUE, MIGRATIONS, busy_seconds=busy_seconds, finish=self._mark)
            except BaseException:
                self._db.close()
                raise

    # -- cells -----------------------------------------------------------------------------------------

    def version(self) -> int:
        """Return a number that grows with every change."""
        [(version,)] = self._read("version")
        return int(version)

    def get_cells(self) -> Mapping[str, Cell]:
        """Return all cells by name."""
        return {row[0]: Cell(*row) for row in self._read("cells")}

    def set_cell(self, cell: Cell) -> None:
        """Add a cell, or change its state."""
        with self._change() as db:
            db.execute(CATALOGUE["set_cell"], {"name": cell.name, "url": cell.url, "state": cell.state})
            db.execute(CATALOGUE["grow"])

    def record_bytes(self, cell: str, bytes_: int) -> None:
        """Record the size of a cell. The version does not grow."""
        with self._change() as db:
            db.execute(CATALOGUE["record_bytes"], {"name": cell, "bytes": bytes_, "at": time.time()})

    def choose_cell(self) -> str | None:
        """Return the active cell with the fewest bytes; None without an active cell."""
        return next((name for (name,) in self._read("lightest")), None)

    # -- placements ------------------------------------------------------------------------------------

    def list_collections(self, cell: str = "") -> tuple[str, ...]:
        """Return the names of all collections, or of the collections that are in a cell or move into or out of it."""
        return tuple(name for (name,) in self._read("names", cell=cell))

    def find_placements(self, collections: Sequence[str]) -> Mapping[str, CollectionPlacement]:
        """Return the placements of collections by name. Unknown collections are left out."""
        rows = self._read("placed", names=json.dumps(list(collections)))
        return {row[0]: CollectionPlacement(*row) for row in rows}

    def place(self, collection: str) -> CollectionPlacement:
        """Return the placement of a collection. Place a new one in the active cell with the fewest bytes."""
        known = self.find_placements([collection])
        if not known:
            self._place(check_name(collection))
            known = self.find_placements([collection])
        return known[collection]

    def change(self, before: CollectionPlacement, after: CollectionPlacement) -> CollectionPlacement | None:
        """Change a placement and return it. Return None if it changed since `before` was read."""
        bound = bind_change(before, after)
        with self._change() as db:
            db.execute(CATALOGUE["grow"])
            row = db.execute(CATALOGUE["change"], bound).fetchone()
        return None if row is None else CollectionPlacement(*row)

    @contextmanager
    def lock_moves(self) -> Iterator[None]:
        """Let one process move collections at a time, by a file lock that ends with the process."""
        with translate_errors(self._path):
            lock = open_file(f"{self._path}.moving")
        try:
            lock.execute(CATALOGUE["begin_alone"])
        except apsw.BusyError as error:
            lock.close()
            raise StoreUnavailable(
                f"another process is moving a collection of {self._path}; wait until it is done"
            ) from error
        try:
            yield
        finally:
            lock.close()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._db.close()

    # -- the file --------------------------------------------------------------------------------------

    def _mark(self, _: object) -> None:
        self._db.pragma("application_id", KIND)

    def _read(self, query: str, **bound: Any) -> list[Any]:
        with translate_errors(self._path), self._lock, self._open_reader() as db:
            return db.execute(CATALOGUE[query], bound).fetchall()

    def _open_reader(self) -> AbstractContextManager[apsw.Connection]:
        """Return a connection to read with: a new one if the file is read-only, as an open one may miss changes."""
        return closing(open_to_read(self._path)) if self._is_read_only else nullcontext(self._db)

    @contextmanager
    def _change(self) -> Iterator[apsw.Connection]:
        """Run the block in a transaction that excludes other writers."""
        with translate_errors(self._path), self._lock, open_transaction(self._db) as db:
            yield db

    def _place(self, collection: str) -> None:
        """Place a collection, unless another process has just placed it."""
        with self._change() as db:
            cell = db.execute(CATALOGUE["lightest"]).get
            if cell is None:
                raise make_no_cell_error(self._path, collection)
            if db.execute(CATALOGUE["placed"], {"names": json.dumps([collection])}).get is None:
                db.execute(CATALOGUE["grow"])
                db.execute(CATALOGUE["place"], {"name": collection, "cell": cell})
