"""Connections to a PostgreSQL server, in and outside of a pool, and the translation of its errors.

`IdleConnections` is for small reads and writes that must not wait: a pool would wait for a server that is down.
A call on a lost connection is repeated once, so each call must be safe to repeat.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from socket import SHUT_RDWR, socket
from threading import Lock, Timer
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from waylore.deadline import check_deadline, is_ending, limit_wait, wait_for, watch
from waylore.errors import (
    ArgumentError,
    ConfigError,
    DamagedStore,
    DeadlineExceeded,
    Forbidden,
    StoreError,
    StoreUnavailable,
)

IDLE = TransactionStatus.IDLE
MAX_RECONNECT_SECONDS = 1.0  # the pool doubles the delay between attempts; after this time it gives up
FIRST_PAUSE_SECONDS = 0.5  # before the pool tries again for waiting requests; doubles with every failure
MAX_PAUSE_SECONDS = 5.0
# psycopg gives the error of a failed connection no SQLSTATE, so the server's message in English decides.
REFUSALS = {
    "3D000": re.compile('database ".*" does not exist'),
    "28P01": re.compile("password authentication failed|no password supplied"),
    "28000": re.compile('role ".*" (does not exist|is not permitted to log in)|no pg_hba.conf entry'),
}
REMEDIES = {
    "3D000": "the database does not exist: create it with createdb {dbname}",
    "28P01": "the password is wrong or missing: correct user and password in the address",
    "28000": "the role may not connect: create it with createuser {user}, correct the user in the address, or "
    "allow it in pg_hba.conf",
}
ENCODING = "in a password write %40 for @, %2F for /, %3A for : and %25 for %"
NUMBERS = {int, float, type(None)}
IDS = re.compile("[0-9a-f]{32}(?:,[0-9a-f]{32})*")
Connection: TypeAlias = psycopg.Connection[Any]
T = TypeVar("T")


class IdleConnections:
    """Open connections for reuse, as many as are used at the same time.

    Connecting to a server that does not answer fails after `wait_seconds`.
    """

    def __init__(self, url: str, *, wait_seconds: int) -> None:
        self._url = url
        self._wait_seconds = wait_seconds
        self._idle: deque[Connection] = deque()
        self._is_closed = False

    def connect(self) -> Connection:
        """Open a new connection, which the caller closes. It prepares no statements, so it works through a pooler."""
        return connect(self._url, self._wait_seconds)

    def run_with_retry(self, verb: Callable[[Connection], T]) -> T:
        """Run a call and return its result. If the connection was lost, run it once again on another one.

        A server that has become read-only is no longer the primary, so a new connection may lead to another one.
        """
        try:
            with self._borrow() as db:
                return verb(db)
        except (psycopg.OperationalError, errors.ReadOnlySqlTransaction):
            if is_ending():
                raise
            self._drop_idle()
            with self._borrow() as db:
                return verb(db)

    def close(self) -> None:
        """Close every idle connection now, and those in use when they are returned."""
        self._is_closed = True
        self._drop_idle()

    @contextmanager
    def _borrow(self) -> Iterator[Connection]:
        """Yield an idle connection or a new one. It is reused if it is still open and idle afterwards."""
        db = self._pop_idle() or self.connect()
        try:
            with watch_connection(db):
                yield db
        finally:
            if self._is_closed or db.info.transaction_status != IDLE:
                db.close()
            else:
                self._idle.append(db)

    def _pop_idle(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread took the last one
            return None

    def _drop_idle(self) -> None:
        while db := self._pop_idle():
            db.close()


def connect(url: str, wait_seconds: float) -> Connection:
    """Open a connection outside of a pool, which prepares no statements.

    psycopg waits at least 2 seconds for a server that does not answer.
    """
    timeout = max(2, int(limit_wait(wait_seconds)))
    with wait_for("a connection to the database"):
        return psycopg.connect(url, autocommit=True, connect_timeout=timeout, prepare_threshold=None)


def is_pooled(db: Connection) -> bool:
    """Return whether a pooler such as PgBouncer is between us and the server.

    A pooler gives its clients its own numbers for cancelling, so the number of the backend differs. Behind a pooler,
    a prepared statement may be missing or different in the next transaction, and settings of the session are lost.
    """
    row = db.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] != db.info.backend_pid


def require_session(db: Connection, url: str) -> None:
    """Raise ConfigError if a pooler is in use, because it keeps neither settings nor locks of a session."""
    if is_pooled(db):
        raise ConfigError(
            f"{format_address(url)} is a pooler, and this work needs a session of its own: use the address of the "
            "server itself"
        )


def watch_connection(db: Connection) -> AbstractContextManager[None]:
    """End waits for the server within the block at the deadline. A server that hangs ignores its own timeouts."""
    return watch(partial(_shut_socket, db), "an answer of the database")


def _shut_socket(db: Connection) -> None:
    with suppress(psycopg.Error, OSError), socket(fileno=os.dup(db.pgconn.socket)) as opened:
        opened.shutdown(SHUT_RDWR)


def fetch_rows(db: Connection, statement: str, bound: Mapping[str, Any]) -> list[Any]:
    """Run a statement and return its rows; an empty list if it returns none."""
    cursor = db.execute(statement, bound)
    return cursor.fetchall() if cursor.description else []


def run_by_column(db: Connection, statement: str, collection: int, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement over rows, with an array for each column. In a pipeline it is not waited for."""
    check_deadline()
    if rows:
        db.execute(statement, (collection, *map(_make_array, zip(*rows, strict=True))))


