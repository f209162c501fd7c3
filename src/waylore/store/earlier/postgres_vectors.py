"""Convert the vectors of a schema from half precision to eight bits per dimension.

It runs once, inside the transaction of the migrations, so a killed process leaves the vectors as they were.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.types import TypeInfo
from psycopg.types.string import ByteaBinaryLoader

from waylore.store.postgres.connections import run_by_column
from waylore.store.postgres.insert import make_entity_vectors, make_passage_vectors
from waylore.store.sql import load_queries
from waylore.store.vectors import Codes, encode_halves

SQL = load_queries("waylore.store.postgres")
OLD = load_queries("waylore.store.postgres", file="half_precision")
HEADER_BYTES = 4  # of a vector that PostgreSQL sends
VECTORS_AT_ONCE = 4_096


def convert_vectors(db: psycopg.Connection[Any]) -> None:
    """Insert the copied vectors of all collections in eight bits, also the staged ones."""
    halfvec = TypeInfo.fetch(db, "halfvec")
    assert halfvec is not None  # noqa: S101 (the extension defines it)
    register_halfvec_info(db, halfvec)
    for collection, rows, codes in _read(db, "passages"):
        passages = zip(rows, make_passage_vectors(codes), strict=True)
        values = [(id_.hex(), *vector, document.hex(), access) for (id_, document, access), vector in passages]
        run_by_column(db, SQL["insert_passage_vector"], collection, values)
    for collection, rows, codes in _read(db, "entities"):
        entities = zip(rows, make_entity_vectors(codes), strict=True)
        run_by_column(
            db, SQL["insert_entity_vector"], collection, [(id_.hex(), *vector) for (id_,), vector in entities]
        )
    for collection, rows, codes in _read(db, "staged"):
        staged = zip(rows, codes, strict=True)
        values = [(model, kind, id_.hex(), place, code.tobytes()) for (model, kind, id_, place), code in staged]
        run_by_column(db, OLD["insert_staged"], collection, values)
    db.execute(OLD["begin"], {"collection": ""})


def _read(db: psycopg.Connection[Any], query: str) -> Iterator[tuple[int, list[Any], list[Codes]]]:
    """Yield rows of one collection and their vectors in eight bits. Row-level security shows that collection alone."""
    with db.cursor("halves", binary=True) as reader:
        reader.adapters.register_loader("uuid", ByteaBinaryLoader)
        reader.execute(OLD[query])
        while batch := reader.fetchmany(VECTORS_AT_ONCE):
            for collection, found in groupby(batch, key=itemgetter(0)):
                db.execute(OLD["begin"], {"collection": str(collection)})
                rows = list(found)
                codes = encode_halves([_swap_bytes(vector) for *_, vector in rows])
                yield collection, [row[1:-1] for row in rows], [np.frombuffer(code, np.int8) for code in codes]


def _swap_bytes(vector: bytes) -> bytes:
    return np.frombuffer(vector, ">f2", offset=HEADER_BYTES).astype(np.float16).tobytes()
