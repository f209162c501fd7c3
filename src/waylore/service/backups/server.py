"""Copy the rows of a PostgreSQL database into a backup and back.

A backup is one snapshot of all schemas of Waylore in the database: the store, the registry, the jobs and the catalogue
of cells, as far as they exist. Readers and writers need not wait. It is read as the role `waylore_backup`, which sees
the rows of all collections. A restore is one transaction, so an interrupted restore leaves nothing behind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg import sql

from waylore import legacy
from waylore.errors import ConfigError, DamagedStore, Forbidden, NotFound, SchemaOutdated, StoreUnavailable
from waylore.service.backups.manifest import (
    SCHEMAS,
    Manifest,
    Progress,
    SavedCollection,
    check_parts,
    compare_collections,
    find_newest,
    list_migrations,
    make_manifest,
    summarise,
)
from waylore.service.integrity import compare_digests
from waylore.service.spool import sync_file
from waylore.store.postgres.connections import Connection, connect, format_address, translate_errors
from waylore.store.postgres.fetch import read_export_page
from waylore.store.postgres.scope import compute_key, read_collection, run_by_ids
from waylore.store.postgres.server import fetch_statements, find_halfvec, register_loaders
from waylore.store.postgres.setup import FILL, migrate_schema, prepare_database, read_applied, read_search_path
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.postgres.vector_indexes import list_own_tables
from waylore.store.reads import drive
from waylore.store.rows import group_pairs
from waylore.store.sql import NOTHING_TO_FILL, load_queries
from waylore.system import open_private
from waylore.types.knowledge import IndexedDocument

SQL = load_queries("waylore.service.backups")
STORE = load_queries("waylore.store.postgres")
ENGINE = "postgresql"
PACKAGES = SCHEMAS[ENGINE]
WAIT_SECONDS = 30.0
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A table of a database, with its columns except for computed ones."""

    schema: str
    name: str
    columns: Sequence[str]
    is_readable: bool  # all rows
    is_forced: bool

    @property
    def part(self) -> str:
        """The file of its rows."""
        return f"{self.schema}.{self.name}.copy"

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in SQL."""
        return sql.Identifier(self.schema, self.name)


def save_database(url: str, folder: Path, progress: Progress) -> Manifest:
    """Copy all rows of a database into a folder, in one snapshot, and return the manifest."""
    with translate_errors(url), connect(url, WAIT_SECONDS) as db:
        [(role,)] = db.execute(SQL["role"]).fetchall()
        tables = _find_readable(db, url, role)
        db.isolation_level, db.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        with db.transaction():
            numbers = _begin(db, url, role, tables)
            created_at = datetime.now(UTC)
            progress("copying")
            own = _list_own_tables(db, numbers)
            parts = {table.part: _copy_out(db, table, own.get(table.name, ()), folder / table.part) for table in tables}
            progress("verifying")
            collections = _describe_collections(db, url, role, _list_collections(db, numbers))
    columns = {table.part: table.columns for table in tables}
    return make_manifest(ENGINE, numbers, collections, parts, columns=columns, created_at=created_at)


def load_database(folder: Path, manifest: Manifest, url: str, progress: Progress, *, is_trial: bool) -> None:
    """Restore a backup into a database without a store, in one transaction, and compare the documents.

    The transaction of a trial is rolled back.
    """
    newest = {schema: find_newest(ENGINE, schema) for schema in manifest.schemas}
    with translate_errors(url), connect(url, WAIT_SECONDS) as db, db.transaction(force_rollback=is_trial):
        db.execute(_format("begin", role=sql.SQL("none")))
        _require_empty(db, url)
        progress("verifying")
        check_parts(folder, manifest)
        progress("copying")
        _migrate(db, manifest.schemas)
        names = _fill(db, folder, manifest)
        _migrate(db, newest)
        db.execute(_format("analyze", tables=_join(_list_tables(db))))
        progress("comparing")
        compare_collections(folder, manifest, _describe_collections(db, url, "none", names))


# -- saving ------------------------------------------------------------------------------------------------


def _find_readable(db: Connection, url: str, role: str) -> list[SavedTable]:
    """List the tables. Raise an error with a remedy if there are none, or if rows are hidden from the login."""
    with db.transaction():
        db.execute(_format("begin", role=sql.SQL(role)))
        tables = _list_tables(db)
        [(login,)] = db.execute(SQL["login"]).fetchall()
    if not tables:
        raise NotFound(f"no store at {format_address(url)}; name its database with --store")
    if hidden := [table for table in tables if not table.is_readable]:
        raise Forbidden(
            f"{login} does not see all rows of {len(hidden)} tables at {format_address(url)}: connect as a superuser, "
            "or as a member of the role waylore_backup, which `waylore migrate` makes if its login may make roles"
        )
    return tables


def _begin(db: Connection, url: str, role: str, tables: Sequence[SavedTable]) -> dict[str, int]:
    """Lock the tables, begin the snapshot, and return the number of each schema. This Waylore must know it."""
    db.execute(_format("begin", role=sql.SQL(role)))
    db.execute(_format("lock", tables=_join(tables)))
    if _list_tables(db) != tables:
        raise StoreUnavailable(f"the tables at {format_address(url)} were changed meanwhile: try again")
    schemas = dict.fromkeys(table.schema for table in tables)
    numbers = {schema: max(read_applied(db, load_queries(*PACKAGES[schema])), default=0) for schema in schemas}
    for schema, number in numbers.items():
        if number != find_newest(ENGINE, schema):
            raise SchemaOutdated(
                f"{format_address(url)} has schema {number} of {schema}, this Waylore knows "
                f"{find_newest(ENGINE, schema)}: back up with the Waylore that runs there, or run `waylore migrate`"
            )
    return numbers


def _list_own_tables(db: Connection, schemas: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the tables that large collections have instead of a shared one, by the name of the shared one."""
    keys = [key for (key,) in db.execute(SQL["large_collections"])] if "waylore" in schemas else []
    return group_pairs((shared, own) for key in keys for own, shared in list_own_tables(key).items())


