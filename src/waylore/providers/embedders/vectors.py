"""Normalise vectors and name models by their weights, for every embedder.

The module embeds nothing.
"""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from waylore.protocols import Vectors


def normalise_rows(rows: npt.ArrayLike, dimension: int) -> Vectors:
    """Scale rows to length one. A row of zeros, which has no direction, becomes the first axis."""
    vectors = np.array(rows, dtype=np.float32).reshape(-1, dimension)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[lengths[:, 0] == 0, 0] = 1
    vectors /= np.where(lengths, lengths, 1)
    return vectors


def add_fingerprint(model: str, weights: Path) -> str:
    """Add a fingerprint of the weights to a name: `BAAI/bge-small-en-v1.5@1a2b3c4d`."""
    with weights.open("rb") as content:
        return f"{model}@{hashlib.file_digest(content, 'sha256').hexdigest()[:8]}"
