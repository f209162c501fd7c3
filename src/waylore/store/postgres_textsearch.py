"""pg_textsearch, where the server has it: it finds the passages that BM25 ranks best, however common the words.

Where it is not, the inverted index finds candidates from the rarest terms (`postgres_searching`). Both are
scored by `lexicon`, since pg_textsearch counts the words of all collections together. A database that gets the
extension later is prepared by whoever opens it next as its owner; that writes the table of terms anew.
"""

from contextlib import suppress
from typing import Any

import psycopg

from waylore.errors import ConfigError
from waylore.store.queries import queries

SQL = queries("postgres")
OLDEST = (1, 5, 1)


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
