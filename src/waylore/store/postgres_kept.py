"""Connections to a PostgreSQL server that are kept, but not in a pool.

For what is small and must not wait: a pool would wait for a server that is down. A verb on a connection that
was lost is tried once more, so each must be such that it may be done twice.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

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
