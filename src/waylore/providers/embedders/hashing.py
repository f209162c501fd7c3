"""Embed without a model (S19), so that a first try or a test needs no download.

It hashes the terms of a text into a signed vector (Weinberger et al., 2009, "Feature Hashing"), and with a
lower weight the trigrams of each term, so that related forms match. It finds shared words, not shared meaning,
and BM25 does that better. It is not for production and warns about it.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log

from waylore.deadline import check_each
from waylore.errors import ConfigError
from waylore.protocols import Vectors
from waylore.providers.embedders.vectors import normalise_rows
from waylore.text import terms
from waylore.types.knowledge import Vector

TRIGRAM_WEIGHT = 0.3


class HashingWarning(UserWarning):
    """Vectors come from hashed words, not from a model."""


class HashingEmbedder:
    """Hashes words to vectors; for tests and first tries. `quiet` suppresses the warning."""

    def __init__(self, dimension: int = 384, *, quiet: bool = False) -> None:
        if dimension < 1:
            raise ConfigError(f"dimension must be at least 1, got {dimension}")
        self._dimension = dimension
        if not quiet:
            warnings.warn(
                "HashingEmbedder finds shared words, not meaning; it is not for production. Run `pip install "
                "'waylore[local]'` and use `waylore.providers.embedders.fastembed.FastEmbedder()`",
                HashingWarning,
                stacklevel=2,
            )

    @property
    def name(self) -> str:
        """The name that the store records."""
        return f"hashing-{self._dimension}"

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        return normalise_rows([self._row(text) for text in check_each(texts)], self._dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, the same as that of a passage."""
        return self.embed_passages([text]).ravel()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question."""
        return self.embed_passages(texts)

    def _row(self, text: str) -> list[float]:
        row = [0.0] * self._dimension
        words = terms(text)
        for features, weight in ((words, 1.0), (_list_trigrams(words), TRIGRAM_WEIGHT)):
            for feature, count in Counter(features).items():
                place, negative = divmod(_hash(feature), 2)
                value = weight * (1 + log(count))
                row[place % self._dimension] += -value if negative else value
        return row


def _list_trigrams(words: Iterable[str]) -> list[str]:
    marked = [f"<{word}>" for word in words]
    return [f"3:{word[i : i + 3]}" for word in marked for i in range(len(word) - 2)]


@lru_cache(maxsize=65_536)
def _hash(feature: str) -> int:
    digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
