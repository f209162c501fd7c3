"""Rows in blocks, and the vectors that belong to them, in the SQLite store.

Passages and entities get their rows from blocks of one collection, so that the bits of a block's vectors lie
together and a search reads nothing of another collection.
"""

from collections.abc import Sequence
from itertools import pairwise

import apsw
import numpy as np

from waylore.store import vectors as codes
from waylore.store.checks import checked
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import Collection, by_rows
from waylore.types.knowledge import Vector

SQL = load_queries("waylore.store.sqlite")


def allocate(
    db: apsw.Connection, into: Collection, kind: str, count: int, following: int
) -> tuple[list[int], int]:
    """Rows for `count` new things, from blocks that are the collection's own; and the next free one."""
    rows: list[int] = []
    size = codes.BLOCK * 8 * codes.words(into.statistics.dimension or 0)
    while len(rows) < count:
        if following % codes.BLOCK == 0:
            bound = {"kind": kind, "collection": into.row, "size": size, "rows": codes.BLOCK}
            following = codes.BLOCK * db.execute(SQL["new_block"], bound).get
        free = codes.BLOCK - following % codes.BLOCK
        taken = min(count - len(rows), free)
        rows.extend(range(following, following + taken))
        following += taken
    return rows, following


def insert_vectors(
    db: apsw.Connection,
    into: Collection,
    kind: str,
    rows: Sequence[int],
    vectors: Sequence[Vector | None],
) -> None:
    """Keep the vectors of new rows, if the collection has a model."""
    given = [v for v in (checked(v, into.statistics.dimension) for v in vectors) if v is not None]
    if given:
        halves = [(row, codes.halved(v)) for row, v in zip(rows, given, strict=True)]
        db.executemany(SQL[f"insert_{kind}_vector"], halves)
        set_codes(db, rows, codes.bits(np.stack(given)), is_live=True)


def set_codes(db: apsw.Connection, rows: Sequence[int], bits: codes.Bits, *, is_live: bool) -> None:
    """Write the bits of rows into their blocks, in place."""
    at = np.asarray(rows, dtype=np.int64)
    order = np.argsort(at, kind="stable")
    at, bits = at[order], bits[order]
    breaks = np.flatnonzero((np.diff(at) != 1) | (at[1:] % codes.BLOCK == 0)) + 1
    for start, end in pairwise([0, *breaks.tolist(), len(at)]):
        block, slot = divmod(int(at[start]), codes.BLOCK)
        with db.blob_open("main", "blocks", "codes", block, True) as blob:
            for plane in range(bits.shape[1]):
                blob.seek((plane * codes.BLOCK + slot) * 8)
                blob.write(bits[start:end, plane].tobytes())
        with db.blob_open("main", "blocks", "live", block, True) as blob:
            live = np.unpackbits(np.frombuffer(blob.read(), dtype=np.uint8))
            live[slot : slot + end - start] = is_live
            blob.seek(0)
            blob.write(np.packbits(live).tobytes())


def remove_vectors(db: apsw.Connection, of: Collection, kind: str, rows: Sequence[int]) -> None:
    """Leave no trace of the vectors of rows."""
    by_rows(db, f"delete_{kind}_vectors", rows)
    by_rows(db, "delete_usage", rows, kind=kind)
    by_rows(db, "unstage", rows, collection=of.row, kind=kind)
    if rows and of.statistics.dimension is not None:
        width = codes.words(of.statistics.dimension)
        set_codes(db, rows, np.zeros((len(rows), width), dtype=np.uint64), is_live=False)
