"""Encode vectors: eight bits per dimension for storing and ranking, one bit for finding.

A search first compares the bits of every vector of the collection, then ranks the nearest few thousand by their codes
of eight bits. Up to that number of vectors it ranks all of them. Above it, `benchmarks/store_growth.py` measures the
loss. Half precision is read from earlier stores and exports. This module knows no SQL.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from waylore.types.knowledge import Vector

BLOCK_ROWS = 4_096  # rows whose codes are stored together
DEAD_DISTANCE = np.iinfo(np.uint16).max  # the distance of a row without a vector

Bits = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int8]


def count_words(dimension: int) -> int:
    """Return the number of 64-bit words that the bits of a vector take."""
    return -(-dimension // 64)


def to_bits(vectors: npt.NDArray[np.float32] | Codes) -> Bits:
    """Encode the sign of each dimension, one row of words for each vector.

    The bits of stored vectors come from their codes, so that every engine and every import has the same bits.
    """
    signs = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(vectors), count_words(vectors.shape[1]) * 8), dtype=np.uint8)
    padded[:, : signs.shape[1]] = signs
    return padded.view(np.uint64)


def format_bits(vector: Vector | Codes) -> str:
    """Return the sign of each dimension as a digit, 1 if it is positive."""
    return np.where(vector > 0, b"1", b"0").tobytes().decode()


def compute_distances(codes: bytes, live: bytes, query: Bits) -> npt.NDArray[np.uint16]:
    """Count the bits of each row of a block that differ from the query's. A dead row gets DEAD_DISTANCE."""
    planes = np.frombuffer(codes, dtype=np.uint64).reshape(len(query), BLOCK_ROWS)
    counts: npt.NDArray[np.uint8] = np.bitwise_count(planes ^ query[:, None])
    total: npt.NDArray[np.uint16] = counts.sum(axis=0, dtype=np.uint16)
    dead = ~np.unpackbits(np.frombuffer(live, dtype=np.uint8)).view(bool)
    total[dead] = DEAD_DISTANCE
    return total


def compute_code_distances(codes: bytes, vector: Vector) -> npt.NDArray[np.uint16]:
    """Count the bits of vectors, given by their codes one behind the other, that differ from those of a vector."""
    bits = to_bits(np.frombuffer(codes, dtype=np.int8).reshape(-1, len(vector)))
    counts: npt.NDArray[np.uint8] = np.bitwise_count(bits ^ to_bits(vector[None]))
    total: npt.NDArray[np.uint16] = counts.sum(axis=1, dtype=np.uint16)
    return total


def from_half(blobs: Iterable[bytes], dimension: int) -> npt.NDArray[np.float32]:
    """Decode half-precision vectors to the rows of a matrix."""
    joined = np.frombuffer(b"".join(blobs), dtype=np.float16)
    return joined.reshape(-1, dimension).astype(np.float32)


def encode_halves(blobs: Iterable[bytes]) -> list[bytes]:
    """Encode half-precision vectors in eight bits per dimension. Their dimensions may differ."""
    encoded = [quantise(from_half(same, size // 2)) for size, same in groupby(blobs, key=len)]
    return [code.tobytes() for codes in encoded for code in codes]


def to_int8(vector: Vector) -> bytes:
    """Encode a vector in eight bits per dimension. Its length is lost, but a cosine does not need it."""
    return quantise(vector[None]).tobytes()


def quantise(vectors: npt.NDArray[np.float32]) -> Codes:
    """Encode the rows of a matrix in eight bits per dimension."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    scales = (127.0 / np.where(largest > 0, largest, 1.0)).astype(np.float32)
    codes: Codes = np.rint(vectors * scales).astype(np.int8)
    return codes


def from_int8(blobs: Sequence[bytes]) -> npt.NDArray[np.float32]:
    """Decode vectors of eight bits per dimension to unit vectors, the rows of a matrix."""
    return to_units(join_codes(blobs, len(blobs[0]))) if blobs else np.empty((0, 0), dtype=np.float32)


def join_codes(blobs: Iterable[bytes], dimension: int) -> Codes:
    """Return codes as the rows of a matrix. A blob may hold the codes of several vectors."""
    return np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(-1, dimension)


def to_units(codes: Codes) -> npt.NDArray[np.float32]:
    """Decode the rows of a matrix to unit vectors."""
    vectors = codes.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    vectors /= np.maximum(lengths, np.float32(1.0))
    return vectors


def score_rows(rows: Sequence[tuple[bytes, bytes]], vector: Vector) -> dict[str, float]:
    """Return the cosine similarity of codes to a vector, by the ids of their rows."""
    scores = compute_cosines([blob for _, blob in rows], vector).tolist()
    return {id_.hex(): score for (id_, _), score in zip(rows, scores, strict=True)}


def compute_cosines(blobs: Sequence[bytes], vector: Vector) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of codes to a vector.

    Values are rounded, so that equal vectors tie on every engine. Each row is multiplied on its own, because
    the rows of a matrix product may differ in their last bits.
    """
    return compare(*measure(blobs, len(vector)), vector)


def measure(blobs: Iterable[bytes], dimension: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return codes as the rows of a matrix, and the length of each row."""
    vectors = join_codes(blobs, dimension).astype(np.float32)
    return vectors, np.sqrt(np.einsum("ij,ij->i", vectors, vectors))


def compare(
    vectors: npt.NDArray[np.float32], lengths: npt.NDArray[np.float32], vector: Vector
) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of the rows of a matrix, whose lengths are given, to a vector."""
    products = np.einsum("ij,j->i", vectors, vector)
    both = lengths * np.linalg.norm(vector)
    cosines: npt.NDArray[np.float64] = (products / np.maximum(both, 1e-9)).astype(np.float64)
    return np.round(cosines, 6)
