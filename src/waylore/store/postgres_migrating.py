"""Brings a PostgreSQL database to the schema this Waylore speaks: that of a store, or of a catalogue of cells.

Any number of processes may do so at once; one does it, and the others wait for a lock. What is to be done,
and which tables tell what was, is in named SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg

from waylore.store.migrate import migrate


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
