"""Give each large collection of the PostgreSQL store tables of vectors of its own, with indexes, in the background.

A search of a small collection compares every vector in a shared table and needs no index. A collection with more than
`MAX_EXACT_PASSAGES` passages or `MAX_EXACT_ENTITIES` entities gets tables of its own, an HNSW index of its passages,
and one over the bits of its names if these are many. So a filter by collection costs no recall, each model has
vectors of its own dimension, and an index costs no other collection anything: PostgreSQL opens all indexes of a table
when it plans a statement. The index of entities has fewer links, because every write adds many entities.

Until all is built, searches stay exact and become slow. It is built when a process whose role owns the tables opens the
collection or writes to it. Readers and writers go on meanwhile. Only at the end writers of this collection wait, while
the rows that changed are copied again and those in the shared table are deleted, in one transaction. What a killed
process has left is dropped and built anew. A collection that has shrunk, or is empty, keeps its tables.
"""

import logging
from collections.abc import Mapping
from contextlib import closing
from threading import Thread

import psycopg
from psycopg import sql

from waylore.errors import ConfigError
from waylore.store.postgres import search as searching
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import make_table_ending, run
from waylore.store.postgres.server import Server
from waylore.store.sql import load_queries
from waylore.types.results import Statistics

SQL = load_queries("waylore.store.postgres")
MAX_DIMENSIONS = 4_000  # limit of pgvector for an index of half-precision vectors
# By the shared table: the statement that creates a collection's own table, and the one that creates its index.
CREATE_TABLE = {"passage_vectors": "create_own_passage_vectors", "entity_vectors": "create_own_entity_vectors"}
CREATE_INDEX = {"passage_vectors": "index_passage_vectors", "entity_vectors": "index_entity_vectors"}
INDEX_LINKS = {
    "passage_vectors": 16,
    "entity_vectors": 8,
}  # links of a vector on each level of an index, by table
log = logging.getLogger(__name__)


def list_wanted(known: Statistics) -> dict[str, str]:
    """Return the indexes that a collection should have: the shared table of each, by the ending of its name."""
    if known.dimension is None or known.dimension > MAX_DIMENSIONS:
        return {}
    is_large = {
        "passage": known.passages > searching.MAX_EXACT_PASSAGES,
        "entity": known.entities > searching.MAX_EXACT_ENTITIES,
    }
    return {f"{kind}_{known.dimension}": f"{kind}_vectors" for kind in is_large if is_large[kind]}


def start_building(server: Server, collection: int, known: Statistics) -> Thread:
    """Build tables and indexes in a thread, so that the writer does not wait."""
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
    """Build what a large collection lacks and drop unused indexes, unless another process is doing so.

    Does nothing if the role of the connection does not own the tables. Vectors stay where they are while the collection
    is being moved to another server, and if it has an index on a Qdrant cluster.
    """
    if not all(is_ours for _, is_ours in run(db, "tables")):
        return
    [(is_mine,)] = run(db, "try_building", number=collection & 0x7FFFFFFF).fetchall()
    if not is_mine:
        return
    run(db, "building_settings", collection=str(collection))
    wanted = list_wanted(known)
    has_own, must_stay = _read_state(db, collection)
    is_splitting = bool(wanted) and not has_own and not must_stay
    if is_splitting:
        create_own_tables(db, collection)
        for own, shared in list_own_tables(collection).items():
            _run(db, "fill_own_vectors", **_name_parts(own, shared, collection))
    names = _build_missing(db, collection, wanted, is_own=has_own or is_splitting)
    if not is_splitting or _switch(db, collection):
        for name in _list_indexes(db, "indexes", collection) - names:
            _run(db, "drop_index", name=sql.Identifier(name))


