"""Load a model only when a text is embedded.

A command that adds a folder often finds nothing new, and then needs only the name of the model. The module knows no
library of models: the caller passes the name and a function that loads the embedder.
"""

from collections.abc import Callable, Sequence
from threading import Lock

from waylore.protocols import Embedder, Vectors, embed_queries
from waylore.types.knowledge import Vector


class DeferredEmbedder:
    """An embedder that `load` creates when a text is embedded or the dimension is read, once for all threads."""

    def __init__(self, name: str, load: Callable[[], Embedder]) -> None:
        self._name = name
        self._load = load
        self._loaded: Embedder | None = None
        self._loading = Lock()

    @property
    def name(self) -> str:
        """The model's name, the same as the name of the loaded embedder."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._embedder().dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        return self._embedder().embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question."""
        return self._embedder().embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of questions."""
        return embed_queries(self._embedder(), texts)

    def _embedder(self) -> Embedder:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded
