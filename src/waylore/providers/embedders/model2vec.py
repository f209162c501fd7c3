"""Embed with model2vec: averaged word vectors, thousands of passages per second.

It is for machines too small for a transformer, and for tests. It ignores word order and treats questions and
passages alike. Alone it finds less than BM25, so use both.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waylore.errors import ModelUnavailable
from waylore.protocols import Vectors
from waylore.providers.embedders.vectors import add_fingerprint, normalise_rows
from waylore.providers.optional import require
from waylore.types.knowledge import Vector


class Model2VecEmbedder:
    """A model2vec model, downloaded by name, or loaded from a directory without a network."""

    def __init__(self, model: str | Path = "minishlab/potion-base-8M") -> None:
        self._model = _load(model)
        self._name = name_model(model)

    @property
    def name(self) -> str:
        """The model's name, with a fingerprint of the weights if they come from a directory."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return int(self._model.dim)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        rows = self._model.encode(list(texts), use_multiprocessing=False) if texts else []
        return normalise_rows(rows, self.dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, the same as that of a passage."""
        return self.embed_passages([text]).ravel()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question."""
        return self.embed_passages(texts)


def name_model(model: str | Path) -> str:
    """Return the name of a model, with a fingerprint of the weights if `model` is their directory."""
    folder = Path(model)
    is_folder = isinstance(model, Path) or folder.is_dir()
    return add_fingerprint(folder.name, folder / "model.safetensors") if is_folder else str(model)


def _load(model: str | Path) -> Any:
    model2vec = require("model2vec", extra="model2vec")
    try:
        return model2vec.StaticModel.from_pretrained(model, force_download=False)
    except Exception as error:
        raise ModelUnavailable(
            f"model2vec cannot load {model}: {error}\nCheck the name and the network, or pass the "
            "`Path` of a directory with config.json, model.safetensors and tokenizer.json"
        ) from error
