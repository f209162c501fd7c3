"""Connections to a PostgreSQL server that are kept, but not in a pool.

For what is small and must not wait: a pool would wait for a server that is down. A verb on a connection that
was lost is tried once more, so each must be such that it may be done twice.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolClosed, PoolTimeout

from waylore.errors import Forbidden, QueryError, StoreError, StoreUnavailable

IDLE = TransactionStatus.IDLE
Connection: TypeAlias = psycopg.Connection[Any]
T = TypeVar("T")


class KeptConnections:
    """As many as are used at once; a server that does not answer is given up after `wait_seconds`."""

    def __init__(self, url: str, *, wait_seconds: int) -> None:
        self._url = url
        self._wait_seconds = wait_seconds
        self._idle: deque[Connection] = deque()
        self._is_closed = False

    def connect(self) -> Connection:
        """A new one, which is the caller's own."""
        return psycopg.connect(self._url, autocommit=True, connect_timeout=self._wait_seconds)

    def retried(self, verb: Callable[[Connection], T]) -> T:
        """What a verb gave; once more on another connection, if the first was lost."""
        try:
            with self._lent() as db:
                return verb(db)
        except psycopg.OperationalError:
            self._drop_idle()
            with self._lent() as db:
                return verb(db)

    def close(self) -> None:
        """Let go of every connection; those in use go when they come back."""
        self._is_closed = True
        self._drop_idle()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        """One that is idle, or a new one; it is kept if it is as it was."""
        db = self._taken() or self.connect()
        try:
            yield db
        finally:
            if self._is_closed or db.info.transaction_status != IDLE:
                db.close()
            else:
                self._idle.append(db)

    def _taken(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have had the last
            return None

    def _drop_idle(self) -> None:
        while db := self._taken():
            db.close()


def fetched(db: Connection, statement: str, bound: Mapping[str, Any]) -> list[Any]:
    """The rows of a statement; none, if it gives none."""
    done = db.execute(statement, bound)
    return done.fetchall() if done.description else []


Connection_server: TypeAlias = psycopg.Connection[Any]


class LostConnection(psycopg.OperationalError):
    """The server, or someone between, ended a connection that was in use."""


def place(url: str) -> str:
    """An address without user and password."""
    try:
        known = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the PostgreSQL server"
    return f"{known.get('host', 'localhost')}:{known.get('port', 5432)}/{known.get('dbname', '')}"


def _why_none_is_free(url: str, error: PoolTimeout | PoolClosed) -> str:
    """Whether all connections are in use or none can be made, which the pool does not tell: try one."""
    if isinstance(error, PoolClosed):
        return f"the store at {place(url)} is closed ({error}): open it again"
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as reason:
        return f"{place(url)} cannot be reached ({reason}; {error}): check the address and that it runs"
    return (
        f"all connections to {place(url)} are in use ({error}): ask from fewer threads, or open the store with "
        "more connections or a longer wait_seconds"
    )


@contextmanager
def wrapped_errors(url: str) -> Iterator[None]:
    """PostgreSQL's errors as ours, once, with the cause kept."""
    try:
        yield
    except (PoolTimeout, PoolClosed) as error:
        raise StoreUnavailable(_why_none_is_free(url, error)) from error
    except (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded) as error:
        raise StoreUnavailable(f"{place(url)} has no room left ({error}): nothing was written") from error
    except (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable) as error:
        raise StoreUnavailable(
            f"another write was in the way ({error}): nothing was written, try again"
        ) from error
    except errors.QueryCanceled as error:
        raise StoreUnavailable(
            f"{place(url)} gave up ({error}): try again, or raise its statement_timeout"
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreUnavailable(f"{place(url)} takes no writes ({error}): connect to the primary") from error
    except errors.InsufficientPrivilege as error:
        raise Forbidden(
            f"{error}: connect as a member of waylore_app, and once as the owner of the schema to migrate it"
        ) from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            f"{place(url)} cannot be reached, or ended the connection ({error}): check the address and that it "
            "runs; what was being written is there whole or not at all, and may be written again"
        ) from error
    except (UnicodeEncodeError, psycopg.DataError) as error:
        raise QueryError(f"PostgreSQL cannot hold this ({error}): replace what is named") from error
    except psycopg.Error as error:
        raise StoreError(f"{place(url)}: {error}") from error
