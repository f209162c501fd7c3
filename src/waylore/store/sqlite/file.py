"""Opening a SQLite file: its settings, its migrations, its collections, and its errors in our words."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw

from waylore.errors import QueryError, StoreError, StoreUnavailable
from waylore.store.sql import load_migrations, load_queries, migrate
from waylore.store.sqlite import pages
from waylore.store.sqlite.name_keys import fill_keys

SQL = load_queries("waylore.store.sqlite")
KEYS = 3  # the migration that brought the keys of names


def connect(path: str, *, busy_seconds: float) -> apsw.Connection:
    """A connection that waits its turn to write, and syncs what it commits."""
    db = apsw.Connection(path)
    db.set_busy_timeout(int(busy_seconds * 1000))
    # Without it SQLite (built with STAT4) plans a statement anew each time a value is bound: 0.4 ms a query.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(SQL["settings"]).fetchall()  # apsw runs no statement before the rows of the last are fetched
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.set_wal_hook(pages.checkpoint_when_long)
    return db


def prepare(db: apsw.Connection, *, busy_seconds: float) -> None:
    """Bring the file to the schema this Waylore speaks; costs one look if it is there already."""
    if _applied(db) == {number for number, _, _ in load_migrations("waylore.store.sqlite")}:
        return
    set_up(db, busy_seconds)
    with writing(db):
        db.execute(SQL["create_migrations"])
        applied = _applied(db)
        migrate(
            load_migrations("waylore.store.sqlite"),
            applied=applied,
            run=lambda sql: _run(db, sql),
            record=lambda number, name: _record(db, number, name),
        )
        if applied and KEYS not in applied:
            fill_keys(db)


def schema_of(path: str) -> int | None:
    """The schema of a file, without changing it: 0 for an empty one, None where it is somebody else's."""
    with wrapped_errors(path), closing(apsw.Connection(path, apsw.SQLITE_OPEN_READONLY)) as db:
        if not db.execute(SQL["count_tables"]).get:
            return 0
        return max(_applied(db), default=None)


def ensure_collection(db: apsw.Connection, name: str) -> int:
    """The row of a collection, made if there is none."""
    found = db.execute(SQL["collection_row"], {"name": name}).get
    if found is None:
        with writing(db):
            db.execute(SQL["ensure_collection"], {"name": name})
            found = db.execute(SQL["collection_row"], {"name": name}).get
    return int(found)


def set_up(db: apsw.Connection, busy_seconds: float) -> None:
    """Set what stays with a file. Turning WAL on does not wait its turn by itself, so we do."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            db.execute(SQL["file_settings"])
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def writing(db: apsw.Connection) -> Iterator[apsw.Connection]:
    """A transaction that has the write lock from its beginning: all of it happens, or nothing."""
    db.execute(SQL["begin"])
    try:
        yield db
        db.execute(SQL["commit"])
    except BaseException:
        if db.in_transaction:
            db.execute(SQL["rollback"])
        raise


@contextmanager
def wrapped_errors(path: str) -> Iterator[None]:
    """SQLite's errors as ours, once, with the cause kept."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreUnavailable(
            f"{path} is being written by another process for too long: try again, or raise busy_seconds"
        ) from error
    except (
        apsw.CantOpenError,
        apsw.NotADBError,
        apsw.ReadOnlyError,
        apsw.PermissionsError,
    ) as error:
        raise StoreUnavailable(
            f"{path} cannot be opened ({error}): check that its folder exists, that you may write "
            "there, and that it is a Waylore file"
        ) from error
    except apsw.IOError as error:
        raise StoreUnavailable(f"the disk of {path} fails ({error}): is it full?") from error
    except apsw.FullError as error:
        raise StoreUnavailable(f"the disk of {path} is full: nothing was written") from error
    except UnicodeEncodeError as error:
        raise QueryError(f"a text holds half of a character ({error}): replace it before adding") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from error


def _applied(db: apsw.Connection) -> set[int]:
    if not db.execute(SQL["has_migrations"]).get:
        return set()
    return {number for (number,) in db.execute(SQL["applied_migrations"])}


def _run(db: apsw.Connection, sql: str) -> None:
    db.execute(sql)


def _record(db: apsw.Connection, number: int, name: str) -> None:
    db.execute(SQL["record_migration"], (number, name, int(time.time() * 1e6)))
