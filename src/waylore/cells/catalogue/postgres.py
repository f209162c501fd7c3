"""The catalogue of cells on a PostgreSQL server: for cells of many machines, and many processes that use them.

It has a schema of its own, `waylore_cells`, and may share a database with a store. Those who change something
queue at its one row; readers wait for nobody. A verb on a connection that was lost is tried once more
(`postgres_kept`): each may be done twice, for a change is made only if nobody made one since.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from waylore.cells.catalogue.protocol import Cell, Placed, changed, checked_name, no_active_cell
from waylore.errors import StoreUnavailable
from waylore.store.postgres.connections import Connection, KeptConnections, place, wrapped_errors
from waylore.store.postgres.setup import migrated
from waylore.store.sql import load_migrations, load_queries

CATALOGUE = load_queries("waylore.cells.catalogue", "postgres")
MIGRATIONS = load_migrations("waylore.cells.catalogue", "postgres")
T = TypeVar("T")


class PostgresCatalogue:
    """Cells and places in a database; a server that does not answer is given up after `wait_seconds`."""

    def __init__(self, url: str, *, wait_seconds: int = 5) -> None:
        self._url = url
        self._connections = KeptConnections(url, wait_seconds=wait_seconds)
        try:
            self._retried(lambda db: migrated(db, CATALOGUE, MIGRATIONS))
        except BaseException:
            self.close()
            raise

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
        bound = {"name": cell.name, "url": cell.url, "state": cell.state}
        self._changed(lambda db: db.execute(CATALOGUE["set_cell"], bound))

    # -- places ----------------------------------------------------------------------------------------

    def names(self, cell: str = "") -> tuple[str, ...]:
        """All collections, or those that live in a cell or are on their way into or out of it."""
        return tuple(name for (name,) in self._read("names", cell=cell))

    def placed(self, collections: Sequence[str]) -> Mapping[str, Placed]:
        """Where collections live; those that have no place yet are left out."""
        return {row[0]: Placed(*row) for row in self._read("placed", names=list(collections))}

    def place(self, collection: str) -> Placed:
        """Where a collection lives; a new one comes to the active cell that has the fewest."""
        known = self.placed([collection])
        if not known:
            self._changed(lambda db: self._place(db, checked_name(collection)))
            known = self.placed([collection])
        return known[collection]

    def change(self, before: Placed, after: Placed) -> Placed | None:
        """Change a place, unless somebody did since `before` was read."""
        bound = changed(before, after)
        row = self._changed(lambda db: db.execute(CATALOGUE["change"], bound).fetchone())
        return None if row is None else Placed(*row)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Held by one mover at a time: a lock of a connection, which ends with the process."""
        with self._named():
            lock = self._connections.connect()
        with closing(lock):
            with self._named():
                [(is_ours,)] = lock.execute(CATALOGUE["try_moving"]).fetchall()
            if not is_ours:
                raise StoreUnavailable(
                    f"somebody else is moving a collection of {place(self._url)}: wait until that is done"
                )
            try:
                yield
            finally:
                with suppress(psycopg.OperationalError):
                    lock.execute(CATALOGUE["end_moving"])

    def close(self) -> None:
        """Let go of every connection."""
        self._connections.close()

    # -- the server ------------------------------------------------------------------------------------

    @contextmanager
    def _named(self) -> Iterator[None]:
        """The server's errors as ours; one that is down is said to be the catalogue's."""
        try:
            with wrapped_errors(self._url):
                yield
        except StoreUnavailable as error:
            raise StoreUnavailable(f"the catalogue of cells: {error}") from error.__cause__

    def _read(self, query: str, **bound: Any) -> list[Any]:
        return self._retried(lambda db: db.execute(CATALOGUE[query], bound).fetchall())

    def _changed(self, change: Callable[[Connection], T]) -> T:
        """What a change gave, made in a transaction in which nobody else changes anything."""

        def alone(db: Connection) -> T:
            with db.transaction():
                db.execute(CATALOGUE["grow"])
                return change(db)

        return self._retried(alone)

    def _retried(self, verb: Callable[[Connection], T]) -> T:
        """What a verb gave; once more on another connection, if the first was lost."""
        with self._named():
            return self._connections.retried(verb)

    def _place(self, db: Connection, collection: str) -> None:
        """Place a collection, unless somebody else just did."""
        if not db.execute(CATALOGUE["placed"], {"names": [collection]}).fetchone():
            cell = db.execute(CATALOGUE["lightest"]).fetchone()
            if cell is None:
                raise no_active_cell(place(self._url), collection)
            db.execute(CATALOGUE["place"], {"name": collection, "cell": cell[0]})
