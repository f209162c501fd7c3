"""Brings a PostgreSQL database to the schema this Waylore speaks: that of a store, or of a catalogue of cells.

Any number of processes may do so at once; one does it, and the others wait for a lock. What is to be done,
and which tables tell what was, is in named SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from waylore.errors import ConfigError
from waylore.store.postgres.connections import Connection, place, wrapped_errors
from waylore.store.sql import load_queries, migrate

SQL = load_queries("waylore.store.postgres")
OLDEST = (1, 5, 1)


def migrated(
    db: psycopg.Connection[Any],
    sql: Mapping[str, str],
    migrations: Sequence[tuple[int, str, str]],
    *,
    before: Callable[[psycopg.Connection[Any]], None] = lambda _: None,
) -> None:
    """Apply what is missing, after what must come `before`; costs one look if all of it is there."""
    if applied(db, sql) == {number for number, _, _ in migrations}:
        return
    with db.transaction():
        db.execute(sql["lock_migrations"])
        before(db)
        db.execute(sql["create_migrations"])
        migrate(
            migrations,
            applied=applied(db, sql),
            run=lambda statement: _run(db, statement),
            record=lambda number, name: _run(db, sql["record_migration"], number, name),
        )


def applied(db: psycopg.Connection[Any], sql: Mapping[str, str]) -> set[int]:
    """The migrations that were applied."""
    [(has_any,)] = db.execute(sql["has_migrations"]).fetchall()
    return {number for (number,) in db.execute(sql["applied_migrations"])} if has_any else set()


def _run(db: psycopg.Connection[Any], sql: str, *bound: object) -> None:
    db.execute(sql, bound or None)


OLDEST_PGVECTOR = (0, 8)


# -- the schema, and what we are allowed ---------------------------------------------------------------


def _before_migrating(db: Connection) -> None:
    """Extensions, and the schema that the migrations of the tables are about."""
    _ensure_extension(db)
    create(db)
    db.execute(SQL["settings"], {"path": _path(db), "role": "none", "collection": ""})


def looked_at(url: str, *, wait_seconds: int) -> tuple[int, str, str]:
    """A database, without changing it: its schema, the pgvector that it has, and the one that it could have."""
    db: Connection
    with wrapped_errors(url), psycopg.connect(url, autocommit=True, connect_timeout=wait_seconds) as db:
        has = db.execute(SQL["extension"]).fetchone()
        available = db.execute(SQL["available_extension"]).fetchone()
        return max(applied(db, SQL), default=0), has[0] if has else "", available[0] if available else ""


def is_too_old(pgvector: str) -> bool:
    """Whether a version of pgvector is older than what we need."""
    return tuple(map(int, pgvector.split(".")[:2])) < OLDEST_PGVECTOR


def _ensure_extension(db: Connection) -> None:
    try:
        db.execute(SQL["create_extension"])
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
        raise ConfigError("the server has no pgvector: install its package there, 0.8 or newer") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            "the database has no pgvector: let a superuser CREATE EXTENSION vector there"
        ) from error
    version = db.execute(SQL["extension"]).fetchall()[0][0]
    if is_too_old(version):
        raise ConfigError(
            f"the server has pgvector {version}, Waylore needs 0.8, whose index goes on past what a filter hides: "
            "install it, then run ALTER EXTENSION vector UPDATE"
        )


def _path(db: Connection) -> str:
    """Our schema, and the one that holds pgvector's types and operators."""
    (_, schema) = db.execute(SQL["extension"]).fetchall()[0]
    return f"waylore, {schema}, pg_temp"


def _role(db: Connection) -> str:
    can_be_app, is_above, user = db.execute(SQL["standing"]).fetchall()[0]
    if not can_be_app and is_above:
        raise ConfigError(
            f"{user} at {place(db.info.dsn)} bypasses row-level security and may not take the role waylore_app: "
            "connect as another role, or GRANT waylore_app to this one"
        )
    return "waylore_app" if can_be_app else "none"


def create(db: psycopg.Connection[Any]) -> None:
    """Bring the extension to a new database, if the server has one that is right and we may."""
    if db.execute(SQL["has_migrations"]).fetchall()[0][0]:
        return
    available, is_loaded = db.execute(SQL["available_textsearch"]).fetchall()[0]
    if available and is_loaded and _version(available) >= OLDEST:
        with suppress(psycopg.errors.InsufficientPrivilege), db.transaction():
            db.execute(SQL["create_textsearch"])


def prepared(db: psycopg.Connection[Any]) -> bool:
    """Whether passages are ranked by it; makes it so, where it is there and the tables are ours."""
    version, is_ranked, is_ours = db.execute(SQL["textsearch"]).fetchall()[0]
    if version is None:
        return False
    if _version(version) < OLDEST:
        raise ConfigError(
            f"the database has pg_textsearch {version}, which gives some rows twice and others never: install "
            "1.5.1 or newer and run ALTER EXTENSION pg_textsearch UPDATE, or DROP EXTENSION pg_textsearch"
        )
    if not is_ranked and is_ours:
        with db.transaction():
            db.execute(SQL["lock_migrations"])
            db.execute(SQL["add_ranked"])
    return bool(is_ranked or is_ours)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-", maxsplit=1)[0].split(".")[:3])
