"""Send requests to one endpoint of a server that speaks OpenAI's protocol, with retries.

Transient failures are retried: timeouts, closed connections, 408, 409, 429 and every 5xx. The delay is random and
doubles (Brooker, 2015, "Exponential Backoff and Jitter"), unless the server requests a delay. This module knows neither
embeddings nor chat, and never writes the API key into a message.
"""

import random
import re
import time
import weakref
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from waylore.deadline import check_deadline, is_ending, limit_wait
from waylore.errors import ConfigError, ModelUnavailable
from waylore.providers.optional import require

if TYPE_CHECKING:
    import httpx

TRANSIENT_STATUS_CODES = frozenset({408, 409, 429})  # also every 5xx
MAX_WAIT_SECONDS = 60.0
_JITTER = random.SystemRandom()
_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@")
T = TypeVar("T")


class TransientError(Exception):
    """A failure that may not happen again.

    `retry_after` is the delay that the server requests, in seconds; `may_cost` says whether the request may be
    billed.
    """

    def __init__(self, detail: str, *, retry_after: float = 0.0, may_cost: bool = False) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.may_cost = may_cost


class EndpointRefused(ModelUnavailable):
    """The server rejected the request; see `status` and `detail`."""

    def __init__(self, message: str, *, status: int, detail: str) -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail


class Endpoint:
    """The endpoint `{base_url}/{path}` for one `model`; threads may share it.

    `retries` is the number of attempts after the first; `backoff` is the longest delay before the first of
    them, in seconds.
    """

    def __init__(
        self,
        path: str,
        *,
        model: str,
        base_url: str,
        api_key: str,
        timeout: float,
        retries: int,
        backoff: float,
    ) -> None:
        if not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError("api_key has characters that an HTTP header cannot contain; remove line ends from it")
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, got {base_url!r}")
        self._http = require("httpx", extra="openai")
        self._client: httpx.Client = self._http.Client(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {}, timeout=timeout
        )
        weakref.finalize(self, self._client.close)  # no other code closes a model that the settings create
        self._url = f"{base_url.rstrip('/')}/{path}"
        self._model, self._key = model, api_key
        self._retries, self._backoff, self._timeout = retries, backoff, timeout

    @property
    def url(self) -> str:
        """The address without user name and password."""
        return _CREDENTIALS.sub("", self._url)

    def retry(self, call: Callable[[], T]) -> T:
        """Return the result of `call`; call it again while it raises `TransientError`."""
        attempt = 0
        while True:
            check_deadline()
            try:
                return call()
            except TransientError as failure:
                if attempt >= self._retries or is_ending():
                    raise self.make_error(str(failure), attempts=attempt + 1) from failure.__cause__
                pause = wait_before_retry(attempt, backoff=self._backoff, retry_after=failure.retry_after)
                time.sleep(limit_wait(pause))
            attempt += 1

    def post(self, body: Mapping[str, Any]) -> "httpx.Response":
        """Send one request. Raise `TransientError` if a retry may help, else `EndpointRefused`."""
        try:
            response = self._client.post(self._url, json=body, timeout=limit_wait(self._timeout))
        except self._http.RequestError as error:
            was_sent = not isinstance(error, self._http.ConnectError | self._http.ConnectTimeout)
            raise TransientError(f"{type(error).__name__}: {error}", may_cost=was_sent) from error
        if response.is_success:
            return response
        detail = self._hide_key(f"{response.status_code}: {_read_error_message(response)}")
        if response.status_code in TRANSIENT_STATUS_CODES or response.status_code >= 500:
            raise TransientError(detail, retry_after=_parse_retry_after(response.headers.get("retry-after", "")))
        raise EndpointRefused(str(self.make_error(detail)), status=response.status_code, detail=detail)

    def make_error(self, detail: str, *, attempts: int = 1) -> ModelUnavailable:
        """Return the error to raise after the last attempt."""
        return ModelUnavailable(
            f"{self._model} at {self.url} cannot be used; attempt {attempts} failed with "
            f"{self._hide_key(detail)}\nCheck the address, the model's name, the key and the account's limits"
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "[api_key]") if self._key else text


def wait_before_retry(attempt: int, *, backoff: float, retry_after: float = 0.0) -> float:
    """Return the seconds to wait: `retry_after` plus a random part of a time that doubles each attempt."""
    return min(retry_after + _JITTER.uniform(0, backoff * 2**attempt), MAX_WAIT_SECONDS)


def _parse_retry_after(header: str) -> float:
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0


def _read_error_message(response: "httpx.Response") -> str:
    try:
        return str(response.json()["error"]["message"])
    except (KeyError, TypeError, ValueError):
        return response.text[:200]
