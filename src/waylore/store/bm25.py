"""Score passages by BM25, the same on every engine, and pack the terms of a passage. This module knows no SQL.

FTS5's own bm25() reads the whole posting list of every term of the question (300 ms at a million passages) and
counts the words of all collections together. Therefore FTS5 only finds candidates, and this module scores them.
Candidates come from the rarest terms of the question, up to `MAX_POSTINGS` postings. The common terms then
count for every candidate, but add no candidates of their own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.75
MAX_POSTINGS = 2_000  # postings that one search reads
_COUNT_BITS = 6  # bits for the count of a term in a passage; a count above 63 is stored as 63
_MAX_COUNT = (1 << _COUNT_BITS) - 1
_ROW_BITS = 32 - _COUNT_BITS  # of a row in the cell of its term; a cell before it has the others, if there are any
_MAX_ROW = (1 << _ROW_BITS) - 1
_LOW_BITS = 16  # of a row, by which nearly all other terms are left out before rows are compared
_LOW = np.uint32((1 << _LOW_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The size of a set of passages: a whole collection, or the passages that a caller with labels may see."""

    passages: int
    length: int  # in terms

    @property
    def average_length(self) -> float:
        """The average length of a passage in terms, at least 1."""
        return max(self.length / max(self.passages, 1), 1.0)


def pack_terms(counts: Counter[int]) -> bytes:
    """Pack the rows of terms and the count of each, in four bytes per term, or in eight from row 2^26 on.

    Eight bytes are two cells. The first has the count 0, which no term has, and the higher bits of the row.
    """
    cells = []
    for row, count in sorted(counts.items()):
        if high := row >> _ROW_BITS:
            cells.append(high << _COUNT_BITS)
        cells.append((row & _MAX_ROW) << _COUNT_BITS | min(count, _MAX_COUNT))
    return np.array(cells, dtype=np.uint32).tobytes()


def pack_sequence(rows: Sequence[int]) -> bytes:
    """Pack the rows of the terms of a text in their order, in four bytes per term."""
    return np.array(rows, dtype=np.int32).tobytes()


def find_places(sequences: Sequence[bytes], terms: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return, for each term of all sequences, its place in `terms`, which are rows; -1 for other terms."""
    rows = np.frombuffer(b"".join(sequences), dtype=np.int32)
    if not terms:
        return np.full(len(rows), -1, dtype=np.int32)
    order = np.argsort(terms, kind="stable")
    wanted = np.array(terms, dtype=np.int32)[order]
    place = np.searchsorted(wanted, rows).clip(max=len(wanted) - 1)
    return np.where(wanted[place] == rows, order[place], -1).astype(np.int32)


def unpack_terms(packed: bytes) -> list[int]:
    """Return the rows of the terms of a passage."""
    rows: list[int] = unpack_counts(packed)[0].tolist()
    return rows


def unpack_counts(packed: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the rows of the terms of a passage, and how often each occurs."""
    cells = np.frombuffer(packed, dtype=np.uint32)
    counts = cells & _MAX_COUNT
    if counts.all():
        return (cells >> _COUNT_BITS).astype(np.int64), counts.astype(np.float64)
    terms = np.flatnonzero(counts)
    return _read_rows(cells, terms).astype(np.int64), counts[terms].astype(np.float64)


def _read_rows(cells: npt.NDArray[np.uint32], terms: npt.NDArray[np.intp]) -> npt.NDArray[np.uint32]:
    """Return the rows of terms, given by the places of their cells. The last cell is always of a term."""
    before = cells[terms - 1]
    high = np.where(before & _MAX_COUNT, np.uint32(0), before >> _COUNT_BITS)
    return (cells[terms] >> _COUNT_BITS | high << _ROW_BITS).astype(np.uint32, copy=False)


def compute_idf(frequencies: Sequence[int], passages: int) -> npt.NDArray[np.float64]:
    """Return the weight of terms by their rarity, given the number of passages with each."""
    counts = np.asarray(frequencies, dtype=np.float64)
    weights: npt.NDArray[np.float64] = np.log1p((passages - counts + 0.5) / (counts + 0.5))
    return weights


def choose_rarest(terms: Sequence[tuple[str, int]], *, max_postings: float) -> list[str]:
    """Choose the rarest terms that together have at most `max_postings` postings; always at least one.

    Each term comes with its number of passages.
    """
    chosen: list[str] = []
    postings = 0.0
    for term, passages in sorted(terms, key=lambda t: (t[1], t[0])):
        postings += passages
        if chosen and postings > max_postings:
            break
        chosen.append(term)
    return chosen


def widen_limit(max_postings: int, visible: int, passages: int) -> float:
    """Return how many postings a search may read if the filter lets `visible` of the counted passages through.

    The smaller their share, the more postings are read.
    """
    return max_postings if visible >= max_postings else max_postings * passages / max(visible, 1)


def score_rows(
    rows: Sequence[tuple[bytes, int, bytes]], terms: Sequence[tuple[int, int]], *, passages: int, average_length: float
) -> dict[str, float]:
    """Score passages (id, length, packed terms) as a search does, by id. A passage without a term has score 0."""
    if not terms or not rows:
        return {id_.hex(): 0.0 for id_, *_ in rows}
    found = [(length, blob) for _, length, blob in rows]
    scores = np.round(score(found, terms, passages=passages, average_length=average_length), 6).tolist()
    return {id_.hex(): each for (id_, *_), each in zip(rows, scores, strict=True)}


def score(
    candidates: Sequence[tuple[int, bytes]],
    terms: Sequence[tuple[int, int]],
    *,
    passages: int,
    average_length: float,
) -> npt.NDArray[np.float64]:
    """Score candidates (length, packed terms) against the terms of a question (row, number of passages)."""
    lengths = np.array([length for length, _ in candidates], dtype=np.float64)
    sizes = np.array([len(blob) // 4 for _, blob in candidates], dtype=np.int64)
    packed = b"".join([blob for _, blob in candidates])
    return score_columns(lengths, sizes, packed, terms, passages=passages, average_length=average_length)


def score_columns(
    lengths: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
    packed: bytes,
    terms: Sequence[tuple[int, int]],
    *,
    passages: int,
    average_length: float,
) -> npt.NDArray[np.float64]:
    """Score candidates as `score` does, from their lengths, the numbers of their cells and all packed terms."""
    cells = np.frombuffer(packed, dtype=np.uint32)
    wanted = np.array(sorted(row for row, _ in terms), dtype=np.uint32)
    frequency = dict(terms)
    idf = compute_idf([frequency[row] for row in wanted.tolist()], passages)
    is_possible = np.zeros(1 << _LOW_BITS, np.bool_)
    is_possible[wanted & _LOW] = True
    possible = np.flatnonzero(is_possible[cells >> _COUNT_BITS & _LOW])
    rows = _read_rows(cells, possible)
    place = np.searchsorted(wanted, rows).clip(max=len(wanted) - 1)
    is_found = wanted[place] == rows
    found = possible[is_found]
    owner = np.searchsorted(np.cumsum(sizes), found, side="right")
    count = (cells[found] & _MAX_COUNT).astype(np.float64)  # 0 for a cell of higher bits, which adds nothing
    norm = K1 * (1 - B + B * lengths[owner] / average_length)
    gain = idf[place[is_found]] * count * (K1 + 1) / (count + norm)
    totals: npt.NDArray[np.float64] = np.bincount(owner, weights=gain, minlength=len(lengths)).astype(np.float64)
    return totals
