"""PostgreSQL's errors in our words, each with what to do next. An address is told without its password."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolClosed, PoolTimeout

from waylore.errors import Forbidden, QueryError, StoreError, StoreUnavailable


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
