"""Embed with any server that speaks OpenAI's protocol: OpenAI, Azure, vLLM, Ollama and others.

Batches are sent in parallel, at most `concurrency` at a time, and transient failures are retried (see
`waylore.providers.endpoint`). This module has no cache (see `waylore.providers.embedders.cached`), does not
shorten texts, and never writes the API key into a message.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import numpy as np

from waylore.errors import DimensionMismatch
from waylore.protocols import Vectors
from waylore.providers.embedders.vectors import normalise_rows
from waylore.providers.endpoint import Endpoint
from waylore.providers.threads import map_in_context
from waylore.types.identity import identity
from waylore.types.knowledge import Vector

if TYPE_CHECKING:
    import httpx


class OpenAIEmbedder:
    """A model behind `{base_url}/embeddings`; close it, or use it in a `with` block.

    `dimension` is the expected length of vectors; if None, the first response sets it. `retries` is the number
    of attempts after the first; `backoff` is the longest delay before the first of them, in seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str = "",
        dimension: int | None = None,
        batch_size: int = 128,
        concurrency: int = 4,
        timeout: float = 30.0,
        retries: int = 5,
        backoff: float = 0.5,
        query_prefix: str = "",
        passage_prefix: str = "",
    ) -> None:
        self._endpoint = Endpoint(
            "embeddings",
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
        )
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="waylore-embed")
        self._model, self._dimension, self._batch_size = model, dimension, batch_size
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._dimension_lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name, with a fingerprint of the prefixes if there are any."""
        if not (self._query_prefix or self._passage_prefix):
            return self._model
        return f"{self._model}@{identity('prefix', self._query_prefix, self._passage_prefix)[:8]}"

    @property
    def dimension(self) -> int:
        """The length of every vector. If it is unknown, a request to the server finds it."""
        return self._dimension or self.embed_query("length").size

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        prefixed = [self._passage_prefix + text for text in texts]
        size = self._batch_size
        batches = [prefixed[i : i + size] for i in range(0, len(prefixed), size)]
        rows = map_in_context(self._pool, self._embed, batches)
        return np.concatenate(rows) if rows else normalise_rows([], self.dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, without waiting for passages."""
        return self._embed([self._query_prefix + text]).ravel()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question, in one request."""
        return self._embed([self._query_prefix + text for text in texts])

    def close(self) -> None:
        """Finish running requests, then stop the threads and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed(self, texts: Sequence[str]) -> Vectors:
        rows = self._parse_rows(self._request(texts))
        if sorted(rows) != list(range(len(texts))):
            raise DimensionMismatch(
                f"{self._endpoint.url} returned {len(rows)} vectors for {len(texts)} texts; lower "
                "`batch_size`, or check that the server speaks OpenAI's protocol"
            )
        length = self._check_length({row.size for row in rows.values()})
        return normalise_rows([rows[index] for index in range(len(texts))], length)

    def _parse_rows(self, response: "httpx.Response") -> dict[int, Vector]:
        try:
            rows = {
                int(item["index"]): np.array(item["embedding"], dtype=np.float32) for item in response.json()["data"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise self._endpoint.make_error(f"no embeddings: {response.text[:200]!r}") from error
        if not all(np.isfinite(row).all() for row in rows.values()):
            raise self._endpoint.make_error("a vector that is not finite")
        return rows

    def _check_length(self, lengths: set[int]) -> int:
        with self._dimension_lock:
            self._dimension = expected = self._dimension or max(lengths)
        if lengths != {expected}:
            raise DimensionMismatch(
                f"{self._model} at {self._endpoint.url} returned vectors of length "
                f"{', '.join(map(str, sorted(lengths)))}, not {expected}; set `dimension` to the "
                "model's length, and use the model that the collection was indexed with"
            )
        return expected

    def _request(self, texts: Sequence[str]) -> "httpx.Response":
        # OpenAI rejects an empty text, but an embedder must accept it.
        inputs = [text or " " for text in texts]
        body = {"model": self._model, "input": inputs, "encoding_format": "float"}
        return self._endpoint.retry(lambda: self._endpoint.post(body))
