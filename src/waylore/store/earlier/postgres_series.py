"""Fill the columns of a schema by which the assertions of one subject and predicate are read newest first.

It runs once, inside the transaction of the migrations, so a killed process leaves the schema as it was.
"""

from typing import Any

import psycopg
from psycopg.types.string import ByteaBinaryLoader

from waylore.store.packs import Packs
from waylore.store.postgres.connections import run_by_column
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.postgres.verify import index_batch
from waylore.store.sql import load_queries

SQL = load_queries("waylore.store.postgres")
FILL = load_queries("waylore.store.postgres", file="series")
OLD = load_queries("waylore.store.postgres", file="carry_over")
PACKS_AT_ONCE = 1_000
KEY_COLUMNS = 4  # of an assertion, without the collection


def fill_series(db: psycopg.Connection[Any]) -> None:
    """Compute the subject and predicate, and the beginning, of every assertion from its pack."""
    reader = db.cursor(binary=True)
    reader.adapters.register_loader("uuid", ByteaBinaryLoader)
    db.execute(OLD["show_all_collections"])
    collections = reader.execute(OLD["collections"]).fetchall()
    db.execute(OLD["show_own_collection"])
    for collection, _ in collections:
        db.execute(OLD["begin"], {"collection": str(collection)})
        bound = {"collection": collection, "after": LOWEST_ID, "limit": PACKS_AT_ONCE}
        while batch := reader.execute(SQL["all_packs"], bound).fetchall():
            index = index_batch(Packs([pack for *_, pack in batch]), batch)
            rows = [(*row[:KEY_COLUMNS], *row[-2:]) for row in index.assertions]
            run_by_column(db, FILL["set_series"], collection, rows)
            bound["after"] = batch[-1][0].hex()
    db.execute(OLD["begin"], {"collection": ""})
