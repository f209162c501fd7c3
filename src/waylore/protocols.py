"""Protocols of the objects that Waylore calls: embedder, extractor, reranker and observer.

Implementations are in `waylore.providers`, each behind an optional dependency. While a question is answered, only
the embedder and, if one is given, the reranker are called.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from waylore.types.knowledge import Document, NewFact, Passage, Vector

Vectors = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns text into unit vectors. `name` names model and variant; a store never mixes two names."""

    @property
    def name(self) -> str:
        """The name that the store records."""
        ...

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question; models that treat questions differently do so here."""
        ...


@runtime_checkable
class BatchEmbedder(Embedder, Protocol):
    """An embedder that embeds several questions in one call. The recipe `deep` embeds up to 12 rewrites at once."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each question, in order, the same as `embed_query`."""
        ...


def embed_queries(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed questions in one call, or one by one if the embedder cannot."""
    if isinstance(embedder, BatchEmbedder):
        return embedder.embed_queries(texts)
    return np.stack([embedder.embed_query(text) for text in texts])


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts of one passage, and the names that it mentions with their types (empty if unknown).

    `descriptions` and `aliases` belong to names in `names`. The result is `provisional` if a substitute made it
    because the extractor was unavailable: the file is read again the next time.
    """

    facts: tuple[NewFact, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provisional: bool = False


@runtime_checkable
class Extractor(Protocol):
    """Finds names and facts in the passages of one document. `name` names the extractor and its version."""

    @property
    def name(self) -> str:
        """The name under which results may be cached."""
        ...

    @property
    def concurrency(self) -> int:
        """The number of documents it can work on at once, each in its own thread."""
        ...

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return the extraction of each passage, in order."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores passages against a question by reading both."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text, in order; higher is better."""
        ...


@runtime_checkable
class Observer(Protocol):
    """Observes calls of Waylore: their start, and their result or error."""

    def observe(self, verb: str) -> AbstractContextManager[Callable[[object], None]]:
        """Return a context for a call of a method. The callable gets the method's result. Neither may raise."""
        ...


CountTokens: TypeAlias = Callable[[str], int]
