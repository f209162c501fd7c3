"""Items as points of an index: their ids, the weights of their terms, and what filters compare.

A point has no text. Its id is that of the item, combined with the tenant: the same document in two collections makes
two points, and the id of the item is computed from that of the point. Terms are numbers that another tenant uses for
other terms, so that a search reads few postings of others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from waylore.store.bm25 import K1, B, unpack_counts
from waylore.types.identity import identity

REFERENCE_LENGTH = 100.0  # of a passage in terms; a constant, so that hidden passages cannot change a weight
SPREAD = 2_654_435_761  # odd, so that each number of a term has one place; it spreads them over all places
PLACES = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A passage or an entity as the index has it. Times are in microseconds; codes are a vector in eight bits."""

    id: str
    accesses: Sequence[int]
    codes: bytes | None = None
    is_name: bool = False
    terms: bytes = b""
    length: int = 0
    tags: Sequence[int] = ()
    at: int | None = None
    speaker: int | None = None
    expires: int | None = None


def make_point_id(tenant: bytes, item: str) -> str:
    """Return the id of the point of an item."""
    return _combine(tenant, item)


def read_point_id(tenant: bytes, point: str) -> str:
    """Return the id of the item of a point."""
    return _combine(tenant, point.replace("-", ""))


def _combine(tenant: bytes, id_: str) -> str:
    return f"{int(id_, 16) ^ int.from_bytes(tenant, 'big'):032x}"


def place_terms(tenant: bytes, numbers: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return the places of terms, given by number, in the sparse vectors of a tenant."""
    start = int.from_bytes(tenant[:4], "big")
    places: npt.NDArray[np.uint64] = (np.asarray(numbers, dtype=np.uint64) * SPREAD + start) % PLACES
    return places


def weigh_terms(tenant: bytes, packed: bytes, length: int) -> tuple[list[int], list[float]]:
    """Return the places of the terms of a passage, and the weight of each: BM25 without the rarity of the term."""
    numbers, counts = unpack_counts(packed)
    norm = K1 * (1 - B + B * length / REFERENCE_LENGTH)
    weights = counts * (K1 + 1) / (counts + norm)
    return place_terms(tenant, numbers).tolist(), np.round(weights, 4).tolist()


def hash_word(kind: str, word: str) -> int:
    """Return 63 bits of a hash, for comparing a value without storing it."""
    return shorten(bytes.fromhex(identity(kind, word)))


def shorten(digest: bytes) -> int:
    """Return 63 bits of a digest."""
    return int.from_bytes(digest[:8], "big") >> 1
