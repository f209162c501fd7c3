"""Change the embedding model of a SQLite collection: stage vectors, then activate the model all at once.

Until then, searches use the old vectors. Two models are never mixed.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np

from waylore.errors import DimensionMismatch
from waylore.store import rows as columns
from waylore.store import vectors
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import set_codes
from waylore.store.sqlite.scope import run_by_ids
from waylore.store.sqlite.write import set_model
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.sqlite")
KINDS = ("passage", "entity", "fact")
CHUNK_ROWS = 4_096


def list_unembedded(db: apsw.Connection, collection: int, model: str, *, limit: int) -> tuple[Embeddable, ...]:
    """Return items without a staged vector of this model, one kind at a time."""
    for kind in KINDS:
        bound = {"collection": collection, "model": model, "kind": kind}
        last = db.execute(SQL["last_staged"], bound).get
        for after in dict.fromkeys((last, 0)):  # first after the last staged row, then rows that were skipped
            found = _read_unembedded(db, kind, {**bound, "after": after, "limit": limit})
            if found:
                return found
    return ()


def stage_vectors(db: apsw.Connection, collection: int, items: Sequence[Embeddable], *, model: str) -> None:
    """Store vectors for later activation."""
    rows = _find_rows(db, collection, items)
    db.executemany(
        SQL["stage"],
        [
            (collection, model, kind, row, passage, _encode(item))
            for item, (kind, row, passage) in zip(items, rows, strict=True)
            if row
        ],
    )


def activate_model(db: apsw.Connection, collection: int, model: str) -> bool:
    """Replace the vectors with the staged ones, and return False if some are missing."""
    if list_unembedded(db, collection, model, limit=1):
        return False
    bound = {"collection": collection, "model": model}
    dimension = db.execute(SQL["staged_dimension"], bound).get
    if dimension is None:  # an empty collection takes the model of its first write
        return True
    for kind in KINDS:
        db.execute(SQL[f"adopt_{kind}"], bound)
    set_model(db, collection, model, dimension)
    for kind in ("passage", "entity"):
        _rebuild_codes(db, kind, collection, dimension)
    db.execute(SQL["drop_staged"], {"collection": collection})
    return True


def _read_unembedded(db: apsw.Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = db.execute(SQL[f"unembedded_{kind}"], bound).fetchall()
    if kind == "passage":
        return tuple(columns.to_passages(rows))
    if kind == "entity":
        return tuple(columns.to_entity([row]) for row in rows)
    return tuple(columns.to_facts(rows))


def _find_rows(db: apsw.Connection, collection: int, items: Sequence[Embeddable]) -> list[tuple[str, int, int]]:
    """Return kind, row and (for a fact) passage of each item. The row of a forgotten item is 0."""
    ids_of = {kind: [i.id for i in items if _get_kind(i) == kind] for kind in KINDS}
    ids_of["passage"] += [i.passage_id for i in items if isinstance(i, Fact)]
    found = {
        kind: {id_.hex(): row for id_, row in run_by_ids(db, f"{kind}_rows", ids, collection=collection)}
        for kind, ids in ids_of.items()
    }
    return [
        (
            _get_kind(item),
            found[_get_kind(item)].get(item.id, 0),
            found["passage"].get(item.passage_id, 0) if isinstance(item, Fact) else 0,
        )
        for item in items
    ]


def _get_kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _encode(item: Embeddable) -> bytes:
    if item.vector is None:
        raise DimensionMismatch(f"{_get_kind(item)} {item.id} has no vector to stage")
    return vectors.to_int8(item.vector) if isinstance(item, Fact) else vectors.to_half(item.vector)


def _rebuild_codes(db: apsw.Connection, kind: str, collection: int, dimension: int) -> None:
    found = db.execute(SQL[f"collection_{kind}_vectors"], {"collection": collection})
    while chunk := list(islice(found, CHUNK_ROWS)):
        bits = vectors.to_bits(vectors.from_half((blob for _, blob in chunk), dimension))
        set_codes(db, [row for row, _ in chunk], np.ascontiguousarray(bits), is_live=True)
