"""Rerank by a server: Cohere, Jina, vLLM, llama.cpp, Infinity, Text Embeddings Inference and others.

They answer `POST {base_url}/rerank` with the index and the score of each document. Text Embeddings Inference calls the
documents `texts` and answers with a plain list; it is recognised by its answer. Transient failures are retried as in
`providers.endpoint`.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from waylore.providers.endpoint import Endpoint, EndpointRefused
from waylore.providers.threads import map_in_context

if TYPE_CHECKING:
    import httpx


class EndpointReranker:
    """A model behind `{base_url}/rerank`; close it, or use it in a `with` block. Threads may share it.

    A search waits for the reranker, and continues without it if it fails. So `timeout`, in seconds, and `retries`, the
    number of attempts after the first, are lower than for an embedder. `backoff` is the longest delay before the first
    retry, in seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str = "",
        batch_size: int = 32,
        concurrency: int = 4,
        timeout: float = 10.0,
        retries: int = 2,
        backoff: float = 0.5,
    ) -> None:
        self._endpoint = Endpoint(
            "rerank",
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
        )
        self._model, self._batch_size, self._concurrency = model, batch_size, concurrency
        self._takes_texts = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; higher is better."""
        size = self._batch_size
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="waylore-rerank") as pool:
            return list(chain.from_iterable(map_in_context(pool, partial(self._score, query), batches)))

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _score(self, query: str, texts: Sequence[str]) -> list[float]:
        response = self._endpoint.retry(lambda: self._post(query, texts))
        scores = self._parse_scores(response)
        if sorted(scores) != list(range(len(texts))):
            raise self._endpoint.make_error(f"{len(scores)} scores for {len(texts)} passages")
        if not all(map(math.isfinite, scores.values())):
            raise self._endpoint.make_error("a score that is not a finite number")
        return [scores[index] for index in range(len(texts))]

    def _post(self, query: str, texts: Sequence[str]) -> "httpx.Response":
        if self._takes_texts:
            return self._endpoint.post({"query": query, "texts": list(texts), "truncate": True})
        try:
            return self._endpoint.post({"model": self._model, "query": query, "documents": list(texts)})
        except EndpointRefused as refusal:
            if "missing field `texts`" not in refusal.detail:
                raise
        self._takes_texts = True  # Text Embeddings Inference
        return self._post(query, texts)

    def _parse_scores(self, response: "httpx.Response") -> dict[int, float]:
        """Return the score of each document by its index. Servers return a list, or put it into `results` or `data`."""
        try:
            content: Any = response.json()
            results = content if isinstance(content, list) else content.get("results") or content["data"]
            return {int(each["index"]): float(_get_score(each)) for each in results}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._endpoint.make_error(f"no scores: {response.text[:200]!r}") from error


def _get_score(result: dict[str, Any]) -> Any:
    return result["relevance_score"] if "relevance_score" in result else result["score"]
