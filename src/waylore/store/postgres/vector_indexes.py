"""Indexes of vectors in the PostgreSQL store: one for each large collection, built while everything goes on.

A search of a small collection compares every vector, so it needs none. A collection that outgrows `EXACT` gets
an HNSW index of its own for passages, and in time one for entities, whose links are fewer, since every write
brings many: a filter by tenant costs no recall then, and each
model its own length of vectors. Until one is built, searches stay exact and become slow; whoever owns the
tables builds it when he opens the collection or writes to it.
"""

import logging
from contextlib import closing
from threading import Thread

import psycopg
from psycopg import sql

from waylore.store.postgres import search as searching
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import run
from waylore.store.postgres.server import Server
from waylore.store.sql import load_queries
from waylore.types.results import Statistics

SQL = load_queries("waylore.store.postgres")
LONGEST = 4_000  # dimensions that an index of halves can have
LINKS = {"passage_vectors": 16, "entity_vectors": 8}  # of a vector to others, on each level of an index
log = logging.getLogger(__name__)


def wanted(collection: int, known: Statistics) -> dict[str, str]:
    """The indexes that a collection should have by now: names, and the tables that they are of."""
    if known.dimension is None or known.dimension > LONGEST:
        return {}
    is_large = {
        "passage": known.passages > searching.EXACT,
        "entity": known.entities > searching.EXACT_NAMES,
    }
    return {
        f"{_prefix(collection)}_{kind}_{known.dimension}": f"{kind}_vectors"
        for kind in is_large
        if is_large[kind]
    }


def build_aside(server: Server, collection: int, known: Statistics) -> Thread:
    """Build them in a thread of their own: whoever wrote does not wait."""
    thread = Thread(target=_build, args=(server, collection, known), name="waylore-indexing", daemon=True)
    thread.start()
    return thread


def _build(server: Server, collection: int, known: Statistics) -> None:
    try:
        with closing(server.connect()) as db:
            build(db, collection, known)
    except psycopg.Error as error:
        log.warning("an index of vectors could not be built, searches compare them all: %s", error)


def build(db: Connection, collection: int, known: Statistics) -> None:
    """Build what is missing and drop what is of no use any more, unless another process is at it.

    Only the owner of the tables may.
    """
    if not all(is_ours for _, is_ours in run(db, "tables")):
        return
    [(is_mine,)] = run(db, "try_building", number=collection & 0x7FFFFFFF).fetchall()
    if not is_mine:
        return
    names = {"names": f"{_prefix(collection)}\\_%"}
    lengths = wanted(collection, known)
    built = {name for (name,) in run(db, "indexes", **names)}
    unfinished = {name for (name,) in run(db, "unfinished_indexes", **names)}
    for name in (*unfinished, *(built - lengths.keys())):
        db.execute(_statement("drop_index", name=sql.Identifier(name)))
    for name in lengths.keys() - built:
        statement = _statement(
            "create_index",
            name=sql.Identifier(name),
            table=sql.Identifier(lengths[name]),
            links=sql.Literal(LINKS[lengths[name]]),
            tried=sql.Literal(4 * LINKS[lengths[name]]),
            dimension=sql.Literal(known.dimension),
            collection=sql.Literal(collection),
        )
        db.execute(statement)


def _statement(query: str, /, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(SQL[query]).format(**parts)


def _prefix(collection: int) -> str:
    return f"hnsw_{collection & 0xFFFFFFFFFFFFFFFF:016x}"
