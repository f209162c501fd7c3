"""Embeddings from any server that speaks OpenAI's protocol: OpenAI, Azure, vLLM, Ollama and others.

Batches go out in parallel, at most `concurrency` at a time. What may pass is tried again: timeouts,
cut connections, 408, 409, 429 and every 5xx, after a random wait that doubles (Brooker, 2015,
"Exponential Backoff and Jitter") or after what the server asks for. It keeps nothing (see
`weft.providers.cache`), does not shorten texts, and never writes the API key into a message.
"""

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Self

import numpy as np

from weft.errors import ConfigError, DimensionMismatch, ModelUnavailable
from weft.models import Vectors
from weft.providers.vectors import require, unit
from weft.types import Vector, identity

if TYPE_CHECKING:
    import httpx

PASSING = frozenset({408, 409, 429})
LONGEST_WAIT = 60.0
_JITTER = random.SystemRandom()


class OpenAIEmbedder:
    """A model behind `{base_url}/embeddings`; close it, or use it in a `with` block.

    `dimension` is what to expect, learnt from the first answer where it is not given. `retries` are
    tries after the first; `backoff` is the longest wait before the first of them, in seconds.
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
        if not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError("api_key has characters no HTTP header can carry; is a line end in it?")
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, not {base_url!r}")
        self._http = require("httpx", extra="openai")
        self._client: httpx.Client = self._http.Client(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {}, timeout=timeout
        )
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="weft-embed")
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model, self._key, self._dimension = model, api_key, dimension
        self._batch_size, self._retries, self._backoff = batch_size, retries, backoff
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._learning = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name, with a fingerprint of the prefixes where there are any."""
        if not (self._query_prefix or self._passage_prefix):
            return self._model
        return f"{self._model}@{identity('prefix', self._query_prefix, self._passage_prefix)[:8]}"

    @property
    def dimension(self) -> int:
        """The length of every vector; asks the server where nobody has said."""
        return self._dimension or self.embed_query("length").size

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One unit row for each text, in order."""
        prefixed = [self._passage_prefix + text for text in texts]
        size = self._batch_size
        batches = [prefixed[i : i + size] for i in range(0, len(prefixed), size)]
        rows = list(self._pool.map(self._embed, batches))
        return np.concatenate(rows) if rows else unit([], self.dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question, without waiting behind passages."""
        return self._embed([self._query_prefix + text]).ravel()

    def close(self) -> None:
        """Finish what is under way and let go of threads and connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed(self, texts: Sequence[str]) -> Vectors:
        rows = self._rows(self._ask(texts))
        if sorted(rows) != list(range(len(texts))):
            raise DimensionMismatch(
                f"{self._url} answered {len(texts)} texts with {len(rows)} vectors; lower "
                "`batch_size`, or check that the server speaks OpenAI's protocol"
            )
        length = self._agreed({row.size for row in rows.values()})
        return unit([rows[index] for index in range(len(texts))], length)

    def _rows(self, answer: "httpx.Response") -> dict[int, Vector]:
        try:
            rows = {
                int(item["index"]): np.array(item["embedding"], dtype=np.float32)
                for item in answer.json()["data"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal(f"no embeddings but {answer.text[:200]!r}") from error
        if not all(np.isfinite(row).all() for row in rows.values()):
            raise self._refusal("a vector with something in it that is not a number")
        return rows

    def _agreed(self, lengths: set[int]) -> int:
        with self._learning:
            self._dimension = expected = self._dimension or max(lengths)
        if lengths != {expected}:
            raise DimensionMismatch(
                f"{self._model} at {self._url} answered with vectors of length "
                f"{', '.join(map(str, sorted(lengths)))}, not {expected}; set `dimension` to what "
                "the model gives, and use the model that the collection was made with"
            )
        return expected

    def _ask(self, texts: Sequence[str]) -> "httpx.Response":
        attempt = 0
        while True:
            try:
                return self._post(texts)
            except _Passing as failure:
                if attempt >= self._retries:
                    raise self._refusal(str(failure), attempts=attempt + 1) from failure.__cause__
                time.sleep(wait_before_retry(attempt, backoff=self._backoff, asked=failure.asked))
            attempt += 1

    def _post(self, texts: Sequence[str]) -> "httpx.Response":
        # OpenAI refuses an empty text; an embedder may not.
        inputs = [text or " " for text in texts]
        body = {"model": self._model, "input": inputs, "encoding_format": "float"}
        try:
            answer = self._client.post(self._url, json=body)
        except self._http.RequestError as error:
            raise _Passing(f"{type(error).__name__}: {error}") from error
        if answer.is_success:
            return answer
        said = f"{answer.status_code}: {_message(answer)}"
        if answer.status_code in PASSING or answer.status_code >= 500:
            raise _Passing(said, asked=_asked_wait(answer.headers.get("retry-after", "")))
        raise self._refusal(said)

    def _refusal(self, said: str, *, attempts: int = 1) -> ModelUnavailable:
        hidden = said.replace(self._key, "[api_key]") if self._key else said
        return ModelUnavailable(
            f"{self._model} at {self._url} cannot be used; attempt {attempts}, the last, gave "
            f"{hidden}\nCheck the address, the model's name, the key and the account's limits."
        )


class _Passing(Exception):
    """A failure that may pass, and the seconds that the server asks to wait."""

    def __init__(self, said: str, *, asked: float = 0.0) -> None:
        super().__init__(said)
        self.asked = asked


def wait_before_retry(attempt: int, *, backoff: float, asked: float = 0.0) -> float:
    """Choose the seconds to wait: what the server asks, and a random part of a doubling time."""
    return min(asked + _JITTER.uniform(0, backoff * 2**attempt), LONGEST_WAIT)


def _asked_wait(header: str) -> float:
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0


def _message(answer: "httpx.Response") -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (KeyError, TypeError, ValueError):
        return answer.text[:200]