def _copy_out(db: Connection, table: SavedTable, own: Sequence[str], file: Path) -> str:
    """Copy the rows of a table, and of those that large collections have instead, to a new file. Return its SHA-256."""
    digest = sha256()
    names = [table.identifier, *(sql.Identifier(table.schema, name) for name in own)]
    rows = [_format("rows", table=name, columns=_quote(table.columns)) for name in names]
    statement = _format("copy_out", rows=sql.SQL(" UNION ALL ").join(rows))
    with open(file, "wb", opener=open_private) as opened, db.cursor().copy(statement) as copied:
        for block in copied:
            opened.write(block)
            digest.update(block)
        sync_file(opened)
    return digest.hexdigest()


# -- restoring ---------------------------------------------------------------------------------------------


def _require_empty(db: Connection, url: str) -> None:
    """Raise ConfigError if the database has a schema of Waylore. Other processes that would create one must wait."""
    for package in PACKAGES.values():
        db.execute(load_queries(*package)["lock_migrations"])
    names = [*PACKAGES, *legacy.SCHEMAS.values()]
    if found := [name for (name,) in db.execute(SQL["schemas"], {"schemas": names})]:
        raise ConfigError(
            f"{format_address(url)} has the schema {found[0]} already; name an empty database with --store"
        )


def _migrate(db: Connection, numbers: Mapping[str, int]) -> None:
    """Bring each schema to a number."""
    for schema, number in numbers.items():
        is_store = schema == "waylore"
        migrate_schema(
            db,
            load_queries(*PACKAGES[schema]),
            [step for step in list_migrations(ENGINE, schema) if step.number <= number],
            schema=schema,
            fill=FILL if is_store else NOTHING_TO_FILL,
            before=prepare_database if is_store else lambda _: None,
        )


