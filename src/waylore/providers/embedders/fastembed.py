"""Embed locally with fastembed: ONNX on the CPU, no torch, BAAI/bge-small-en-v1.5 by default.

Fastembed pools and normalises as each model requires. This module adds the prefix that BGE needs before a question, and
a name that changes with the weights. It neither chooses a model for your language nor splits long texts: a model reads
about the first 512 tokens and ignores the rest.
"""

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np

from waylore.deadline import check_each
from waylore.protocols import Vectors
from waylore.providers.embedders.vectors import add_fingerprint, normalise_rows
from waylore.providers.onnx import EMBEDDING, find_weights, load_model
from waylore.providers.optional import require
from waylore.providers.threads import map_in_context
from waylore.types.knowledge import Vector

# The English BGE models were trained with this prefix before questions; fastembed does not add it.
BGE_QUESTION = "Represent this sentence for searching relevant passages: "
_ENGLISH_BGE = re.compile(r"BAAI/bge-\w+-en\b", re.IGNORECASE)


class FastEmbedder:
    """A fastembed model, downloaded by name or loaded from the directory `path` without a network.

    Each text is embedded alone. An int8 model scales its numbers by the batch, so the other texts of a batch would
    change a vector by up to 0.03. Batches of equal length save 0 to 5 % of the time to embed a page. `threads` is the
    number of texts that are embedded at the same time, each on one core; the default is the number of cores. (Two cores
    on one text take as long as one core, and spin.)
    """

    def __init__(
        self,
        model: str = "BAAI/bge-small-en-v1.5",
        *,
        path: Path | str | None = None,
        threads: int | None = None,
    ) -> None:
        folder = Path(path) if path else None
        self._name = name_model(model, folder)
        self._model = load_model(EMBEDDING, model, folder)
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="waylore-embed")
        self._question = BGE_QUESTION if _ENGLISH_BGE.match(model) else ""
        self._dimension = len(next(iter(self._model.embed([""]))))

    @property
    def name(self) -> str:
        """The model's name, with a fingerprint of the weights if they come from a directory."""
        return self._name

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        longest_first = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        shares = [longest_first[i :: self._threads] for i in range(self._threads)]
        rows = map_in_context(self._pool, self._rows, ([texts[i] for i in share] for share in shares))
        return self._unit(chain.from_iterable(rows))[np.argsort(list(chain.from_iterable(shares)))]

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, with the prefix that the model needs."""
        return self._unit(self._model.query_embed(self._question + text)).ravel()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question. Each is embedded alone, because its vector would differ in a batch."""
        return np.stack(list(map_in_context(self._pool, self.embed_query, texts)))

    def _rows(self, texts: list[str]) -> list[Vector]:
        return list(check_each(self._model.passage_embed(texts, batch_size=1)))

    def _unit(self, rows: Iterable[Vector]) -> Vectors:
        return normalise_rows(list(rows), self._dimension)


def name_model(model: str, path: Path | None = None) -> str:
    """Return the name of a model, with a fingerprint of the weights if they are in the directory `path`."""
    return add_fingerprint(model, find_weights(path)) if path else model


def find_cache() -> Path:
    """Return the folder in which fastembed stores downloaded models."""
    utils = require("fastembed.common.utils", extra="local")
    return Path(utils.define_cache_dir())
