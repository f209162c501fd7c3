"""BM25, the same on every engine: what is kept of a passage's terms, and how candidates are scored.

FTS5's own bm25() reads the whole posting list of every term of the question (300 ms at a million passages)
and counts words of all collections together, so we use FTS5 to find candidates and score them here.
Candidates come from the rarest terms of the question first, up to `REACH` postings; the common terms then
count for every candidate, but bring none of their own. Nothing here knows SQL.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from waylore.errors import StoreError

K1 = 1.2
B = 0.75
REACH = 2_000  # postings that one search may read
_COUNT_BITS = 6  # how often a term occurs in a passage, up to 63
MOST_TERMS = 1 << (32 - _COUNT_BITS)  # rows of terms that the other bits can tell


def packed(counts: Counter[int]) -> bytes:
    """Term rows and how often each occurs, four bytes a term."""
    if max(counts, default=0) >= MOST_TERMS:
        raise StoreError(
            f"a collection holds {MOST_TERMS:,} distinct words at the most: put what follows into another "
            "collection, and search both as one (docs/how-to/cells.md)"
        )
    largest = (1 << _COUNT_BITS) - 1
    return np.array(
        [row << _COUNT_BITS | min(n, largest) for row, n in sorted(counts.items())], dtype=np.uint32
    ).tobytes()


def rows(packed: bytes) -> list[int]:
    """The term rows of a passage."""
    found: list[int] = (np.frombuffer(packed, dtype=np.uint32) >> _COUNT_BITS).tolist()
    return found


def rarest_first(terms: Sequence[tuple[str, int]], *, reach: float) -> list[str]:
    """The terms (each with its number of passages) that may bring candidates; always at least one."""
    chosen: list[str] = []
    spent = 0.0
    for term, passages in sorted(terms, key=lambda t: (t[1], t[0])):
        spent += passages
        if chosen and spent > reach:
            break
        chosen.append(term)
    return chosen


def widened(reach: int, seen: int, passages: int) -> float:
    """How many postings may be read where the caller sees only so many passages: the fewer, the more."""
    return reach if seen >= reach else reach * passages / max(seen, 1)


def bm25(
    candidates: Sequence[tuple[int, bytes]],
    terms: Sequence[tuple[int, int]],
    *,
    passages: int,
    average_length: float,
) -> npt.NDArray[np.float64]:
    """Score candidates (length, packed terms) against a question's terms (row, number of passages)."""
    lengths = np.array([length for length, _ in candidates], dtype=np.float64)
    sizes = np.array([len(blob) // 4 for _, blob in candidates], dtype=np.int64)
    cells = np.frombuffer(b"".join(blob for _, blob in candidates), dtype=np.uint32)
    wanted = np.array(sorted(row for row, _ in terms), dtype=np.uint32)
    frequency = dict(terms)
    idf = np.log1p([(passages - frequency[r] + 0.5) / (frequency[r] + 0.5) for r in wanted.tolist()])
    rows = cells >> _COUNT_BITS
    place = np.searchsorted(wanted, rows).clip(max=len(wanted) - 1)
    found = np.flatnonzero(wanted[place] == rows)
    owner = np.repeat(np.arange(len(candidates)), sizes)[found]
    count = (cells[found] & ((1 << _COUNT_BITS) - 1)).astype(np.float64)
    norm = K1 * (1 - B + B * lengths[owner] / average_length)
    gain = idf[place[found]] * count * (K1 + 1) / (count + norm)
    totals: npt.NDArray[np.float64] = np.zeros(len(candidates))
    np.add.at(totals, owner, gain)
    return totals
