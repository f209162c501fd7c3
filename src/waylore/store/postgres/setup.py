"""Bring a PostgreSQL database to the schema of this Waylore: of a store, a registry or a catalogue of cells.

Any number of processes may do so at once: one migrates, and the others wait for a lock. Named SQL has the
statements, and the names of the tables that record migrations. A schema with its old name is renamed first.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg

from waylore import legacy
from waylore.errors import ConfigError, SchemaOutdated
from waylore.plugins import import_later
from waylore.store.postgres.connections import Connection, format_address, is_pooled, translate_errors
from waylore.store.sql import NOTHING_TO_FILL, Migration, is_current, load_migrations, load_queries, migrate

SQL = load_queries("waylore.store.postgres")
RENAMING = load_queries("waylore.store.postgres", file="legacy")
CARRY_ROLES = RENAMING["carry_roles"]
CARRY_STORE = (
    CARRY_ROLES,
    RENAMING["carry_policies"],
    RENAMING["carry_functions"],
    RENAMING["carry_grants"],
)
# Functions that fill the tables of a migration, by its number.
FILL = {
    5: import_later("waylore.store.earlier.postgres", "carry_over"),
    7: import_later("waylore.store.earlier.postgres_vectors", "convert_vectors"),
    8: import_later("waylore.store.postgres.index", "fill_series"),
}
OLDEST_TEXTSEARCH = (1, 5, 1)
OLDEST_PGVECTOR = (0, 8)


def migrate_schema(
    db: psycopg.Connection[Any],
    sql: Mapping[str, str],
    migrations: Sequence[Migration],
    *,
    schema: str,
    carry: Sequence[str] = (),
    fill: Mapping[int, Callable[[psycopg.Connection[Any]], object]] = NOTHING_TO_FILL,
    before: Callable[[psycopg.Connection[Any]], None] = lambda _: None,
) -> None:
    """Apply the migrations that a schema lacks, in one transaction; read one table if it lacks none.

    If the schema has its old name, it is renamed first, and the statements `carry` rename its objects.
    `before` runs before the migrations. `fill` has functions that run after a migration, by its number.
    """
    if is_current(migrations, read_applied(db, sql)):
        return
    with db.transaction():
        db.execute(sql["lock_migrations"])
        _rename(db, schema, carry)
        before(db)
        db.execute(sql["create_migrations"])
        migrate(
            migrations,
            applied=read_applied(db, sql),
            run=lambda statement: _run(db, statement),
            record=lambda m: _run(db, sql["record_migration"], m.number, m.name, m.checksum),
            fill={number: partial(function, db) for number, function in fill.items()},
        )


def read_applied(db: psycopg.Connection[Any], sql: Mapping[str, str]) -> dict[int, str]:
    """Return the checksum of each applied migration, empty if none was recorded."""
    [(has_any,)] = db.execute(sql["has_migrations"]).fetchall()
    return dict(db.execute(sql["applied_migrations"]).fetchall()) if has_any else {}


def _rename(db: psycopg.Connection[Any], schema: str, carry: Sequence[str]) -> None:
    """Give a schema that has its old name the new one; do nothing if there is no such schema."""
    old = legacy.SCHEMAS[schema]
    has_old, has_new, is_migrated = _find_schemas(db, schema)
    if not has_old or is_migrated:
        return
    if has_new:
        raise SchemaOutdated(
            f"the data is in the schema {old}, which cannot be renamed to {schema}, because a schema of that "
            "name exists and is not Waylore's: drop or rename it, then open the store again"
        )
    for statement in (RENAMING["rename"].format(old=old, new=schema), *carry):
        db.execute(statement)


def _find_schemas(db: psycopg.Connection[Any], schema: str) -> tuple[bool, bool, bool]:
    """Return whether the old schema holds our tables, whether the new one exists, and whether it holds them."""
    [found] = db.execute(RENAMING["find"], {"old": legacy.SCHEMAS[schema], "new": schema}).fetchall()
    has_old, has_new, is_migrated = found
    return has_old, has_new, is_migrated


def _run(db: psycopg.Connection[Any], sql: str, *bound: object) -> None:
    db.execute(sql, bound or None)


# -- extensions and roles ------------------------------------------------------------------------------


def migrate_store(db: Connection) -> None:
    """Bring the schema of a store up to date, with the extensions that it needs."""
    steps = load_migrations("waylore.store.postgres")
    migrate_schema(db, SQL, steps, schema="waylore", carry=CARRY_STORE, fill=FILL, before=prepare_database)


def prepare_database(db: Connection) -> None:
    """Create the extensions and the schema, before the migrations of the tables."""
    _ensure_extension(db)
    create_textsearch(db)
    db.execute(SQL["settings"], {"path": read_search_path(db), "role": "none", "collection": "", "milliseconds": None})


def inspect_database(url: str, *, wait_seconds: int) -> tuple[int, str, str, bool, bool]:
    """Return the schema of a database, its pgvector, and the one that it could have.

    The last two values are whether a pooler is in between, and whether the server has data checksums.
    """
    db: Connection
    with translate_errors(url), psycopg.connect(url, autocommit=True, connect_timeout=wait_seconds) as db:
        has = db.execute(SQL["extension"]).fetchone()
        available = db.execute(SQL["available_extension"]).fetchone()
        schema = max(read_applied(db, SQL), default=0)
        checksums = db.execute(SQL["data_checksums"]).fetchone()
        in_use, installable = (row[0] if row else "" for row in (has, available))
        return schema, in_use, installable, is_pooled(db), checksums == ("on",)


def has_old_schema(url: str, *, wait_seconds: int) -> bool:
    """Return whether a database has the schema of a store under the old name only, without changing it."""
    db: Connection
    with translate_errors(url), psycopg.connect(url, autocommit=True, connect_timeout=wait_seconds) as db:
        has_old, _, is_migrated = _find_schemas(db, "waylore")
        return has_old and not is_migrated


def is_too_old(pgvector: str) -> bool:
    """Return whether a version of pgvector is older than Waylore needs."""
    return tuple(map(int, pgvector.split(".")[:2])) < OLDEST_PGVECTOR


def _ensure_extension(db: Connection) -> None:
    try:
        db.execute(SQL["create_extension"])
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
        raise ConfigError("the server has no pgvector: install its package, 0.8 or newer") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError("the database has no pgvector: run CREATE EXTENSION vector there as a superuser") from error
    version = db.execute(SQL["extension"]).fetchall()[0][0]
    if is_too_old(version):
        raise ConfigError(
            f"the server has pgvector {version}, Waylore needs 0.8, whose index continues past filtered rows: "
            "install it, then run ALTER EXTENSION vector UPDATE"
        )


def read_search_path(db: Connection) -> str:
    """Return the search path: the schema of Waylore, and the one of pgvector's types and operators."""
    (_, schema) = db.execute(SQL["extension"]).fetchall()[0]
    return f"waylore, {schema}, pg_temp"


