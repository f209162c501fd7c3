"""Convert the vectors of a file from half precision to eight bits per dimension.

It runs once, inside the transaction of the migrations, so a killed process leaves the vectors as they were.
"""

from itertools import islice
from typing import Any

import apsw

from waylore.store.sql import load_queries
from waylore.store.sqlite.reembed import rebuild_bits
from waylore.store.vectors import encode_halves

SQL = load_queries("waylore.store.sqlite")
OLD = load_queries("waylore.store.sqlite", file="half_precision")
INSERT = {"passages": "insert_passage_vector", "entities": "insert_entity_vector", "staged": "stage"}
VECTORS_AT_ONCE = 4_096


def convert_vectors(db: apsw.Connection) -> None:
    """Convert the vectors of passages and entities, also the staged ones, and derive their bits again."""
    db.execute(OLD["begin"])
    for query, insert in INSERT.items():
        halves = db.execute(OLD[query])
        while batch := list(islice(halves, VECTORS_AT_ONCE)):
            codes = encode_halves([half for *_, half in batch])
            db.executemany(SQL[insert], [(*key, code) for (*key, _), code in zip(batch, codes, strict=True)])
    db.execute(OLD["end"])
    collections: list[Any] = db.execute(OLD["collections"]).fetchall()
    for collection, dimension in collections:
        for kind in ("passage", "entity"):
            rebuild_bits(db, kind, collection, dimension)
