"""Build indexes of vectors in the PostgreSQL store, one for each large collection, in the background.

A search of a small collection compares every vector and needs no index. A collection with more than
`MAX_EXACT_PASSAGES` passages gets its own HNSW index, and one with more than `MAX_EXACT_ENTITIES` entities
another, over the bits of their names. So a filter by collection costs no recall, and each model has vectors of
its own dimension. The index of entities has fewer links, because every write adds many entities. Until an index
is built, searches stay exact and become slow. The index is built when a process whose role owns the tables opens
the collection or writes to it.
"""

import logging
from contextlib import closing
from threading import Thread

import psycopg
from psycopg import sql

from waylore.errors import ConfigError
from waylore.store.postgres import search as searching
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import run
from waylore.store.postgres.server import Server
from waylore.store.sql import load_queries
from waylore.types.results import Statistics

SQL = load_queries("waylore.store.postgres")
MAX_DIMENSIONS = 4_000  # limit of pgvector for an index of half-precision vectors
CREATE_INDEX = {"passage_vectors": "index_passage_vectors", "entity_vectors": "index_entity_vectors"}  # by table
INDEX_LINKS = {
    "passage_vectors": 16,
    "entity_vectors": 8,
}  # links of a vector on each level of an index, by table
log = logging.getLogger(__name__)


def list_wanted(collection: int, known: Statistics) -> dict[str, str]:
    """Return the indexes that a collection should have: the table of each, by name."""
    if known.dimension is None or known.dimension > MAX_DIMENSIONS:
        return {}
    is_large = {
        "passage": known.passages > searching.MAX_EXACT_PASSAGES,
        "entity": known.entities > searching.MAX_EXACT_ENTITIES,
    }
    return {
        f"{_make_prefix(collection)}_{kind}_{known.dimension}": f"{kind}_vectors" for kind in is_large if is_large[kind]
    }


def start_building(server: Server, collection: int, known: Statistics) -> Thread:
    """Build the indexes in a thread, so that the writer does not wait."""
    thread = Thread(target=_build_and_log, args=(server, collection, known), name="waylore-indexing", daemon=True)
    thread.start()
    return thread


def _build_and_log(server: Server, collection: int, known: Statistics) -> None:
    try:
        with closing(server.connect_session()) as db:
            build_indexes(db, collection, known)
    except (psycopg.Error, ConfigError) as error:
        log.warning("the index of vectors was not built, so searches compare all vectors: %s", error)


def build_indexes(db: Connection, collection: int, known: Statistics) -> None:
    """Build missing indexes and drop unused ones, unless another process is doing so.

    Does nothing if the role of the connection does not own the tables.
    """
    if not all(is_ours for _, is_ours in run(db, "tables")):
        return
    [(is_mine,)] = run(db, "try_building", number=collection & 0x7FFFFFFF).fetchall()
    if not is_mine:
        return
    names = {"names": f"{_make_prefix(collection)}\\_%"}
    lengths = list_wanted(collection, known)
    built = {name for (name,) in run(db, "indexes", **names)}
    unfinished = {name for (name,) in run(db, "unfinished_indexes", **names)}
    for name in (*unfinished, *(built - lengths.keys())):
        db.execute(_format_statement("drop_index", name=sql.Identifier(name)))
    for name in lengths.keys() - built:
        statement = _format_statement(
            CREATE_INDEX[lengths[name]],
            name=sql.Identifier(name),
            links=sql.Literal(INDEX_LINKS[lengths[name]]),
            tried=sql.Literal(4 * INDEX_LINKS[lengths[name]]),
            dimension=sql.Literal(known.dimension),
            collection=sql.Literal(collection),
        )
        db.execute(statement)


def _format_statement(query: str, /, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(SQL[query]).format(**parts)


def _make_prefix(collection: int) -> str:
    return f"hnsw_{collection & 0xFFFFFFFFFFFFFFFF:016x}"
