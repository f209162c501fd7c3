"""Rerank locally with a cross-encoder of fastembed: ONNX on the CPU, no torch, ms-marco-MiniLM-L-6-v2 by default.

A cross-encoder reads the question and a passage together, in most models the first 512 tokens of both. It is loaded
when the first passage is scored. This module does not choose a model for your language.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from waylore.deadline import check_deadline
from waylore.errors import ModelUnavailable
from waylore.providers.onnx import CROSS_ENCODER, find_weights, load_model
from waylore.providers.optional import require
from waylore.providers.threads import map_in_context


class FastReranker:
    """A cross-encoder, downloaded by name or loaded from the directory `path` without a network; threads may share it.

    A directory may have any cross-encoder that was exported to ONNX; then `model` is only its name in messages. Each of
    `threads`, by default one per core, scores one text at a time, because with an int8 model the score of a passage
    depends on the others of its batch. Raise `batch_size` on a GPU.
    """

    def __init__(
        self,
        model: str = "Xenova/ms-marco-MiniLM-L-6-v2",
        *,
        path: Path | str | None = None,
        threads: int | None = None,
        batch_size: int = 1,
    ) -> None:
        if find_spec("fastembed") is None:
            require("fastembed", extra="local")
        self._name, self._path, self._batch_size = model, Path(path) if path else None, batch_size
        if self._path:
            find_weights(self._path)
        self._threads = threads or os.cpu_count() or 1
        self._model: Any = None
        self._loading = Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; higher is better."""
        score = partial(self._score, self._load(), query)
        size = self._batch_size
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        with ThreadPoolExecutor(self._threads, thread_name_prefix="waylore-rerank") as pool:
            return list(chain.from_iterable(map_in_context(pool, score, batches)))

    def _load(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = load_model(CROSS_ENCODER, self._name, self._path)
            return self._model

    def _score(self, model: Any, query: str, texts: Sequence[str]) -> list[float]:
        check_deadline()
        try:
            return list(model.rerank(query, texts, batch_size=self._batch_size))
        except Exception as error:
            raise ModelUnavailable(
                f"{self._name} cannot score a passage: {error}\n"
                "Use a cross-encoder that gives one score to a pair of texts"
            ) from error
