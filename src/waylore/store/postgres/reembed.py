"""Change the embedding model of a PostgreSQL collection: stage vectors, then activate the model all at once.

Until then, searches use the old vectors. Two models are never mixed.
"""

from collections.abc import Sequence
from typing import Any

from pgvector import HalfVector

from waylore.errors import DimensionMismatch
from waylore.store import rows as columns
from waylore.store import vectors
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.fetch import LOWEST_ID
from waylore.store.postgres.scope import run
from waylore.store.postgres.write import set_model
from waylore.store.sql import load_queries
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.postgres")
KINDS = ("passage", "entity", "fact")


def list_unembedded(db: Connection, collection: int, model: str, *, limit: int) -> tuple[Embeddable, ...]:
    """Return items without a staged vector of this model, one kind at a time."""
    for kind in KINDS:
        bound = {"collection": collection, "model": model}
        last = [id_.hex() for (id_,) in run(db, "last_staged", **bound, kind=kind)]
        for after in dict.fromkeys((*last, LOWEST_ID)):  # first after the last staged id, then ids that were skipped
            found = _read_unembedded(db, kind, {**bound, "after": after, "limit": limit})
            if found:
                return found
    return ()


def stage_vectors(db: Connection, collection: int, items: Sequence[Embeddable], *, model: str) -> None:
    """Store vectors for later activation."""
    rows = {
        (item.id, _get_passage(item)): (_get_kind(item), item.id, _get_passage(item), *_encode(item)) for item in items
    }
    if rows:
        arrays = map(list, zip(*rows.values(), strict=True))
        db.execute(SQL["stage"], (collection, model, *arrays))


def activate_model(db: Connection, collection: int, model: str) -> bool:
    """Replace the vectors with the staged ones, and return False if some are missing."""
    if list_unembedded(db, collection, model, limit=1):
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


def _read_unembedded(db: Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = run(db, f"unembedded_{kind}", **bound).fetchall()
    if kind == "passage":
        return tuple(columns.to_passages(rows))
    if kind == "entity":
        return tuple(columns.to_entity([row]) for row in rows)
    return tuple(columns.to_facts(rows))


def _get_kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _get_passage(item: Embeddable) -> str:
    return item.passage_id if isinstance(item, Fact) else item.id


def _encode(item: Embeddable) -> tuple[HalfVector | None, bytes | None]:
    if item.vector is None:
        raise DimensionMismatch(f"{_get_kind(item)} {item.id} has no vector to stage")
    return (None, vectors.to_int8(item.vector)) if isinstance(item, Fact) else (HalfVector(item.vector), None)
