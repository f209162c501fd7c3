"""Carry a file over from the layout before packs, in which every mention and every assertion was a row.

It runs once, inside the transaction of the migrations, so a killed process leaves the old layout as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import apsw
import numpy as np

from waylore.store import rows as columns
from waylore.store.earlier.convert import pack_rows
from waylore.store.packs import Packs
from waylore.store.sql import load_queries
from waylore.store.sqlite.index import find_entity_rows, index_packs, insert_assertions
from waylore.types.knowledge import Passage

SQL = load_queries("waylore.store.sqlite")
OLD = load_queries("waylore.store.sqlite", file="carry_over")
PASSAGES_AT_ONCE = 500
COLUMNS = 11  # of an assertion in that layout


def carry_over(db: apsw.Connection) -> None:
    """Fill packs, mentions, assertions, edges, use counts and staged vectors from the old tables."""
    collections: list[Any] = db.execute(OLD["collections"]).fetchall()
    for collection, dimension in collections:
        passages = db.execute(OLD["passages"], {"collection": collection})
        while batch := list(islice(passages, PASSAGES_AT_ONCE)):
            _carry_passages(db, collection, dimension, batch)
    db.execute(OLD["usage"])
    db.execute(OLD["counts"])
    db.execute(OLD["staged"])


def _carry_passages(db: apsw.Connection, collection: int, dimension: int | None, batch: Sequence[Any]) -> None:
    rows = [row for row, *_ in batch]
    bound = {"rows": apsw.carray(np.array(rows, dtype=np.int64))}
    mentions = columns.group_pairs((row[0], row[1:]) for row in db.execute(OLD["mentions"], bound))
    facts = columns.group_pairs((row[0], row[1:]) for row in db.execute(OLD["facts"], bound))
    packs = [
        pack_rows(Passage(id_.hex(), "", text), mentions[row], facts[row], dimension) for row, id_, _, text in batch
    ]
    db.executemany(SQL["insert_pack"], [(row, each.facts, each.pack) for row, each in zip(rows, packs, strict=True)])
    vectors = [(row, each.codes) for row, each in zip(rows, packs, strict=True) if each.codes]
    db.executemany(OLD["insert_statement_vectors"], vectors)
    ids, accesses = [id_.hex() for _, id_, *_ in batch], [access for _, _, access, _ in batch]
    decoded = Packs([each.pack for each in packs])
    index = index_packs(decoded, collection, accesses, ids, rows, find_entity_rows(db, collection, decoded))
    db.executemany(SQL["insert_mention"], sorted(index.mentions))  # they are counted already
    stated = [row[:COLUMNS] for row in index.assertions]
    insert_assertions(db, collection, replace(index, assertions=stated), OLD["insert_assertion"])
