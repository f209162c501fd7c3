"""Carry a schema over from the layout before packs, in which every mention and every assertion was a row.

It runs once, inside the transaction of the migrations, so a killed process leaves the old layout as it was. Mentions,
and the edges and use counts of typed facts, stay as they are.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.types.string import ByteaBinaryLoader

from waylore.store import rows as columns
from waylore.store.earlier.convert import UNTYPED, pack_rows
from waylore.store.postgres.connections import run_by_column
from waylore.store.postgres.index import index_packs, insert_packs
from waylore.store.postgres.steps import LOWEST_ID, to_array
from waylore.store.sql import load_queries
from waylore.types.knowledge import Passage

OLD = load_queries("waylore.store.postgres", file="carry_over")
PASSAGES_AT_ONCE = 500
COLUMNS = 9  # of an assertion in that layout, without the collection


def carry_over(db: psycopg.Connection[Any]) -> None:
    """Fill packs, vectors of statements, assertions and staged vectors of all collections from the old tables."""
    reader = db.cursor(binary=True)
    reader.adapters.register_loader("uuid", ByteaBinaryLoader)
    db.execute(OLD["show_all_collections"])
    collections = reader.execute(OLD["collections"]).fetchall()
    db.execute(OLD["show_own_collection"])
    for collection, dimension in collections:
        _carry_collection(db, reader, collection, dimension)
    db.execute(OLD["begin"], {"collection": ""})


def _carry_collection(
    db: psycopg.Connection[Any], reader: psycopg.Cursor[Any], collection: int, dimension: int | None
) -> None:
    db.execute(OLD["begin"], {"collection": str(collection)})
    bound = {"collection": collection, "after": LOWEST_ID, "limit": PASSAGES_AT_ONCE}
    while batch := reader.execute(OLD["passages"], bound).fetchall():
        _carry_passages(db, reader, collection, dimension, batch)
        bound["after"] = batch[-1][0].hex()
    keys = [columns.compute_predicate_key(predicate) for predicate in UNTYPED]
    for query in ("staged", "delete_untyped_edges", "delete_untyped_usage", "count_facts", "count_stated"):
        db.execute(OLD[query], {"collection": collection, "predicates": keys})


def _carry_passages(
    db: psycopg.Connection[Any],
    reader: psycopg.Cursor[Any],
    collection: int,
    dimension: int | None,
    batch: Sequence[Any],
) -> None:
    ids = [id_.hex() for id_, *_ in batch]
    bound = {"collection": collection, "ids": to_array(ids)}
    mentions = columns.group_pairs((row[0].hex(), row[1:]) for row in reader.execute(OLD["mentions"], bound))
    facts = columns.group_pairs((row[0].hex(), row[1:]) for row in reader.execute(OLD["facts"], bound))
    encoded = [
        pack_rows(Passage(id_, "", text), mentions[id_], facts[id_], dimension)
        for id_, (_, _, text) in zip(ids, batch, strict=True)
    ]
    packs = insert_packs(db, collection, ids, encoded)
    index = index_packs(packs, [access for _, access, _ in batch], ids)
    run_by_column(db, OLD["insert_assertion"], collection, [row[:COLUMNS] for row in index.assertions])
