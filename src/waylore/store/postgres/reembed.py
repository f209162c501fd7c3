"""Another embedding model for a PostgreSQL collection: its vectors are staged, then adopted all at once.

Searches go on with the old vectors until then, and two models are never mixed.
"""

from collections.abc import Sequence
from typing import Any

from pgvector import HalfVector

from waylore.errors import DimensionMismatch
from waylore.store import rows as columns
from waylore.store import vectors
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.fetch import FIRST
from waylore.store.postgres.scope import run
from waylore.store.postgres.write import set_model
from waylore.store.sql import load_queries
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.postgres")
KINDS = ("passage", "entity", "fact")


def unembedded(db: Connection, collection: int, model: str, *, limit: int) -> tuple[Embeddable, ...]:
    """What has no vector of this model staged yet, kind by kind."""
    for kind in KINDS:
        bound = {"collection": collection, "model": model}
        last = [id_.hex() for (id_,) in run(db, "last_staged", **bound, kind=kind)]
        for after in dict.fromkeys((*last, FIRST)):  # onward from the last one, then whatever was passed over
            found = _unembedded(db, kind, {**bound, "after": after, "limit": limit})
            if found:
                return found
    return ()


def stage(db: Connection, collection: int, items: Sequence[Embeddable], *, model: str) -> None:
    """Keep vectors for later."""
    rows = {
        (item.id, _passage(item)): (_kind(item), item.id, _passage(item), *_encoded(item)) for item in items
    }
    if rows:
        arrays = map(list, zip(*rows.values(), strict=True))
        db.execute(SQL["stage"], (collection, model, *arrays))


def adopt(db: Connection, collection: int, model: str) -> bool:
    """Swap the vectors, if none is missing."""
    if unembedded(db, collection, model, limit=1):
        return False
    bound = {"collection": collection, "model": model}
    dimensions = run(db, "staged_dimension", **bound).fetchall()
    if not dimensions:  # an empty collection takes the model of its first write
        return True
    for kind in KINDS:
        run(db, f"adopt_{kind}", **bound)
    set_model(db, collection, model, dimensions[0][0])
    run(db, "drop_staged", collection=collection)
    return True


def _unembedded(db: Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = run(db, f"unembedded_{kind}", **bound).fetchall()
    if kind == "passage":
        return tuple(columns.passages(rows))
    if kind == "entity":
        return tuple(columns.entity([row]) for row in rows)
    return tuple(columns.facts(rows))


def _kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _passage(item: Embeddable) -> str:
    return item.passage_id if isinstance(item, Fact) else item.id


def _encoded(item: Embeddable) -> tuple[HalfVector | None, bytes | None]:
    if item.vector is None:
        raise DimensionMismatch(f"{_kind(item)} {item.id} has no vector to stage")
    return (None, vectors.quantised(item.vector)) if isinstance(item, Fact) else (HalfVector(item.vector), None)
