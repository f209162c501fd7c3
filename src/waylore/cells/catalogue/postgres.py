"""The catalogue of cells on a PostgreSQL server, for cells that many machines and processes use.

The catalogue has its own schema, `waylore_cells`, and may share a database with a store. Every change first
updates the catalogue's one row, so changes run one after another. Readers never wait. If a connection is lost,
the call is repeated once on a new connection. This is safe because every call may run twice: a change applies
only if the row still has the expected version.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from waylore.cells.catalogue.protocol import (
    Cell,
    CollectionPlacement,
    bind_change,
    check_name,
    make_no_cell_error,
)
from waylore.errors import StoreUnavailable
from waylore.store.postgres.connections import (
    Connection,
    IdleConnections,
    format_address,
    require_session,
    translate_errors,
)
from waylore.store.postgres.setup import CARRY_ROLES, migrate_schema
from waylore.store.sql import load_migrations, load_queries

CATALOGUE = load_queries("waylore.cells.catalogue", "postgres")
MIGRATIONS = load_migrations("waylore.cells.catalogue", "postgres")
RENAMING = load_queries("waylore.cells.catalogue", "postgres", "legacy")
CARRY = (CARRY_ROLES, RENAMING["carry_grants"])
T = TypeVar("T")


def _migrate(db: Connection) -> None:
    migrate_schema(db, CATALOGUE, MIGRATIONS, schema="waylore_cells", carry=CARRY)


class PostgresCatalogue:
    """Cells and placements in a database. `wait_seconds` is the timeout for a connection."""

    def __init__(self, url: str, *, wait_seconds: int = 5) -> None:
        self._url = url
        self._connections = IdleConnections(url, wait_seconds=wait_seconds)
        try:
            self._retry(_migrate)
        except BaseException:
            self.close()
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
        bound = {"name": cell.name, "url": cell.url, "state": cell.state}
        self._change(lambda db: db.execute(CATALOGUE["set_cell"], bound))

    def record_bytes(self, cell: str, bytes_: int) -> None:
        """Record the size of a cell. The version does not grow."""
        bound = {"name": cell, "bytes": bytes_, "at": time.time()}
        self._retry(lambda db: db.execute(CATALOGUE["record_bytes"], bound))

    def choose_cell(self) -> str | None:
        """Return the active cell with the fewest bytes; None without an active cell."""
        return next((name for (name,) in self._read("lightest")), None)

    # -- placements ------------------------------------------------------------------------------------

    def list_collections(self, cell: str = "") -> tuple[str, ...]:
        """Return the names of all collections, or of the collections that are in a cell or move into or out of it."""
        return tuple(name for (name,) in self._read("names", cell=cell))

    def find_placements(self, collections: Sequence[str]) -> Mapping[str, CollectionPlacement]:
        """Return the placements of collections by name. Unknown collections are left out."""
        return {row[0]: CollectionPlacement(*row) for row in self._read("placed", names=list(collections))}

    def place(self, collection: str) -> CollectionPlacement:
        """Return the placement of a collection. Place a new one in the active cell with the fewest bytes."""
        known = self.find_placements([collection])
        if not known:
            self._change(lambda db: self._place(db, check_name(collection)))
            known = self.find_placements([collection])
        return known[collection]

    def change(self, before: CollectionPlacement, after: CollectionPlacement) -> CollectionPlacement | None:
        """Change a placement and return it. Return None if it changed since `before` was read."""
        bound = bind_change(before, after)
        row = self._change(lambda db: db.execute(CATALOGUE["change"], bound).fetchone())
        return None if row is None else CollectionPlacement(*row)

    @contextmanager
    def lock_moves(self) -> Iterator[None]:
        """Let one process move collections at a time, by an advisory lock that ends with its connection."""
        with self._name_errors():
            lock = self._connections.connect()
        with closing(lock):
            with self._name_errors():
                require_session(lock, self._url)
                [(is_ours,)] = lock.execute(CATALOGUE["try_moving"]).fetchall()
            if not is_ours:
                raise StoreUnavailable(
                    f"another process is moving a collection of {format_address(self._url)}; wait until it is done"
                )
            try:
                yield
            finally:
                with suppress(psycopg.OperationalError):
                    lock.execute(CATALOGUE["end_moving"])

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    # -- the server ------------------------------------------------------------------------------------

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        """Convert errors of the server. The message of an unavailable server names the catalogue."""
        try:
            with translate_errors(self._url):
                yield
        except StoreUnavailable as error:
            raise StoreUnavailable(f"the catalogue of cells: {error}") from error.__cause__

    def _read(self, query: str, **bound: Any) -> list[Any]:
        return self._retry(lambda db: db.execute(CATALOGUE[query], bound).fetchall())

    def _change(self, change: Callable[[Connection], T]) -> T:
        """Run a change in a transaction that excludes all other changes."""

        def change_alone(db: Connection) -> T:
            with db.transaction():
                db.execute(CATALOGUE["grow"])
                return change(db)

        return self._retry(change_alone)

    def _retry(self, call: Callable[[Connection], T]) -> T:
        """Run a call, and repeat it once on a new connection if the first connection was lost."""
        with self._name_errors():
            return self._connections.run_with_retry(call)

    def _place(self, db: Connection, collection: str) -> None:
        """Place a collection, unless another process has just placed it."""
        if not db.execute(CATALOGUE["placed"], {"names": [collection]}).fetchone():
            cell = db.execute(CATALOGUE["lightest"]).fetchone()
            if cell is None:
                raise make_no_cell_error(format_address(self._url), collection)
            db.execute(CATALOGUE["place"], {"name": collection, "cell": cell[0]})
