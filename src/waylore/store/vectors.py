"""How vectors are kept: half precision for ranking, bits for finding, eight bits for facts.

A search first compares bits (one for each dimension) with every vector of the collection, then ranks the
nearest few thousand by the half-precision vectors themselves. Up to that many vectors the result is exact;
above it, `benchmarks/store_growth.py` measures what is lost. Nothing here knows SQL.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from waylore.types.knowledge import Vector

BLOCK = 4_096  # rows whose codes are kept together
DEAD = np.iinfo(np.uint16).max  # the distance of a row that has no vector

Bits = npt.NDArray[np.uint64]


def words(dimension: int) -> int:
    """How many 64-bit words the bits of a vector take."""
    return -(-dimension // 64)


def bits(vectors: npt.NDArray[np.float32]) -> Bits:
    """The sign of each dimension: one row of words for each vector."""
    signs = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(vectors), words(vectors.shape[1]) * 8), dtype=np.uint8)
    padded[:, : signs.shape[1]] = signs
    return padded.view(np.uint64)


def distances(codes: bytes, live: bytes, query: Bits) -> npt.NDArray[np.uint16]:
    """How many bits of each row of a block differ from the query's; dead rows are infinitely far."""
    planes = np.frombuffer(codes, dtype=np.uint64).reshape(len(query), BLOCK)
    counts: npt.NDArray[np.uint8] = np.bitwise_count(planes ^ query[:, None])
    total: npt.NDArray[np.uint16] = counts.sum(axis=0, dtype=np.uint16)
    dead = ~np.unpackbits(np.frombuffer(live, dtype=np.uint8)).view(bool)
    total[dead] = DEAD
    return total


def halved(vector: Vector) -> bytes:
    """A vector in half precision."""
    return vector.astype(np.float16).tobytes()


def unhalved(blobs: Iterable[bytes], dimension: int) -> npt.NDArray[np.float32]:
    """Half-precision vectors as rows."""
    joined = np.frombuffer(b"".join(blobs), dtype=np.float16)
    return joined.reshape(-1, dimension).astype(np.float32)


def quantised(vector: Vector) -> bytes:
    """A vector in eight bits a dimension; its length is lost, which a cosine does not miss."""
    largest = float(np.abs(vector).max()) or 1.0
    scaled: npt.NDArray[np.float32] = np.rint(vector * (127.0 / largest))
    return scaled.astype(np.int8).tobytes()


def unquantised(blobs: Sequence[bytes]) -> npt.NDArray[np.float32]:
    """Unit vectors from eight bits a dimension, as rows."""
    if not blobs:
        return np.empty((0, 0), dtype=np.float32)
    vectors = np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(len(blobs), -1).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    vectors /= np.maximum(lengths, np.float32(1.0))
    return vectors


def near(rows: Sequence[tuple[bytes, bytes]], vector: Vector) -> dict[str, float]:
    """How near half-precision vectors are to one, by the identities that they come with."""
    scores = cosines([blob for _, blob in rows], vector).tolist()
    return {id_.hex(): score for (id_, _), score in zip(rows, scores, strict=True)}


def cosines(blobs: Sequence[bytes], vector: Vector) -> npt.NDArray[np.float64]:
    """How near half-precision vectors are to one, rounded, so that a tie is one on every engine.

    Row by row, for a product of matrices differs by row.
    """
    vectors = unhalved(blobs, len(vector))
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * np.linalg.norm(vector)
    near = np.einsum("ij,j->i", vectors, vector)
    cosines: npt.NDArray[np.float64] = (near / np.maximum(lengths, 1e-9)).astype(np.float64)
    return np.round(cosines, 6)
