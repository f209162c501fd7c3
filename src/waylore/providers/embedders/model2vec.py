"""Tiny embeddings through model2vec: word vectors averaged, thousands of passages a second.

For machines too small for a transformer, and for tests. It knows no word order and tells no
question from a passage; on its own it finds less than BM25 does, so leave both on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waylore.errors import ModelUnavailable
from waylore.protocols import Vectors
from waylore.providers.embedders.vectors import named, unit
from waylore.providers.optional import require
from waylore.types.knowledge import Vector


class Model2VecEmbedder:
    """A model2vec model, downloaded by name, or loaded from a directory without a network."""

    def __init__(self, model: str | Path = "minishlab/potion-base-8M") -> None:
        self._model = _load(model)
        self._name = named(model.name, model / "model.safetensors") if isinstance(model, Path) else model

    @property
    def name(self) -> str:
        """The model's name, with a fingerprint of the weights where they came from a directory."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return int(self._model.dim)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One unit row for each text, in order."""
        rows = self._model.encode(list(texts), use_multiprocessing=False) if texts else []
        return unit(rows, self.dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, the same as that of a passage."""
        return self.embed_passages([text]).ravel()


def _load(model: str | Path) -> Any:
    model2vec = require("model2vec", extra="model2vec")
    try:
        return model2vec.StaticModel.from_pretrained(model, force_download=False)
    except Exception as error:
        raise ModelUnavailable(
            f"model2vec cannot load {model}: {error}\nCheck the name and the network, or pass the "
            "`Path` of a directory with config.json, model.safetensors and tokenizer.json."
        ) from error
