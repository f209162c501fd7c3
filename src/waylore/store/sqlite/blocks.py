"""Allocate rows of passages and entities in blocks, store the vectors of rows, and read those of passages.

A block belongs to one collection, so that the bits of its vectors lie together and a search reads no bits of
another collection. A connection keeps the ids and vectors that it has read by row for its next search. The caller may
see these rows: a query or the filter has decided it before.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import apsw
import numpy as np
import numpy.typing as npt

from waylore.errors import StoreError
from waylore.store import vectors as codes
from waylore.store.checks import check_vector
from waylore.store.packing import split_ids
from waylore.store.packs import ID
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import (
    MAX_BYTES,
    Columns,
    KeptRows,
    ReadColumns,
    Rows,
    SqliteCollection,
    SqliteScope,
    parse_numbers,
    read_joined,
    run_by_ids,
    run_by_rows,
)
from waylore.types.knowledge import Vector

Measured: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]  # vectors and the length of each
Lengths: TypeAlias = npt.NDArray[np.float64]  # of passages, in terms
TERM_BYTES = 4  # of a cell of a term among those of its passage
OBJECT_BYTES = 64  # of the terms of a passage beside the terms themselves
NO_VECTOR = np.float32(-1.0)  # the length of a row without a vector
SQL = load_queries("waylore.store.sqlite")


def allocate_rows(
    db: apsw.Connection, into: SqliteCollection, kind: str, count: int, next_row: int
) -> tuple[list[int], int]:
    """Return rows for `count` new items, from blocks of the collection, and the next free row."""
    rows: list[int] = []
    size = codes.BLOCK_ROWS * 8 * codes.count_words(into.statistics.dimension or 0)
    while len(rows) < count:
        if next_row % codes.BLOCK_ROWS == 0:
            bound = {"kind": kind, "collection": into.row, "size": size, "rows": codes.BLOCK_ROWS}
            next_row = codes.BLOCK_ROWS * db.execute(SQL["new_block"], bound).get
        free = codes.BLOCK_ROWS - next_row % codes.BLOCK_ROWS
        taken = min(count - len(rows), free)
        rows.extend(range(next_row, next_row + taken))
        next_row += taken
    return rows, next_row


def insert_vectors(
    db: apsw.Connection,
    into: SqliteCollection,
    kind: str,
    rows: Sequence[int],
    vectors: Sequence[Vector | None],
) -> None:
    """Store the vectors of new rows, if the collection has a model."""
    present = [v for v in (check_vector(v, into.statistics.dimension) for v in vectors) if v is not None]
    if present:
        encoded = codes.quantise(np.stack(present))
        blobs = [(row, code.tobytes()) for row, code in zip(rows, encoded, strict=True)]
        db.executemany(SQL[f"insert_{kind}_vector"], blobs)
        set_codes(db, rows, codes.to_bits(encoded), is_live=True)


def set_codes(db: apsw.Connection, rows: Sequence[int], bits: codes.Bits, *, is_live: bool) -> None:
    """Write the bits of rows into their blocks, in place."""
    at = np.asarray(rows, dtype=np.int64)
    order = np.argsort(at, kind="stable")
    at, bits = at[order], bits[order]
    breaks = np.flatnonzero((np.diff(at) != 1) | (at[1:] % codes.BLOCK_ROWS == 0)) + 1
    for start, end in pairwise([0, *breaks.tolist(), len(at)]):
        block, slot = divmod(int(at[start]), codes.BLOCK_ROWS)
        with db.blob_open("main", "blocks", "codes", block, True) as blob:
            for plane in range(bits.shape[1]):
                blob.seek((plane * codes.BLOCK_ROWS + slot) * 8)
                blob.write(bits[start:end, plane].tobytes())
        with db.blob_open("main", "blocks", "live", block, True) as blob:
            live = np.unpackbits(np.frombuffer(blob.read(), dtype=np.uint8))
            live[slot : slot + end - start] = is_live
            blob.seek(0)
            blob.write(np.packbits(live).tobytes())


def remove_vectors(db: apsw.Connection, of: SqliteCollection, kind: str, rows: Sequence[int]) -> None:
    """Remove the vectors, bits, use counts and staged vectors of rows."""
    run_by_rows(db, f"delete_{kind}_vectors", rows)
    run_by_rows(db, "delete_usage", rows, collection=of.row, kind=kind)
    run_by_rows(db, "unstage", rows, collection=of.row, kind=kind)
    if rows and of.statistics.dimension is not None:
        width = codes.count_words(of.statistics.dimension)
        set_codes(db, rows, np.zeros((len(rows), width), dtype=np.uint64), is_live=False)


# -- reading -------------------------------------------------------------------------------------------


def find_visible(db: apsw.Connection, scope: SqliteScope, passages: Sequence[str]) -> dict[int, str]:
    """Return the ids of those passages that the caller may see, by row."""
    seen = scope.visible.by_id
    visible = {seen[id_]: id_ for id_ in passages if id_ in seen}
    others = [id_ for id_ in passages if id_ not in seen]
    found = run_by_ids(db, "visible_passages", others, **scope.bindings)
    for rows, ids in found:
        visible |= dict(zip(parse_numbers(rows).tolist(), split_ids(ids or b""), strict=True))
    return visible


def read_passage_ids(db: apsw.Connection, scope: SqliteScope, rows: Rows) -> bytes:
    """Return the ids of passages, given by distinct rows, one behind the other."""

    def read(new: Rows) -> Columns:
        return (np.frombuffer(read_joined(db, "joined_passage_ids", new), ID),)

    [ids] = scope.kept.setdefault("ids", KeptRows()).take(rows, read)
    return ids.tobytes()


def read_passage_vectors(db: apsw.Connection, scope: SqliteScope, rows: Rows, dimension: int) -> Measured:
    """Return the vectors of passages, given by distinct rows. Each must have one."""

    def read(new: Rows) -> Measured:
        return codes.measure([read_joined(db, "joined_passage_vectors", new)], dimension)

    vectors, lengths = _take_vectors(scope, rows, dimension, read)
    if lengths.min(initial=0.0) < 0:
        raise StoreError(f"{db.filename}: a passage lacks its vector: run `waylore doctor`")
    return vectors, lengths


def find_passage_vectors(db: apsw.Connection, scope: SqliteScope, rows: Rows, dimension: int) -> Measured:
    """Return the vectors of passages, given by distinct rows. One without a vector has the length NO_VECTOR."""

    def read(new: Rows) -> Measured:
        vectors, lengths = np.zeros((len(new), dimension), np.float32), np.full(len(new), NO_VECTOR)
        [(numbers, joined)] = run_by_rows(db, "vectors_of_passage_rows", new)
        found, order = parse_numbers(numbers), np.argsort(new)
        at = order[np.searchsorted(new, found, sorter=order)]
        vectors[at], lengths[at] = codes.measure([joined or b""], dimension)
        return vectors, lengths

    return _take_vectors(scope, rows, dimension, read)


def read_passage_terms(db: apsw.Connection, scope: SqliteScope, rows: Rows) -> tuple[Lengths, Rows, bytes]:
    """Return the terms of passages, given by distinct rows, one behind the other.

    Before them come the length of each passage and the number of cells that its terms take.
    """
    collection = scope.collection
    if TERM_BYTES * collection.length + OBJECT_BYTES * collection.statistics.passages > MAX_BYTES:
        return _read_terms(db, rows)

    def read(new: Rows) -> Columns:
        lengths, sizes, packed = _read_terms(db, new)
        ends = (TERM_BYTES * np.cumsum(sizes)).tolist()
        parts = np.empty(len(new), object)
        parts[:] = [packed[start:end] for start, end in pairwise([0, *ends])]
        return lengths, sizes, parts

    lengths, sizes, parts = scope.kept.setdefault("terms", KeptRows()).take(rows, read)
    return lengths, sizes, b"".join(parts.tolist())


def _read_terms(db: apsw.Connection, rows: Rows) -> tuple[Lengths, Rows, bytes]:
    lengths, sizes, packed = db.execute(SQL["joined_passage_terms"], {"rows": apsw.carray(rows)}).get
    return parse_numbers(lengths).astype(np.float64), parse_numbers(sizes), packed or b""


def _take_vectors(scope: SqliteScope, rows: Rows, dimension: int, read: ReadColumns) -> Measured:
    """Return vectors that are kept, unless those of the collection would be too many."""
    are_few = scope.collection.statistics.passages * (dimension + 1) * np.float32().nbytes <= MAX_BYTES
    vectors, lengths = scope.kept.setdefault("vectors", KeptRows()).take(rows, read) if are_few else read(rows)
    return vectors, lengths
