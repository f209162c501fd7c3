"""Open a SQLite file: its settings, its migrations, its collections, and the translation of its errors.

A file that may not be written is opened for reading. This module reads and writes no documents.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import apsw

from waylore.deadline import commit_in_time, is_ending, is_over, limit_wait
from waylore.errors import (
    ArgumentError,
    ConfigError,
    DamagedStore,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    SchemaOutdated,
    StoreError,
    StoreUnavailable,
)
from waylore.plugins import import_later
from waylore.store.sql import NOTHING_TO_FILL, Migration, is_current, load_migrations, load_queries, migrate
from waylore.store.sqlite import pages
from waylore.store.sqlite.name_keys import fill_keys
from waylore.store.sqlite.vfs import open_database, reserve_checksums, use_checksums
from waylore.system import create_private

SQL = load_queries("waylore.store.sqlite")
STORE, CATALOGUE = 0x57617953, 0x57617943  # application ids of files: "WayS" and "WayC" in ASCII
UNDECIDED, FOREIGN = 0, -1  # a file that may become a store or a catalogue, and a file of another program
# A file from before application ids is known by a table. A registry may come before a store or a catalogue.
KINDS_BY_TABLE = {"passages": STORE, "catalogue": CATALOGUE, "registry": UNDECIDED}
CHECK_STEPS = 20_000  # of SQLite's virtual machine between two looks at the deadline, about a millisecond
MAX_REWRITTEN_BYTES = 1_000_000_000  # of a file that gets its checksums when it is opened
CHECKSUM_COLUMN = 3  # index of the checksum in a row of migrations; older rows end before it

Stamp = tuple[int, ...]


# Functions that fill the tables of a migration, by its number.
FILL = {
    3: fill_keys,
    8: import_later("waylore.store.earlier.sqlite", "carry_over"),
    10: import_later("waylore.store.earlier.sqlite_vectors", "convert_vectors"),
    11: import_later("waylore.store.sqlite.index", "fill_series"),
}


def connect(path: str, *, busy_seconds: float, read_only: bool = False) -> apsw.Connection:
    """Open a connection that waits for other writers and syncs each commit, or one that can only read."""
    db = open_to_read(path) if read_only else open_file(path)
    db.set_busy_timeout(int(busy_seconds * 1000))
    db.set_progress_handler(is_over, CHECK_STEPS)  # runs in the thread of the statement, and so in its context
    # Without QPSG, SQLite (built with STAT4) plans a statement again for each bound value: 0.4 ms a query.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(SQL["settings"]).fetchall()  # apsw runs the next statement only after these rows are fetched
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.set_wal_hook(pages.checkpoint_when_long)
    return db


def open_file(path: str) -> apsw.Connection:
    """Open a file for reading and writing. A new one, and its log, can be read by its owner alone."""
    create_private(path)
    return open_database(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)


def prepare(db: apsw.Connection, *, busy_seconds: float) -> None:
    """Bring the tables of a store in this file up to date; change nothing if they are."""
    check_kind(db, STORE)
    pages.check_log(db)

    def finish(_: object) -> None:
        db.pragma("application_id", STORE)

    steps = load_migrations("waylore.store.sqlite")
    migrate_file(db, SQL, steps, busy_seconds=busy_seconds, fill=FILL, finish=finish)


def migrate_file(
    db: apsw.Connection,
    sql: Mapping[str, str],
    migrations: Sequence[Migration],
    *,
    busy_seconds: float,
    fill: Mapping[int, Callable[[apsw.Connection], object]] = NOTHING_TO_FILL,
    finish: Callable[[Mapping[int, str]], None] = lambda _: None,
) -> None:
    """Apply the migrations that a file lacks, in one transaction, and add its checksums if it has none.

    `sql` names the table in which the migrations are recorded, because a store, a registry and a catalogue may
    share a file. `fill` has functions that run after a migration, by its number. `finish` gets the migrations that
    were applied before.
    """
    applied = _read_applied(db, sql)
    if not is_current(migrations, applied):
        if db.readonly("main"):
            _refuse_to_migrate(db, migrations, applied)
        configure_file(db, busy_seconds)
        _apply(db, sql, migrations, fill, finish)
    if db.readonly("main"):
        return
    if db.pragma("page_count") * db.pragma("page_size") <= MAX_REWRITTEN_BYTES:
        pages.add_checksums(db, busy_seconds=busy_seconds)
    use_checksums(db)


def _apply(
    db: apsw.Connection,
    sql: Mapping[str, str],
    migrations: Sequence[Migration],
    fill: Mapping[int, Callable[[apsw.Connection], object]],
    finish: Callable[[Mapping[int, str]], None],
) -> None:
    with open_transaction(db):
        db.execute(sql["create_migrations"])
        if db.execute(sql["has_migrations"]).get <= CHECKSUM_COLUMN:
            db.execute(SQL["add_checksum"])  # only the table of a store can be from before checksums
        applied = _read_applied(db, sql)
        migrate(
            migrations,
            applied=applied,
            run=lambda statements: _run(db, statements),
            record=lambda migration: _record(db, sql, migration),
            fill={number: partial(function, db) for number, function in fill.items()},
        )
        finish(applied)


def read_schema(path: str) -> int | None:
    """Return the schema of a store without changing its file: 0 if it is empty, None if it is not of Waylore."""
    with translate_errors(path), closing(open_to_read(path)) as db:
        return _read_schema(db)


def list_collections(path: str) -> list[tuple[str, int, int]]:
    """Return the collections in a file by name, each with the number of its documents and passages.

    A file of an earlier layout is not changed, and has none until it is opened.
    """
    with translate_errors(path), closing(open_to_read(path)) as db:
        found: list[Any] = db.execute(SQL["collections"]).fetchall() if _read_schema(db) else []
        return found


def _read_schema(db: apsw.Connection) -> int | None:
    if _identify(db) == FOREIGN:
        return None
    check_kind(db, STORE)
    return max(_read_applied(db, SQL), default=0)


def ensure_collection(db: apsw.Connection, name: str) -> int:
    """Return the row of a collection, and create it if it does not exist."""
    found = db.execute(SQL["collection_row"], {"name": name}).get
    if found is None and db.readonly("main"):
        raise NotFound(
            f"{db.filename} has no collection {name!r}, and none can be created, because the file is read-only: "
            "name another collection, or make the file and its folder writable"
        )
    if found is None:
        with open_transaction(db):
            db.execute(SQL["ensure_collection"], {"name": name})
            found = db.execute(SQL["collection_row"], {"name": name}).get
    return int(found)


def configure_file(db: apsw.Connection, busy_seconds: float) -> None:
    """Set the properties of a new file. Turning WAL on does not wait for other writers, so wait here."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            with nullcontext() if db.pragma("page_count") else reserve_checksums(db):
                db.execute(SQL["file_settings"])
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def open_transaction(db: apsw.Connection, *, busy_seconds: float | None = None) -> Iterator[apsw.Connection]:
    """Open a transaction that has the write lock from the beginning. It commits completely or not at all.

    busy_seconds: how long it waits for another writer if the deadline allows; None for what `connect` got.
    """
    check_writable(db)
    if busy_seconds is not None:
        db.set_busy_timeout(int(limit_wait(busy_seconds) * 1000))
    db.execute(SQL["begin"])
    try:
        yield db
        with commit_in_time():
            db.execute(SQL["commit"])
    except BaseException:
        if db.in_transaction:
            db.execute(SQL["rollback"])
        raise


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Raise SQLite's errors as Waylore's own, with the original error as the cause."""
    try:
        yield
    except apsw.InterruptError as error:
        raise DeadlineExceeded from error
    except (apsw.BusyError, apsw.LockedError) as error:
        if is_ending():
            raise DeadlineExceeded(
                f"{path} is locked by another process that writes, and the time limit passed: nothing was "
                "changed, try again later"
            ) from error
        raise StoreUnavailable(
            f"{path} is locked by another process that writes: try again, or raise busy_seconds"
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
    except apsw.CorruptError as error:
        raise DamagedStore(
            f"{path} is damaged ({error}): restore a backup with `waylore restore`, or save the documents that are "
            "whole with `waylore doctor --repair NEW`"
        ) from error
    except apsw.IOError as error:
        raise StoreUnavailable(
            f"the disk of {path} fails ({error}): check that it is healthy and has free space"
        ) from error
    except apsw.FullError as error:
        raise StoreUnavailable(f"the disk of {path} is full: nothing was written") from error
    except UnicodeEncodeError as error:
        raise ArgumentError(f"a text has an incomplete character ({error}): replace it before adding") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from error


# -- kinds of files ------------------------------------------------------------------------------------


def check_kind(db: apsw.Connection, *wanted: int) -> None:
    """Raise ConfigError if a file is certainly of another kind."""
    name, kind = db.filename, _identify(db)
    if kind in (UNDECIDED, *wanted):
        return
    if kind == CATALOGUE:
        raise ConfigError(f"{name} is a catalogue of cells, not a store: open it as cells+sqlite:///{name}")
    if kind == STORE:
        remedy = "open it without cells+, or name another file for the catalogue"
        raise ConfigError(f"{name} is a store, not a catalogue of cells: {remedy}")
    raise ConfigError(f"{name} is a database of another program: name another file")


def require_catalogue(path: str) -> None:
    """Raise NotFound if a file does not exist or is empty, because only `waylore cells add` creates a catalogue."""
    with translate_errors(path):
        if Path(path).exists():
            with closing(open_to_read(path)) as db:
                if _identify(db) != UNDECIDED:
                    return
    raise NotFound(f"no catalogue of cells at {path}; create one with `waylore cells add NAME URL --catalogue {path}`")


def _identify(db: apsw.Connection) -> int:
    """Return the kind of a file: by its application id, or else by its tables."""
    with db:  # one snapshot, because another process may create the tables now
        if kind := db.pragma("application_id"):
            return kind if kind in (STORE, CATALOGUE) else FOREIGN
        tables = {name for (name,) in db.execute(SQL["schema_names"])}
    return next((kind for table, kind in KINDS_BY_TABLE.items() if table in tables), FOREIGN if tables else UNDECIDED)


# -- files that may not be written ---------------------------------------------------------------------


def is_read_only(path: str) -> bool:
    """Return whether a file exists and may not be written, or its log may not be created beside it."""
    file = Path(path).resolve()
    if not file.exists():
        return False
    return not (_may_write(file) and (_may_write(file.parent) or _may_write(Path(f"{file}-wal"))))


def check_writable(db: apsw.Connection) -> None:
    """Raise Forbidden if a connection can only read."""
    if db.readonly("main"):
        raise Forbidden(
            f"{db.filename} is read-only, nothing was written: make the file and its folder writable, "
            f"or copy it with `cp {quote(db.filename)} elsewhere` and open the copy"
        )


def read_stamp(path: str) -> Stamp:
    """Return numbers that change when another process writes to a file or opens it for writing."""
    with translate_errors(path):
        try:
            status = Path(path).stat()
        except OSError as error:
            raise apsw.CantOpenError(str(error)) from error
    return (status.st_ino, status.st_size, status.st_mtime_ns, _has_log(path))


def open_to_read(path: str) -> apsw.Connection:
    """Open a file for reading.

    SQLite reads a file with a log only if it may create or read the log's index. A file without a log is opened
    as immutable if it is read-only: this creates no file, and takes no locks, so a later writer is not noticed.
    """
    if _has_log(path) or not is_read_only(path):
        return open_database(path, apsw.SQLITE_OPEN_READONLY)
    uri = f"{Path(path).resolve().as_uri()}?immutable=1"
    return open_database(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _has_log(path: str) -> bool:
    """Return whether a file has changes in its log, or another process has it open."""
    return pages.measure_log(path) > 0 or Path(f"{os.path.realpath(path)}-shm").exists()


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _refuse_to_migrate(db: apsw.Connection, migrations: Sequence[Migration], applied: Mapping[int, str]) -> None:
    """Raise SchemaOutdated for a read-only file, because its tables cannot be brought up to date."""
    if not applied:
        raise StoreUnavailable(
            f"{db.filename} is read-only and has no tables for this: make the file and its folder writable"
        )

    def refuse(_: object) -> None:
        raise SchemaOutdated(
            f"{db.filename} is read-only and has schema {max(applied)}, which must be upgraded to "
            f"{migrations[-1].number}: copy it with `cp {quote(db.filename)} elsewhere` and open the copy"
        )

    migrate(migrations, applied=applied, run=refuse, record=refuse)


# -- tables --------------------------------------------------------------------------------------------


def _read_applied(db: apsw.Connection, sql: Mapping[str, str]) -> dict[int, str]:
    """Return the checksum of each applied migration, empty if none was recorded."""
    if not db.execute(sql["has_migrations"]).get:
        return {}
    rows: list[Any] = db.execute(sql["applied_migrations"]).fetchall()
    return {row[0]: row[CHECKSUM_COLUMN] if len(row) > CHECKSUM_COLUMN else "" for row in rows}


def _run(db: apsw.Connection, sql: str) -> None:
    db.execute(sql)


def _record(db: apsw.Connection, sql: Mapping[str, str], migration: Migration) -> None:
    moment = int(time.time() * 1e6)
    db.execute(sql["record_migration"], (migration.number, migration.name, moment, migration.checksum))
