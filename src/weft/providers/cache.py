"""Vectors kept on disk, so that no text is embedded twice by the same model.

Wraps any embedder. One SQLite file holds the vectors by model, kind (passage or question) and text;
threads and processes may share it. It never forgets and knows no age: a model's name changes when
its weights do, and deleting the file is always safe.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import apsw
import numpy as np

from weft.errors import DimensionMismatch, StoreUnavailable
from weft.models import Embedder, Vectors
from weft.types import Vector, identity

BUSY_MILLISECONDS = 30_000
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) STRICT;
"""
READ = "SELECT key, vector FROM vectors WHERE key IN carray(?)"
WRITE = "INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)"


class CachedEmbedder:
    """Asks `embedder` only for what `directory` does not hold yet."""

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self._file = directory / "vectors.sqlite"
        self._lock = threading.Lock()
        directory.mkdir(parents=True, exist_ok=True)
        with self._errors_wrapped():
            self._database = apsw.Connection(str(self._file))
            self._database.set_busy_timeout(BUSY_MILLISECONDS)
            self._database.execute(SCHEMA).fetchall()

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The length of the wrapped embedder's vectors."""
        return self._embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One unit row for each text, in order; texts seen before cost a read."""
        if not texts:
            return self._embedder.embed_passages(texts)
        return self._embed("passage", texts, self._embedder.embed_passages)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question; one asked before costs a read."""
        embed = self._embedder.embed_query
        return self._embed("query", [text], lambda missing: np.stack([*map(embed, missing)])).ravel()

    def close(self) -> None:
        """Close the file; the wrapped embedder stays open."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed(self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> Vectors:
        keys = [bytes.fromhex(identity("vector", self.name, kind, text)) for text in texts]
        found = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            rows = embed(list(missing.values())).astype(np.float32)
            fresh = {key: row.tobytes() for key, row in zip(missing, rows, strict=True)}
            self._write(fresh)
            found |= fresh
        return self._stack([found[key] for key in keys])

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock, self._errors_wrapped():
            return dict(self._database.execute(READ, (apsw.carray(tuple(keys)),)))

    def _write(self, fresh: dict[bytes, bytes]) -> None:
        with self._lock, self._errors_wrapped(), self._database:
            self._database.executemany(WRITE, fresh.items())

    def _stack(self, rows: Sequence[bytes]) -> Vectors:
        if len({len(row) for row in rows}) > 1:
            raise DimensionMismatch(
                f"{self._file} holds vectors of another length for {self.name}; delete the file"
            )
        return np.stack([np.frombuffer(row, dtype=np.float32) for row in rows])

    @contextmanager
    def _errors_wrapped(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise StoreUnavailable(
                f"the vectors kept in {self._file} cannot be used: {error}; free the disk or the "
                "lock, or delete the file, which holds nothing that cannot be made again"
            ) from error
