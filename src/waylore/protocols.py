"""What Waylore calls out to, as protocols: the models (an embedder, an extractor, a reranker) and an observer.

Real ones live in `waylore.providers`, each behind an optional dependency. No model but the embedder (and,
if asked for, a reranker) is ever called while a question is being answered.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from waylore.types.knowledge import Claim, Document, Passage, Vector

Vectors = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns text into unit vectors. `name` says model and variant: a store never mixes two names."""

    @property
    def name(self) -> str:
        """The name that the store remembers."""
        ...

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One unit row for each text, in order."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The unit vector of a question; models that tell questions from passages do so here."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one passage says: claims, and the names that it mentions with their types (empty if unknown).

    `descriptions` and `aliases` are of names that are in `names`. What a substitute found because the extractor
    could not be had is `provisional`: the file is read again the next time.
    """

    claims: tuple[Claim, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provisional: bool = False


@runtime_checkable
class Extractor(Protocol):
    """Finds names and claims in the passages of one document. `name` says what it is, and which version."""

    @property
    def name(self) -> str:
        """The name under which what it found may be kept."""
        ...

    @property
    def concurrency(self) -> int:
        """How many documents it can work on at once, each in a thread of its own."""
        ...

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """What each passage says, in order."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores passages against a question by reading both."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score for each text, in order; higher is better."""
        ...


@runtime_checkable
class Observer(Protocol):
    """Is told of what is asked of Waylore while it goes on: what came of it, or the error that it raised."""

    def watching(self, verb: str) -> AbstractContextManager[Callable[[object], None]]:
        """Around a method of Waylore, by its name; tell the callable what the method returns. Must not raise."""
        ...


Count: TypeAlias = Callable[[str], int]
