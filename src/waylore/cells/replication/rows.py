"""The rows of a collection on a server: copy them to another server in one snapshot, or delete them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from psycopg import sql

from waylore.cells.replication.link import CONNECT_SECONDS, SQL, ReplicationLink, join_names, list_columns, run
from waylore.errors import ConfigError
from waylore.store.postgres import server as servers
from waylore.store.postgres import vector_indexes
from waylore.store.postgres.connections import Connection, connect, translate_errors
from waylore.store.postgres.scope import compute_key, read_collection

BLOCK_BYTES = 262_144  # bytes sent to the new cell at once
CONNECTIONS, WAIT_SECONDS = 16, 30.0  # the same as of a store, so that both share a pool


def copy_rows(link: ReplicationLink) -> None:
    """Delete the rows that the new cell may have, and copy all rows of the collection, in one transaction."""
    tables = list_columns(link.source, link.key)
    with link.target.transaction():
        link.target.execute(SQL["lock"], {"collection": link.key})
        _delete_from(link.target, link.key, list(list_columns(link.target, link.key)))
        mark = _copy_collection(link, tables.pop("collections"))
        for table, columns in tables.items():
            _copy_table(link, table, columns, mark)


def create_trigger(db: Connection) -> None:
    """Let a server give replicated rows its own number of their collection. Its tables are locked briefly."""
    if db.execute(SQL["has_trigger"]).fetchone() == (False,):
        db.execute(SQL["create_trigger"])


def create_own_tables(link: ReplicationLink) -> None:
    """Create tables for the vectors of the collection in the new cell, if the old one has them."""
    own = vector_indexes.list_own_tables(link.key).keys()
    if own <= list_columns(link.source, link.key).keys() and not own <= list_columns(link.target, link.key).keys():
        with link.target.transaction():
            vector_indexes.create_own_tables(link.target, link.key)
            vector_indexes.inherit_vectors(link.target, link.key)


def _copy_collection(link: ReplicationLink, columns: list[str]) -> int:
    """Copy the row of the collection, and return its number in the new cell."""
    bound = {"collection": link.key, "name": link.collection}
    [(mark,)] = link.target.execute(SQL["add_collection"], bound).fetchall()
    [row] = run(link.source, "read_collection", bound, columns=join_names(columns)).fetchall()
    placeholders = sql.SQL(", ").join([sql.Placeholder()] * len(columns))
    statement = sql.SQL(SQL["set_collection"]).format(
        columns=join_names(columns), values=placeholders, collection=sql.Literal(link.key)
    )
    link.target.execute(statement, row)
    return int(mark)


def _copy_table(link: ReplicationLink, table: str, columns: list[str], mark: int) -> None:
    values: dict[str, sql.Composable] = {name: sql.Identifier(name) for name in columns}
    if table == "passage_terms":
        values["words"] = sql.SQL(SQL["marked_words"]).format(words=values["words"], mark=sql.Literal(str(mark)))
    reading = sql.SQL(SQL["read_rows"]).format(
        values=sql.SQL(", ").join(values.values()), table=sql.Identifier(table), collection=sql.Literal(link.key)
    )
    writing = sql.SQL(SQL["write_rows"]).format(table=sql.Identifier(table), columns=join_names(columns))
    with link.source.cursor() as old, link.target.cursor() as new, old.copy(reading) as out, new.copy(writing) as into:
        for block in _join_blocks(iter(out)):
            into.write(block)


def _join_blocks(rows: Iterator[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """Yield rows in larger blocks, because sending single rows would take longer than reading them."""
    block = bytearray()
    for row in rows:
        block += row
        if len(block) > BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    yield bytes(block)


# -- one server ----------------------------------------------------------------------------------------


def delete_rows(url: str, collection: str) -> None:
    """Delete all rows of a collection on a server, except for its audit log, in one transaction."""
    key = compute_key(collection)
    with translate_errors(url), _borrow_server(url) as server:
        with servers.open_transaction(server, key) as db:
            _delete_from(db, key, list(list_columns(db, key)))
            db.execute(SQL["reset_collection"], {"collection": key})
        with suppress(ConfigError):  # no index is built or dropped through a pooler
            build_vector_indexes(url, collection)


def build_vector_indexes(url: str, collection: str) -> None:
    """Build the vector indexes that a collection needs now, and drop the others."""
    key = compute_key(collection)
    with _borrow_server(url) as server, closing(server.connect_session()) as db:
        db.execute(SQL["settings"], {"collection": str(key)})
        vector_indexes.build_indexes(db, key, read_collection(db, key, collection).statistics)


def read_bytes(url: str) -> int:
    """Return the bytes of the database at a URL."""
    with translate_errors(url), closing(connect(url, CONNECT_SECONDS)) as db:
        [(found,)] = db.execute(SQL["bytes"]).fetchall()
        return int(found)


@contextmanager
def _borrow_server(url: str) -> Iterator[servers.Server]:
    borrowed = servers.borrow_server(url, connections=CONNECTIONS, wait_seconds=WAIT_SECONDS)
    try:
        yield borrowed
    finally:
        servers.release_server(borrowed)


def _delete_from(db: Connection, key: int, tables: list[str]) -> None:
    """Delete rows from all tables but the one of collections, whose numbers must not be used again."""
    for table in tables:
        if table != "collections":
            run(db, "delete_rows", {"collection": key}, table=sql.Identifier(table))