def _fill(db: Connection, folder: Path, manifest: Manifest) -> list[str]:
    """Copy the parts into their tables, and return the names of the collections.

    Row-level security does not bind the owner meanwhile.
    """
    tables = _list_tables(db)
    if {table.part: set(table.columns) for table in tables} != {
        part: set(names) for part, names in manifest.columns.items()
    }:
        raise DamagedStore(f"the parts of {folder} are not the tables of its schemas; use another backup")
    forced = [table for table in tables if table.is_forced]
    for table in forced:
        db.execute(_format("lift", table=table.identifier))
    db.execute(_format("truncate", tables=_join(tables)))
    for table in tables:
        _copy_in(db, table, manifest.columns[table.part], folder / table.part)
    _continue_sequences(db)
    if any(table.part == "waylore.indexes.copy" for table in tables):
        db.execute(SQL["drop_search_indexes"])
    if any("own_vectors" in table.columns for table in tables):
        db.execute(SQL["share_vectors"])
    names = _list_collections(db, manifest.schemas)
    for table in forced:
        db.execute(_format("force", table=table.identifier))
    return names


def _copy_in(db: Connection, table: SavedTable, columns: Sequence[str], file: Path) -> None:
    statement = _format("copy_in", table=table.identifier, columns=_quote(columns))
    with file.open("rb") as opened, db.cursor().copy(statement) as copied:
        while block := opened.read(BLOCK_BYTES):
            copied.write(block)


def _continue_sequences(db: Connection) -> None:
    """Let each sequence continue after the highest number in its column."""
    for schema, table, column, sequence in db.execute(SQL["identities"], {"schemas": list(PACKAGES)}).fetchall():
        parts = {"column": sql.Identifier(column), "table": sql.Identifier(schema, table)}
        db.execute(_format("continue", **parts), {"sequence": sequence})


# -- both --------------------------------------------------------------------------------------------------


def _list_collections(db: Connection, schemas: Iterable[str]) -> list[str]:
    return [name for (name,) in db.execute(SQL["collections"])] if "waylore" in schemas else []


def _describe_collections(db: Connection, url: str, role: str, names: Sequence[str]) -> dict[str, SavedCollection]:
    """Return collections with new digests, in the transaction of the connection."""
    if not names:
        return {}
    path = read_search_path(db)
    register_loaders(db, find_halfvec(db, path))
    return {name: _describe(db, url, name, path=path, role=role) for name in names}


def _describe(db: Connection, url: str, name: str, *, path: str, role: str) -> SavedCollection:
    key = compute_key(name)
    db.execute(STORE["settings"], {"path": path, "role": role, "collection": str(key), "milliseconds": None})
    known = read_collection(db, key, name)
    checked = compare_digests(_export(db, key, known.own_vectors), partial(_read_digests, db, key))
    return summarise(known.statistics, checked, format_address(url))


def _export(db: Connection, key: int, own_vectors: str) -> Iterator[IndexedDocument]:
    after = LOWEST_ID
    while page := drive(read_export_page(key, own_vectors, after), partial(fetch_statements, db)):
        yield from page
        after = page[-1].document.id


def _read_digests(db: Connection, key: int, ids: Sequence[str]) -> dict[str, str]:
    found = run_by_ids(db, "digests", ids, collection=key)
    return {id_.hex(): digest.hex() for id_, digest, *_ in found}


def _list_tables(db: Connection) -> list[SavedTable]:
    return [SavedTable(*row) for row in db.execute(SQL["tables"], {"schemas": list(PACKAGES)})]


def _quote(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _join(tables: Iterable[SavedTable]) -> sql.Composed:
    return sql.SQL(", ").join(table.identifier for table in tables)


def _format(query: str, /, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(SQL[query]).format(**parts)
