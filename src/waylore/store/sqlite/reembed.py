"""Another embedding model for a SQLite collection: its vectors are staged, then adopted all at once.

Searches go on with the old vectors until then, and two models are never mixed.
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
from waylore.store.sqlite.scope import by_ids
from waylore.store.sqlite.write import set_model
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.sqlite")
KINDS = ("passage", "entity", "fact")
CHUNK = 4_096


def unembedded(db: apsw.Connection, collection: int, model: str, *, limit: int) -> tuple[Embeddable, ...]:
    """What has no vector of this model staged yet, kind by kind."""
    for kind in KINDS:
        bound = {"collection": collection, "model": model, "kind": kind}
        last = db.execute(SQL["last_staged"], bound).get
        for after in dict.fromkeys((last, 0)):  # onward from the last one, then whatever was passed over
            found = _unembedded(db, kind, {**bound, "after": after, "limit": limit})
            if found:
                return found
    return ()


def stage(db: apsw.Connection, collection: int, items: Sequence[Embeddable], *, model: str) -> None:
    """Keep vectors for later."""
    rows = _rows(db, collection, items)
    db.executemany(
        SQL["stage"],
        [
            (collection, model, kind, row, passage, _encoded(item))
            for item, (kind, row, passage) in zip(items, rows, strict=True)
            if row
        ],
    )


def adopt(db: apsw.Connection, collection: int, model: str) -> bool:
    """Swap the vectors, if none is missing."""
    if unembedded(db, collection, model, limit=1):
        return False
    bound = {"collection": collection, "model": model}
    dimension = db.execute(SQL["staged_dimension"], bound).get
    if dimension is None:  # an empty collection takes the model of its first write
        return True
    for kind in KINDS:
        db.execute(SQL[f"adopt_{kind}"], bound)
    set_model(db, collection, model, dimension)
    for kind in ("passage", "entity"):
        _rebuild(db, kind, collection, dimension)
    db.execute(SQL["drop_staged"], {"collection": collection})
    return True


def _unembedded(db: apsw.Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = db.execute(SQL[f"unembedded_{kind}"], bound).fetchall()
    if kind == "passage":
        return tuple(columns.passages(rows))
    if kind == "entity":
        return tuple(columns.entity([row]) for row in rows)
    return tuple(columns.facts(rows))


def _rows(db: apsw.Connection, collection: int, items: Sequence[Embeddable]) -> list[tuple[str, int, int]]:
    """Kind, row and (for a fact) passage of each; row 0 for what was forgotten meanwhile."""
    asked = {kind: [i.id for i in items if _kind(i) == kind] for kind in KINDS}
    asked["passage"] += [i.passage_id for i in items if isinstance(i, Fact)]
    found = {
        kind: {id_.hex(): row for id_, row in by_ids(db, f"{kind}_rows", ids, collection=collection)}
        for kind, ids in asked.items()
    }
    return [
        (
            _kind(item),
            found[_kind(item)].get(item.id, 0),
            found["passage"].get(item.passage_id, 0) if isinstance(item, Fact) else 0,
        )
        for item in items
    ]


def _kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _encoded(item: Embeddable) -> bytes:
    if item.vector is None:
        raise DimensionMismatch(f"{_kind(item)} {item.id} has no vector to stage")
    return vectors.quantised(item.vector) if isinstance(item, Fact) else vectors.halved(item.vector)


def _rebuild(db: apsw.Connection, kind: str, collection: int, dimension: int) -> None:
    found = db.execute(SQL[f"collection_{kind}_vectors"], {"collection": collection})
    while chunk := list(islice(found, CHUNK)):
        bits = vectors.bits(vectors.unhalved((blob for _, blob in chunk), dimension))
        set_codes(db, [row for row, _ in chunk], np.ascontiguousarray(bits), is_live=True)