def _build_missing(db: Connection, collection: int, wanted: Mapping[str, str], *, is_own: bool) -> set[str]:
    """Build the indexes of a collection that are missing, on its own tables or the shared ones. Return their names."""
    for name in _list_indexes(db, "unfinished_indexes", collection):
        _run(db, "drop_index", name=sql.Identifier(name))
    built = _list_indexes(db, "indexes", collection)
    ending = make_table_ending(collection)
    names = {f"hnsw_{ending}_{'own_' if is_own else ''}{each}": shared for each, shared in wanted.items()}
    for name in names.keys() - built:
        shared = names[name]
        _run(
            db,
            CREATE_INDEX[shared],
            name=sql.Identifier(name),
            table=sql.SQL(f"{shared}_{ending}" if is_own else shared),
            links=sql.Literal(INDEX_LINKS[shared]),
            tried=sql.Literal(4 * INDEX_LINKS[shared]),
            dimension=sql.Literal(int(name.rsplit("_", maxsplit=1)[-1])),
            collection=sql.Literal(collection),
        )
    if is_own and names.keys() - built:
        _analyze_own_tables(db, collection)
    return set(names)


def _analyze_own_tables(db: Connection, collection: int) -> None:
    """Let the server count the values of a collection's own tables.

    Until it has, it takes the index of accesses to be as selective as that of ids, and reads the whole table for a few.
    """
    for own, shared in list_own_tables(collection).items():
        _run(db, "analyze_vectors", **_name_parts(own, shared, collection))


def _list_indexes(db: Connection, query: str, collection: int) -> set[str]:
    return {name for (name,) in run(db, query, names=f"hnsw\\_{make_table_ending(collection)}\\_%")}


# -- tables of a collection ----------------------------------------------------------------------------


def list_own_tables(collection: int) -> dict[str, str]:
    """Return the names of a collection's own tables, each with the shared table that it replaces."""
    return {f"{shared}_{make_table_ending(collection)}": shared for shared in CREATE_TABLE}


def create_own_tables(db: Connection, collection: int) -> None:
    """Create the tables of a collection anew, empty and with the rights of the shared ones. Nothing reads them yet."""
    with db.transaction():
        for own, shared in list_own_tables(collection).items():
            parts = _name_parts(own, shared, collection)
            for query in ("drop_own_vectors", CREATE_TABLE[shared], "protect_own_vectors"):
                _run(db, query, **parts)


def inherit_vectors(db: Connection, collection: int) -> None:
    """Let whoever reads the shared tables as a whole find the rows of a collection's own tables too."""
    for own, shared in list_own_tables(collection).items():
        _run(db, "inherit_vectors", **_name_parts(own, shared, collection))


def _switch(db: Connection, collection: int) -> bool:
    """Make the tables of a collection complete and used. Return False if its vectors must stay where they are.

    The tables inherit first, because that may wait for a vacuum, and writers must not wait for it.
    """
    with db.transaction() as transaction:
        inherit_vectors(db, collection)
        run(db, "lock", collection=collection)
        _, must_stay = _read_state(db, collection)
        if must_stay:
            raise psycopg.Rollback(transaction)
        for own, shared in list_own_tables(collection).items():
            for query in ("drop_changed_vectors", "fill_own_vectors", "empty_shared_vectors"):
                _run(db, query, **_name_parts(own, shared, collection))
        run(db, "use_own_vectors", collection=collection)
    return not must_stay


def _read_state(db: Connection, collection: int) -> tuple[bool, bool]:
    """Return whether a collection has tables of its own, and whether its vectors must stay where they are."""
    links = f"waylore\\_move\\_{make_table_ending(collection)}\\_%"
    [(has_own, must_stay)] = run(db, "vector_tables", collection=collection, links=links).fetchall()
    return has_own, must_stay


def _name_parts(own: str, shared: str, collection: int) -> dict[str, sql.Composable]:
    return {"own": sql.SQL(own), "shared": sql.SQL(shared), "collection": sql.Literal(collection)}


def _run(db: Connection, query: str, /, **parts: sql.Composable) -> None:
    db.execute(sql.SQL(SQL[query]).format(**parts))