def choose_role(db: Connection) -> str:
    """Return the role that transactions take: waylore_app if possible, otherwise none."""
    can_be_app, is_above, user = db.execute(SQL["standing"]).fetchall()[0]
    if not can_be_app and is_above:
        raise ConfigError(
            f"{user} at {format_address(db.info.dsn)} bypasses row-level security and may not take the role "
            "waylore_app: connect as another role, or GRANT waylore_app to this one"
        )
    return "waylore_app" if can_be_app else "none"


def create_textsearch(db: psycopg.Connection[Any]) -> None:
    """Create the extension pg_textsearch in a new database, if its version is right and the role may."""
    if db.execute(SQL["has_migrations"]).fetchall()[0][0]:
        return
    available, is_loaded = db.execute(SQL["available_textsearch"]).fetchall()[0]
    if available and is_loaded and _parse_version(available) >= OLDEST_TEXTSEARCH:
        with suppress(psycopg.errors.InsufficientPrivilege), db.transaction():
            db.execute(SQL["create_textsearch"])


def prepare_textsearch(db: psycopg.Connection[Any]) -> bool:
    """Return whether pg_textsearch ranks passages. Add its index if the role owns the tables."""
    version, is_ranked, is_ours = db.execute(SQL["textsearch"]).fetchall()[0]
    if version is None:
        return False
    if _parse_version(version) < OLDEST_TEXTSEARCH:
        raise ConfigError(
            f"the database has pg_textsearch {version}, which returns some rows twice and others never: "
            "install 1.5.1 or newer and run ALTER EXTENSION pg_textsearch UPDATE, or drop the extension"
        )
    if not is_ranked and is_ours:
        with db.transaction():
            db.execute(SQL["lock_migrations"])
            db.execute(SQL["add_ranked"])
    return bool(is_ranked or is_ours)


def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-", maxsplit=1)[0].split(".")[:3])
