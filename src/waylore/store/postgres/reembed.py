"""Change the embedding model of a PostgreSQL collection: stage vectors, then activate the model all at once.

Until then, searches use the old vectors. Two models are never mixed.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from waylore.errors import DimensionMismatch
from waylore.store import packing, vectors
from waylore.store import rows as columns
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.insert import insert_vectors, make_entity_vectors, make_passage_vectors
from waylore.store.postgres.scope import PostgresCollection, run, run_many
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.postgres.write import set_model
from waylore.store.sql import load_queries
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.postgres")
KINDS = ("passage", "entity", "fact")
PACKS_AT_ONCE = 500
VECTORS_AT_ONCE = 4_096


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
    rows = {(item.id, _get_owner(item)): (*_make_key(item), _encode(item)) for item in items}
    if rows:
        arrays = map(list, zip(*rows.values(), strict=True))
        db.execute(SQL["stage"], (collection, model, *arrays))


def activate_model(db: Connection, of: PostgresCollection, model: str) -> bool:
    """Replace the vectors with the staged ones, and return False if some are missing."""
    collection = of.key
    if list_unembedded(db, collection, model, limit=1):
        return False
    bound = {"collection": collection, "model": model}
    dimensions = run(db, "staged_dimension", **bound).fetchall()
    if not dimensions:  # an empty collection takes the model of its first write
        return True
    for kind in ("passage", "entity"):
        _adopt_vectors(db, of, kind, bound, dimensions[0][0])
    _adopt_facts(db, collection, model, dimensions[0][0])
    set_model(db, collection, model, dimensions[0][0])
    run(db, "drop_staged", collection=collection)
    return True


def _read_unembedded(db: Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = run(db, f"unembedded_{kind}", **bound).fetchall()
    if kind == "passage":
        return tuple(columns.to_passages(rows))
    if kind == "entity":
        return tuple(columns.to_entity([row]) for row in rows)
    return _list_unembedded_facts(rows)[: bound["limit"]]


def _list_unembedded_facts(rows: Sequence[Any]) -> tuple[Embeddable, ...]:
    """Return the facts of packs that have no staged vector."""
    source = packing.read_passage_packs([row[:6] for row in rows])
    of, places = source.packs.fact_of.tolist(), source.packs.place_of.tolist()
    found = zip(packing.list_facts(source), of, places, strict=True)
    return tuple(replace(fact, vector=None) for fact, of, place in found if place not in (rows[of][6] or ()))


def _adopt_vectors(db: Connection, of: PostgresCollection, kind: str, bound: dict[str, Any], dimension: int) -> None:
    """Replace the vectors of passages or entities by the staged ones."""
    bound = {**bound, "kind": kind, "after": LOWEST_ID, "limit": VECTORS_AT_ONCE}
    while rows := run(db, "staged_vectors", **bound).fetchall():
        codes = vectors.join_codes((code for *_, code in rows), dimension)
        encoded = make_passage_vectors(codes) if kind == "passage" else make_entity_vectors(codes)
        owners = [(document.hex(), access) if document else () for _, document, access, _ in rows]
        replaced = [(row[0].hex(), *vector, *owner) for row, vector, owner in zip(rows, encoded, owners, strict=True)]
        insert_vectors(db, f"insert_{kind}_vector", of, replaced)
        bound["after"] = rows[-1][0].hex()


def _adopt_facts(db: Connection, collection: int, model: str, dimension: int) -> None:
    """Replace the vectors in packs by the staged ones."""
    bound = {"collection": collection, "model": model, "after": LOWEST_ID, "limit": PACKS_AT_ONCE}
    while rows := run(db, "staged_facts", **bound).fetchall():
        replaced = [
            (id_.hex(), *packing.replace_vectors(pack, dict(enumerate(packing.split_codes(codes, dimension)))))
            for id_, pack, codes in rows
        ]
        run_many(db, "set_pack", collection, [(id_, pack) for id_, pack, _ in replaced])
        run_many(db, "set_statement_vectors", collection, [(id_, codes) for id_, _, codes in replaced])
        bound["after"] = replaced[-1][0]


def _get_kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _get_owner(item: Embeddable) -> str:
    """Return the id under which a vector is staged: that of the passage of a fact."""
    return item.passage_id if isinstance(item, Fact) else item.id


def _make_key(item: Embeddable) -> tuple[str, str, str | None]:
    return _get_kind(item), _get_owner(item), item.id if isinstance(item, Fact) else None


def _encode(item: Embeddable) -> bytes:
    if item.vector is None:
        raise DimensionMismatch(f"{_get_kind(item)} {item.id} has no vector to stage")
    return vectors.to_int8(item.vector)
