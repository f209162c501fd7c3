"""Change the embedding model of a SQLite collection: stage vectors, then activate the model all at once.

Until then, searches use the old vectors. Two models are never mixed.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import apsw
import numpy as np

from waylore.errors import DimensionMismatch
from waylore.store import packing, vectors
from waylore.store import rows as columns
from waylore.store.packs import Packs
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import set_codes
from waylore.store.sqlite.scope import run_by_ids, run_by_rows
from waylore.store.sqlite.write import set_model
from waylore.types.knowledge import Embeddable, Entity, Fact, Passage

SQL = load_queries("waylore.store.sqlite")
KINDS = ("passage", "entity", "fact")
CHUNK_ROWS = 4_096
CHUNK_PACKS = 500


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
    for kind in ("passage", "entity"):
        db.execute(SQL[f"adopt_{kind}"], bound)
    _adopt_facts(db, bound)
    set_model(db, collection, model, dimension)
    for kind in ("passage", "entity"):
        rebuild_bits(db, kind, collection, dimension)
    db.execute(SQL["drop_staged"], {"collection": collection})
    return True


def _read_unembedded(db: apsw.Connection, kind: str, bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    rows = db.execute(SQL[f"unembedded_{kind}"], bound).fetchall()
    if kind == "passage":
        return tuple(columns.to_passages(rows))
    if kind == "entity":
        return tuple(columns.to_entity([row]) for row in rows)
    return _list_unembedded_facts(db, rows, bound)


def _list_unembedded_facts(db: apsw.Connection, rows: list[Any], bound: dict[str, Any]) -> tuple[Embeddable, ...]:
    """Return the facts of packs that have no staged vector."""
    staged = {(row, place) for row, place, _ in run_by_rows(db, "staged_facts", [row[6] for row in rows], **bound)}
    source = packing.read_passage_packs([row[:6] for row in rows])
    of, places = source.packs.fact_of.tolist(), source.packs.place_of.tolist()
    found = zip(packing.list_facts(source), of, places, strict=True)
    unstaged = [replace(fact, vector=None) for fact, of, place in found if (rows[of][6], place) not in staged]
    return tuple(unstaged[: bound["limit"]])


def _adopt_facts(db: apsw.Connection, bound: dict[str, Any]) -> None:
    """Replace the vectors in packs by the staged ones."""
    passages = [row for (row,) in db.execute(SQL["staged_passages"], bound)]
    for start in range(0, len(passages), CHUNK_PACKS):
        rows = np.array(passages[start : start + CHUNK_PACKS], dtype=np.int64)
        codes = columns.group_pairs(
            (row, (place, code)) for row, place, code in run_by_rows(db, "staged_facts", rows, **bound)
        )
        packs = zip(rows.tolist(), run_by_rows(db, "packs", rows), strict=True)
        replaced = [(row, *packing.replace_vectors(pack, dict(codes[row]))) for row, (*_, pack, _) in packs]
        db.executemany(SQL["set_pack"], [(pack, row) for row, pack, _ in replaced])
        run_by_rows(db, "delete_statement_vectors", rows)
        db.executemany(SQL["insert_statement_vectors"], [(row, vectors) for row, _, vectors in replaced])


def _find_rows(db: apsw.Connection, collection: int, items: Sequence[Embeddable]) -> list[tuple[str, int, int]]:
    """Return kind, row and place of each item. The row of a forgotten item is 0.

    The row of a fact is that of its passage, and its place is that in the pack.
    """
    ids_of = {kind: [i.id for i in items if _get_kind(i) == kind] for kind in ("passage", "entity")}
    found = {
        kind: {id_.hex(): (row, 0) for id_, row in run_by_ids(db, f"{kind}_rows", ids, collection=collection)}
        for kind, ids in ids_of.items()
    }
    facts = _find_fact_places(db, collection, {item.passage_id for item in items if isinstance(item, Fact)})
    return [
        (
            _get_kind(item),
            *(
                facts.get((item.passage_id, item.id), (0, 0))
                if isinstance(item, Fact)
                else found[_get_kind(item)].get(item.id, (0, 0))
            ),
        )
        for item in items
    ]


def _find_fact_places(
    db: apsw.Connection, collection: int, passages: Collection[str]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the row of the passage and the place in its pack, by the ids of passage and fact."""
    rows = {row: id_.hex() for id_, row in run_by_ids(db, "passage_rows", list(passages), collection=collection)}
    numbers = np.array(sorted(rows), dtype=np.int64)
    packs = Packs([row[4] for row in run_by_rows(db, "packs", numbers)])
    of = numbers[packs.fact_of].tolist()
    ids = packing.split_ids(packs.ids.tobytes())
    return {(rows[row], id_): (row, place) for row, id_, place in zip(of, ids, packs.place_of.tolist(), strict=True)}


def _get_kind(item: Embeddable) -> str:
    return "passage" if isinstance(item, Passage) else "entity" if isinstance(item, Entity) else "fact"


def _encode(item: Embeddable) -> bytes:
    if item.vector is None:
        raise DimensionMismatch(f"{_get_kind(item)} {item.id} has no vector to stage")
    return vectors.to_int8(item.vector)


def rebuild_bits(db: apsw.Connection, kind: str, collection: int, dimension: int) -> None:
    """Write the bits of all vectors of a collection into their blocks."""
    found = db.execute(SQL[f"collection_{kind}_vectors"], {"collection": collection})
    while chunk := list(islice(found, CHUNK_ROWS)):
        bits = vectors.to_bits(vectors.join_codes((blob for _, blob in chunk), dimension))
        set_codes(db, [row for row, _ in chunk], np.ascontiguousarray(bits), is_live=True)
