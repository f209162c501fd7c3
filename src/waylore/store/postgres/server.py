"""A PostgreSQL server: its pool of connections, and its transactions.

All stores of a process with the same URL share one pool for all collections. The store connects with the role of its
URL, and migrates the schema if that role may. Each transaction then takes the role `waylore_app`, which owns nothing
and does not bypass row-level security, and sets its collection. If the role cannot be taken, the transaction keeps the
role of the URL, unless that role bypasses row-level security, which is an error.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.string import ByteaBinaryLoader

from waylore.deadline import commit_in_time, get_deadline, is_ending
from waylore.store import monitoring
from waylore.store.postgres import setup
from waylore.store.postgres.connections import (
    Connection,
    LostConnection,
    ReadOnlyServer,
    ReconnectingPool,
    connect,
    is_pooled,
    require_session,
    watch_connection,
)
from waylore.store.postgres.steps import SQL, Wanted

PREPARE_THRESHOLD = 5  # runs of a statement on a connection before the server prepares it
T = TypeVar("T")


class CodeLoader(Loader):
    """Load the vector of a passage, whole numbers in half precision, in eight bits per dimension."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """Return the numbers without the header of four bytes."""
        return np.frombuffer(data, ">f2", offset=4).astype(np.int8).tobytes()


@dataclass(frozen=True, slots=True)
class Server:
    """A pool of connections, and the settings that every transaction begins with."""

    url: str
    pool: ReconnectingPool
    configure: Callable[[Connection], None]
    path: str
    role: str
    has_textsearch: bool

    def connect(self) -> Connection:
        """Open a connection outside of the pool, with the role of the URL. `begin` starts its transactions."""
        db = connect(self.url, self.pool.timeout)
        with watch_connection(db):
            self.configure(db)
        return db

    def connect_session(self) -> Connection:
        """Open a connection whose settings last for the session. Raise ConfigError if a pooler would lose them."""
        with ExitStack() as stack:
            db = stack.enter_context(closing(self.connect()))
            with watch_connection(db):
                require_session(db, self.url)
                db.execute(SQL["search_path"], {"path": self.path})
            stack.pop_all()
        return db

    def begin(self, db: Connection, how: str, collection: int) -> None:
        """Send the first statements of a transaction.

        This replaces psycopg's `transaction()`, which within a pipeline waits for the server three times.
        """
        db.execute(SQL[how])
        bound = {"path": self.path, "role": self.role, "collection": str(collection)}
        db.execute(SQL["settings"], {**bound, "milliseconds": _limit_statements()})


def _limit_statements() -> int | None:
    """Return how long a statement may take, a little less than a wait: then the server says so itself."""
    deadline = get_deadline()
    if deadline is None or deadline.statement_seconds == inf:
        return None
    return max(int(deadline.statement_seconds * 1000), 1)


# -- pools, one for each URL ---------------------------------------------------------------------------

_borrowed: dict[tuple[str, int, float], tuple[Server, int]] = {}
_borrowing = Lock()  # not held while waiting for a server, so that a server that hangs delays no other
_opening: defaultdict[tuple[str, int, float], Lock] = defaultdict(Lock)


def borrow_server(url: str, *, connections: int, wait_seconds: float) -> Server:
    """Return the server of a URL. The first caller opens it."""
    key = (url, connections, wait_seconds)
    with _borrowing:
        opening = _opening[key]
    with opening:
        known = _borrow_known(key)
        if known is None:
            known = _open_server(url, connections, wait_seconds)
            with _borrowing:
                _borrowed[key] = (known, 1)
    return known


def _borrow_known(key: tuple[str, int, float]) -> Server | None:
    with _borrowing:
        if key not in _borrowed:
            return None
        server, users = _borrowed[key]
        _borrowed[key] = (server, users + 1)
    return server


def release_server(server: Server) -> None:
    """Release a server, and close its pool after its last user."""
    with _borrowing:
        key = next((key for key, (borrowed, _) in _borrowed.items() if borrowed is server), None)
        if key is None:
            return
        users = _borrowed[key][1] - 1
        if users:
            _borrowed[key] = (server, users)
        else:
            del _borrowed[key]
    if not users:
        server.pool.close()


def read_figures() -> dict[str, int]:
    """Return the figures of all pools of this process, added up, under the names of psycopg_pool."""
    with _borrowing:
        pools = [server.pool for server, _ in _borrowed.values()]
    figures: Counter[str] = Counter()
    for pool in pools:
        figures.update(pool.get_stats())
    return dict(figures)


monitoring.add_source(read_figures)


def _open_server(url: str, connections: int, wait_seconds: float) -> Server:
    with connect(url, wait_seconds) as db, watch_connection(db):
        setup.migrate_store(db)
        path = setup.read_search_path(db)
        role = setup.choose_role(db)
        has_textsearch = setup.prepare_textsearch(db)
        prepare_threshold = None if is_pooled(db) else PREPARE_THRESHOLD
        configure = partial(register_loaders, halfvec=find_halfvec(db, path))
    pool = ReconnectingPool(
        url,
        connections=connections,
        wait_seconds=wait_seconds,
        configure=configure,
        prepare_threshold=prepare_threshold,
    )
    return Server(url, pool, configure, path, role, has_textsearch)


def find_halfvec(db: Connection, path: str) -> TypeInfo:
    """Find the type of vectors in the schema of pgvector, which is the second of the search path."""
    halfvec = TypeInfo.fetch(db, f"{path.split(', ')[1]}.halfvec")
    assert halfvec is not None  # noqa: S101 (the extension defines it)
    return halfvec


def register_loaders(db: Connection, halfvec: TypeInfo) -> None:
    """Let a connection return vectors in eight bits per dimension, and ids as 16 bytes, as SQLite returns them."""
    register_halfvec_info(db, halfvec)
    db.adapters.register_loader(halfvec.oid, CodeLoader)
    db.adapters.register_loader("uuid", ByteaBinaryLoader)


# -- transactions --------------------------------------------------------------------------------------


def run_trip(server: Server, collection: int, wanted: Sequence[Wanted]) -> list[list[Any]]:
    """Run statements in one transaction and one round trip, and return the rows of each."""
    with server.pool.connection() as db, _detect_loss(db):
        with db.pipeline():
            server.begin(db, "begin_reading", collection)
            cursors = _send(db, wanted)
            db.execute(SQL["commit"])
        return _fetch_all(cursors)


@contextmanager
def open_snapshot(server: Server, collection: int) -> Iterator[Connection]:
    """Open a read-only snapshot of one collection for any number of round trips."""
    with server.pool.connection() as db, _detect_loss(db), db.pipeline():
        server.begin(db, "begin_reading", collection)
        yield db
        db.execute(SQL["commit"])


def fetch_statements(db: Connection, wanted: Sequence[Wanted]) -> list[list[Any]]:
    """Run statements on a connection and return the rows of each, within a pipeline in one round trip."""
    return _fetch_all(_send(db, wanted))


def fetch_watched(db: Connection, wanted: Sequence[Wanted]) -> list[list[Any]]:
    """Run statements on a connection outside of the pool, and return the rows of each, within the deadline."""
    with watch_connection(db):
        return fetch_statements(db, wanted)


def _send(db: Connection, wanted: Sequence[Wanted]) -> list[psycopg.Cursor[Any] | None]:
    return [db.execute(one.query, one.bound, binary=True) if one else None for one in wanted]


def _fetch_all(cursors: Sequence[psycopg.Cursor[Any] | None]) -> list[list[Any]]:
    return [cursor.fetchall() if cursor else [] for cursor in cursors]


@contextmanager
def open_transaction(server: Server, collection: int, *, lock: str = "lock") -> Iterator[Connection]:
    """Open a transaction that has locked the collection for writing. It commits completely or not at all.

    If the connection was lost before the transaction began, another one is tried once.
    """
    stack, db = retry_if_lost(server, lambda: _begin(server, collection, lock))
    with ExitStack() as committing, stack:
        yield db
        committing.enter_context(commit_in_time())  # until the pipeline has sent COMMIT and got its answer
        db.execute(SQL["commit"])


def _begin(server: Server, collection: int, lock: str) -> tuple[ExitStack, Connection]:
    with ExitStack() as stack:
        db = stack.enter_context(server.pool.connection())  # rolls back on return if not committed
        stack.enter_context(_detect_loss(db))
        stack.enter_context(db.pipeline())
        server.begin(db, "begin", collection)
        [(*_, is_read_only)] = db.execute(SQL[lock], {"collection": collection}).fetchall()
        if is_read_only:
            raise ReadOnlyServer("another server may have become the primary")
        return stack.pop_all(), db


def retry_if_lost(server: Server, call: Callable[[], T]) -> T:
    """Call a function and return its result. If the connection was lost, call it once again on another one.

    If the server has become read-only, all of its connections are replaced: the address may lead to a new primary.
    """
    try:
        return call()
    except LostConnection as error:
        if is_ending():
            raise
        if isinstance(error, ReadOnlyServer):
            server.pool.drain()
        else:
            server.pool.check()
        return call()


@contextmanager
def _detect_loss(db: Connection) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        if db.closed:
            raise LostConnection(str(error)) from error
        raise
