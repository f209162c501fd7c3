"""Cache vectors on disk, so that no text is embedded twice by the same model.

It wraps any embedder. One SQLite file has the vectors by model, kind (passage or question) and text; threads
and processes may share it. Entries never expire, because a model's name changes with its weights. The file can
be deleted at any time.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from waylore.errors import DimensionMismatch
from waylore.protocols import Embedder, Vectors, embed_queries
from waylore.providers.disk_cache import VECTORS, DiskCache
from waylore.types.identity import identity
from waylore.types.knowledge import Vector


class CachedEmbedder:
    """Calls `embedder` only for texts that the cache in `directory` does not contain."""

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self._cache = DiskCache(VECTORS, directory)

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The length of the wrapped embedder's vectors."""
        return self._embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order. Known texts are read from the cache."""
        if not texts:
            return self._embedder.embed_passages(texts)
        return self._embed("passage", texts, self._embedder.embed_passages)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question. A known question is read from the cache."""
        return self.embed_queries([text]).ravel()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question. Known questions are read from the cache."""
        return self._embed("query", texts, lambda missing: embed_queries(self._embedder, missing))

    def close(self) -> None:
        """Close the file. The wrapped embedder stays open."""
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed(self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> Vectors:
        keys = [bytes.fromhex(identity("vector", self.name, kind, text)) for text in texts]
        found = self._cache.read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            rows = embed(list(missing.values())).astype(np.float32)
            new = {key: row.tobytes() for key, row in zip(missing, rows, strict=True)}
            self._cache.write(new)
            found |= new
        return self._stack([found[key] for key in keys])

    def _stack(self, rows: Sequence[bytes]) -> Vectors:
        if len({len(row) for row in rows}) > 1:
            raise DimensionMismatch(
                f"{self._cache.file} has vectors of another length for {self.name}; delete the file"
            )
        return np.stack([np.frombuffer(row, dtype=np.float32) for row in rows])