def _make_array(column: tuple[Any, ...]) -> str | list[Any]:
    """Return a column of ids or numbers as the text of an array, because psycopg takes longer for a list."""
    kinds = set(map(type, column))
    if kinds <= NUMBERS:
        return f"{{{','.join('NULL' if value is None else str(value) for value in column)}}}"
    if kinds == {str} and IDS.fullmatch(joined := ",".join(column)):
        return f"{{{joined}}}"
    return list(column)


class LostConnection(psycopg.OperationalError):
    """The connection ended while it was in use."""


class ReadOnlyServer(LostConnection):
    """The server takes no writes: it is a replica, or was the primary until another server took over."""


class PoolExhausted(PoolTimeout):
    """All connections of the pool are in use."""


class ReconnectingPool(ConnectionPool[Connection]):
    """A pool that reconnects for waiting requests with growing pauses, and stops when no request waits.

    psycopg's pool gives up after MAX_RECONNECT_SECONDS and tries again only for a new request. Its statistics
    count requests that have timed out as waiting, so this class counts the waiting requests itself.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int,
        wait_seconds: float,
        configure: Callable[[Connection], None],
        prepare_threshold: int | None,
    ) -> None:
        self._requests = 0
        self._failures = 0  # since the last connection
        self._timer: Timer | None = None
        self._requests_lock = Lock()
        super().__init__(
            url,
            min_size=1,
            max_size=connections,
            timeout=wait_seconds,
            reconnect_timeout=MAX_RECONNECT_SECONDS,
            reconnect_failed=lambda _: self._reconnect_later(),
            kwargs={"autocommit": True, "prepare_threshold": prepare_threshold},
            configure=configure,
            open=True,
            name="waylore",
        )

    def getconn(self, timeout: float | None = None) -> Connection:
        """Take a connection out of the pool. Raise PoolExhausted if all of them are in use for too long."""
        with self._requests_lock:
            self._requests += 1
        try:
            db = super().getconn(limit_wait(self.timeout if timeout is None else timeout))
        except PoolTimeout as error:
            stats = self.get_stats()
            if stats["pool_size"] >= stats["pool_max"] and not stats["pool_available"]:
                raise PoolExhausted(str(error)) from None
            raise
        finally:
            with self._requests_lock:
                self._requests -= 1
        self._failures = 0
        return db

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[Connection]:
        """Borrow a connection. Waits for the server within the block end at the deadline."""
        db = self.getconn(timeout)
        with watch_connection(db):
            try:
                with db:  # rolls back uncommitted changes
                    yield db
            finally:
                self.putconn(db)

    def close(self, timeout: float = 5.0) -> None:
        """Close the pool and stop reconnecting."""
        with self._requests_lock:
            if self._timer is not None:
                self._timer.cancel()
        super().close(timeout)

    def _reconnect_later(self) -> None:
        with self._requests_lock:
            if self.closed or not self._requests or self._timer is not None:
                return
            pause = min(FIRST_PAUSE_SECONDS * 2.0**self._failures, MAX_PAUSE_SECONDS)
            self._failures += 1
            self._timer = Timer(pause, self._reconnect)
            self._timer.daemon = True
            self._timer.start()

    def _reconnect(self) -> None:
        with self._requests_lock:
            self._timer = None
            if self.closed or not self._requests:
                return
        self.check()


def format_address(url: str) -> str:
    """Return the address of a server, or of several in a row, without user and password."""
    try:
        known = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the PostgreSQL server"
    hosts, ports = (str(known.get(part, "")).split(",") for part in ("host", "port"))
    if len(ports) < len(hosts):  # one port for all
        ports *= len(hosts)
    servers = ",".join(f"{host or 'localhost'}:{port or 5432}" for host, port in zip(hosts, ports, strict=False))
    return f"{servers}/{known.get('dbname', '')}"


def may_reach_replica(url: str) -> bool:
    """Return whether an address has several servers and does not ask for the one that can be written."""
    known = conninfo_to_dict(url)
    is_asking = known.get("target_session_attrs") in ("read-write", "primary")
    return "," in str(known.get("host", "")) and not is_asking


def _explain_no_connection(url: str, error: PoolTimeout | PoolClosed) -> str:
    """Return why the pool had no connection: closed, server unreachable, all in use, or still connecting.

    The pool's own error does not say whether the server can be reached, so another connection is tried.
    """
    if isinstance(error, PoolClosed):
        return f"the store at {format_address(url)} is closed ({error}): open it again"
    if is_ending():
        return f"{format_address(url)} had no connection for us within the time limit ({error}): try again later"
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as reason:
        return _explain_refusal(url, reason) or (
            f"{format_address(url)} cannot be reached ({reason}; {error}): check the address and the server"
        )
    if not isinstance(error, PoolExhausted):
        return f"the store is still connecting to {format_address(url)} ({error}): try again in a moment"
    return (
        f"all connections to {format_address(url)} are in use ({error}): use fewer threads, or open the "
        "store with more connections or a longer wait_seconds"
    )


def _explain_refusal(url: str, error: psycopg.OperationalError) -> str:
    """Return why a server that can be reached refuses the connection; empty if it does not, or not in English."""
    state = error.sqlstate or next((code for code, each in REFUSALS.items() if each.search(str(error))), "")
    if state not in REMEDIES:
        return ""
    known = conninfo_to_dict(url)
    names = {"user": known.get("user", "NAME"), "dbname": known.get("dbname", known.get("user", "NAME"))}
    return f"{format_address(url)} refuses the connection ({error}), {REMEDIES[state].format(**names)}"


@cache
def check_address(url: str) -> None:
    """Raise ConfigError if the driver takes a part of the password for the host, the port or the database.

    It would name that part in its errors. The error here names no part of the address.
    """
    try:
        known = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ConfigError(f"the address of PostgreSQL cannot be read: {ENCODING}") from None
    parts = [str(known.get(name, "")) for name in ("host", "port", "dbname")]
    if any("@" in part and part in url for part in parts):
        raise ConfigError(f"the address of PostgreSQL has more than one @, or a / before it: {ENCODING}")


def _explain_cancelled(url: str, error: errors.QueryCanceled) -> StoreUnavailable | DeadlineExceeded:
    """Return the error for a cancelled statement: it took too long for the deadline, or the server cancelled it."""
    if is_ending():
        return DeadlineExceeded()
    return StoreUnavailable(
        f"{format_address(url)} cancelled a statement ({error}): try again, or raise its statement_timeout"
    )


def _explain_failure(url: str, error: psycopg.Error) -> StoreError:
    """Return the error for a statement that failed, DamagedStore if a page of the server is damaged."""
    if not isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
        return StoreError(f"{format_address(url)}: {error}")
    return DamagedStore(
        f"{format_address(url)} is damaged ({error}): run `waylore doctor --deep`, and restore a backup with "
        "`waylore restore` into an empty database"
    )


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Raise PostgreSQL's errors as Waylore's own, with the original error as the cause."""
    check_address(url)
    try:
        yield
    except (PoolTimeout, PoolClosed) as error:
        raise StoreUnavailable(_explain_no_connection(url, error)) from error
    except (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded) as error:
        raise StoreUnavailable(f"{format_address(url)} is out of space ({error}): nothing was written") from error
    except (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable) as error:
        raise StoreUnavailable(
            f"a concurrent write got in the way ({error}): nothing was written, try again"
        ) from error
    except errors.QueryCanceled as error:
        raise _explain_cancelled(url, error) from error
    except (errors.ReadOnlySqlTransaction, ReadOnlyServer) as error:
        raise StoreUnavailable(f"{format_address(url)} is read-only ({error}): connect to the primary") from error
    except errors.InsufficientPrivilege as error:
        raise Forbidden(
            f"{error}: connect as a member of waylore_app, and run `waylore migrate` once as the owner of the database"
        ) from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            _explain_refusal(url, error)
            or f"{format_address(url)} cannot be reached, or ended the connection ({error}): check the address "
            "and that the server runs; a write that was under way is complete or absent, and can be repeated"
        ) from error
    except (UnicodeEncodeError, psycopg.DataError) as error:
        raise ArgumentError(f"PostgreSQL cannot store this value ({error}): replace it") from error
    except psycopg.Error as error:
        raise _explain_failure(url, error) from error
