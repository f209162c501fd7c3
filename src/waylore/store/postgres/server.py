"""A PostgreSQL server: its pool of connections, its migrations, what we may do there, and its transactions.

All stores of one process that have the same address share one pool, however many collections they are views
of. The store connects as its address says, and brings the schema up to date if it may. Each transaction then
works as the role `waylore_app`, which owns nothing and bypasses no row-level security, and names its collection.
Where that role cannot be taken, we stay what we are, unless that is a role to which row-level security is
nothing: that is refused.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from psycopg_pool import ConnectionPool

from waylore.store import monitoring
from waylore.store.postgres import setup as textsearch
from waylore.store.postgres.connections import Connection, LostConnection
from waylore.store.postgres.setup import _before_migrating, _path, _role, migrated
from waylore.store.postgres.steps import SQL, Wanted
from waylore.store.sql import load_migrations

RECONNECT_SECONDS = 1.0  # then a try begins anew; otherwise each waits twice as long as the one before
T = TypeVar("T")


class HalvesLoader(Loader):
    """A half-precision vector as `codes.unhalved` reads it."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """The halves, which come after four bytes and in the order of the network, in this machine's order."""
        return np.frombuffer(data, ">f2", offset=4).astype(np.float16).tobytes()


@dataclass(frozen=True, slots=True)
class Server:
    """Where the collections are: a pool, and what every transaction says of itself first."""

    url: str
    pool: ConnectionPool
    configure: Callable[[Connection], None]
    path: str
    role: str
    has_textsearch: bool

    def connect(self) -> Connection:
        """A connection outside the pool, as what the address says."""
        db: Connection = psycopg.connect(self.url, autocommit=True)
        db.execute(SQL["search_path"], {"path": self.path})
        self.configure(db)
        return db

    def begin(self, db: Connection, how: str, collection: int) -> None:
        """The first statements of a transaction.

        Not psycopg's `transaction()`: within a pipeline that waits three times for the server.
        """
        db.execute(SQL[how])
        db.execute(SQL["settings"], {"path": self.path, "role": self.role, "collection": str(collection)})


# -- pools, one for each address -----------------------------------------------------------------------

_lent: dict[tuple[str, int, float], tuple[Server, int]] = {}
_lending = Lock()  # never held while a server is waited for: one that hangs must not hold up the others
_opening: defaultdict[tuple[str, int, float], Lock] = defaultdict(Lock)


def lend(url: str, *, connections: int, wait_seconds: float) -> Server:
    """The server of this address, made ready by whoever asks first."""
    key = (url, connections, wait_seconds)
    with _lending:
        opening = _opening[key]
    with opening:
        known = _lent_again(key)
        if known is None:
            known = _opened(url, connections, wait_seconds)
            with _lending:
                _lent[key] = (known, 1)
    return known


def _lent_again(key: tuple[str, int, float]) -> Server | None:
    with _lending:
        if key not in _lent:
            return None
        server, users = _lent[key]
        _lent[key] = (server, users + 1)
    return server


def give_back(server: Server) -> None:
    """Close the pool after the last of its users."""
    with _lending:
        key = next((key for key, (lent, _) in _lent.items() if lent is server), None)
        if key is None:
            return
        users = _lent[key][1] - 1
        if users:
            _lent[key] = (server, users)
        else:
            del _lent[key]
    if not users:
        server.pool.close()


def figures() -> dict[str, int]:
    """What all pools of this process have and did, added up, under psycopg_pool's names."""
    with _lending:
        pools = [server.pool for server, _ in _lent.values()]
    added: Counter[str] = Counter()
    for pool in pools:
        added.update(pool.get_stats())
    return dict(added)


monitoring.add_source(figures)


def _opened(url: str, connections: int, wait_seconds: float) -> Server:
    db: Connection
    with psycopg.connect(url, autocommit=True, connect_timeout=max(2, round(wait_seconds))) as db:
        migrated(db, SQL, load_migrations("waylore.store.postgres"), before=_before_migrating)
        path = _path(db)
        role = _role(db)
        has_textsearch = textsearch.prepared(db)
        halfvec = TypeInfo.fetch(db, f"{path.split(', ')[1]}.halfvec")
        assert halfvec is not None  # noqa: S101 (the extension brings it)

    def configure(db: Connection) -> None:
        register_halfvec_info(db, halfvec)
        db.adapters.register_loader(halfvec.oid, HalvesLoader)
        db.adapters.register_loader("uuid", ByteaBinaryLoader)  # an identity as 16 bytes, as SQLite gives it

    pool = ConnectionPool(
        url,
        min_size=1,
        max_size=connections,
        timeout=wait_seconds,
        reconnect_timeout=RECONNECT_SECONDS,
        reconnect_failed=_try_again,
        kwargs={"autocommit": True},
        configure=configure,
        open=True,
        name="waylore",
    )
    return Server(url, pool, configure, path, role, has_textsearch)


def _try_again(pool: ConnectionPool) -> None:
    """Begin anew for those who wait: the pool does so only when somebody comes."""
    if pool.get_stats().get("requests_waiting"):
        pool.check()


# -- transactions --------------------------------------------------------------------------------------


def trip(server: Server, collection: int, wanted: Sequence[Wanted]) -> list[list[Any]]:
    """The rows of several statements, of one snapshot of one collection, in one round trip."""
    with server.pool.connection() as db, _noticing_loss(db):
        with db.pipeline():
            server.begin(db, "begin_reading", collection)
            asked = _sent(db, wanted)
            db.execute(SQL["commit"])
        return _rows(asked)


@contextmanager
def reading(server: Server, collection: int) -> Iterator[Connection]:
    """One snapshot of one collection for any number of trips."""
    with server.pool.connection() as db, _noticing_loss(db), db.pipeline():
        server.begin(db, "begin_reading", collection)
        yield db
        db.execute(SQL["commit"])


def fetched(db: Connection, wanted: Sequence[Wanted]) -> list[list[Any]]:
    """The rows of several statements on a connection; within a pipeline in one round trip."""
    return _rows(_sent(db, wanted))


def _sent(db: Connection, wanted: Sequence[Wanted]) -> list[psycopg.Cursor[Any] | None]:
    return [db.execute(each.query, each.bound, binary=True) if each else None for each in wanted]


def _rows(asked: Sequence[psycopg.Cursor[Any] | None]) -> list[list[Any]]:
    return [found.fetchall() if found else [] for found in asked]


@contextmanager
def writing(server: Server, collection: int, *, lock: str = "lock") -> Iterator[Connection]:
    """A transaction of one collection that waits for those before it: all of it happens, or nothing.

    A connection that was lost before it began is replaced once.
    """
    began, db = once_more(server, lambda: _begun(server, collection, lock))
    with began:
        yield db
        db.execute(SQL["commit"])


def _begun(server: Server, collection: int, lock: str) -> tuple[ExitStack, Connection]:
    with ExitStack() as stack:
        db = stack.enter_context(server.pool.connection())  # what is not committed is rolled back when it goes
        stack.enter_context(_noticing_loss(db))
        stack.enter_context(db.pipeline())
        server.begin(db, "begin", collection)
        db.execute(SQL[lock], {"collection": collection}).fetchall()
        return stack.pop_all(), db


def once_more(server: Server, act: Callable[[], T]) -> T:
    """What something gives; it is done again on another connection, if the first was lost."""
    try:
        return act()
    except LostConnection:
        server.pool.check()
        return act()


@contextmanager
def _noticing_loss(db: Connection) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        if db.closed:
            raise LostConnection(str(error)) from error
        raise
