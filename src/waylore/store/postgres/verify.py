"""Looking for what is left of what was forgotten: in every table of a PostgreSQL collection.

Identities are looked up, rows whose owner is gone are counted, and what is derived (terms, names) is derived
again, all of it at one moment. This is what any query could reach. PostgreSQL itself keeps the bytes of
deleted rows until they are vacuumed, in its log until that is recycled, and in backups for as long as those
are kept: `compact` writes the tables anew, the rest is for whoever runs the server.
"""

import json
from collections import Counter
from collections.abc import Iterator

from psycopg import sql

from waylore.errors import Forbidden
from waylore.names import keys
from waylore.store import bm25
from waylore.store.checks import still_there
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import by_ids, run
from waylore.store.rows import names_of
from waylore.store.sql import load_queries
from waylore.types.identity import identity
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.postgres")


def remains(db: Connection, collection: int, receipt: Receipt) -> tuple[str, ...]:
    """A line for everything that is left; none, if nothing is."""
    return (
        *_identities(db, collection, receipt),
        *_orphans(db, collection),
        *_terms(db, collection),
        *_names(db, collection),
    )


def compact(db: Connection) -> None:
    """Write every table anew; whoever reads or writes one waits meanwhile."""
    tables = run(db, "tables").fetchall()
    if not all(is_ours for _, is_ours in tables):
        raise Forbidden("only the owner of Waylore's tables may write them anew: open the store as that role")
    for table, _ in tables:
        db.execute(sql.SQL(SQL["vacuum"]).format(table=sql.Identifier(table)))


def _identities(db: Connection, collection: int, receipt: Receipt) -> Iterator[str]:
    return still_there(receipt, lambda query, ids: by_ids(db, query, ids, collection=collection))


def _orphans(db: Connection, collection: int) -> Iterator[str]:
    for count, what in run(db, "orphans", collection=collection):
        if count:
            yield f"{count} {what}"


def _terms(db: Connection, collection: int) -> Iterator[str]:
    """Terms that are counted in another number of passages than have them."""
    counted: Counter[int] = Counter()
    for (packed,) in run(db, "all_passage_terms", collection=collection):
        counted.update(bm25.rows(packed))
    wrong = sum(counted[term] != passages for term, passages in run(db, "all_terms", collection=collection))
    if wrong:
        yield f"{wrong} terms are counted in passages that are not there"


def _names(db: Connection, collection: int) -> Iterator[str]:
    """Names and keys of names that no document gives an entity, or that are counted too often."""
    names: Counter[object] = Counter()
    of_names: Counter[object] = Counter()
    for entity, access, told, aliases in run(db, "all_profiles", collection=collection):
        given = names_of(told, json.loads(aliases))
        names.update((bytes.fromhex(identity("name", name)), entity, access) for name in given)
        of_names.update((bytes.fromhex(identity("key", key)), entity, access) for key in keys(told))
    for what, given_names, query in (("names", names, "all_names"), ("keys of names", of_names, "all_keys")):
        kept = run(db, query, collection=collection)
        wrong = sum(given_names[(name, *of)] != count for name, *of, count in kept)
        if wrong:
            yield f"{wrong} {what} are counted in documents that are not there"
