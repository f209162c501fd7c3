"""One address of a server that speaks OpenAI's protocol, asked until it answers or will not.

What may pass is tried again: timeouts, cut connections, 408, 409, 429 and every 5xx, after a random wait that
doubles (Brooker, 2015, "Exponential Backoff and Jitter") or after what the server asks for. It knows neither
vectors nor answers, and never writes the API key into a message.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from waylore.errors import ConfigError, ModelUnavailable
from waylore.providers.optional import require

if TYPE_CHECKING:
    import httpx

PASSING = frozenset({408, 409, 429})
LONGEST_WAIT = 60.0
_JITTER = random.SystemRandom()
_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@")
T = TypeVar("T")


class Passing(Exception):
    """A failure that may pass, the seconds that the server asks to wait, and whether it may cost something."""

    def __init__(self, said: str, *, asked: float = 0.0, may_cost: bool = False) -> None:
        super().__init__(said)
        self.asked = asked
        self.may_cost = may_cost


class Refused(ModelUnavailable):
    """The server answered, and the answer was no; see `status` and `said`."""

    def __init__(self, message: str, *, status: int, said: str) -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class Endpoint:
    """What `model` is asked at `{base_url}/{path}`; threads may share it.

    `retries` are tries after the first; `backoff` is the longest wait before the first of them, in seconds.
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
            raise ConfigError("api_key has characters no HTTP header can carry; is a line end in it?")
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, not {base_url!r}")
        self._http = require("httpx", extra="openai")
        self._client: httpx.Client = self._http.Client(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {}, timeout=timeout
        )
        self._url = f"{base_url.rstrip('/')}/{path}"
        self._model, self._key = model, api_key
        self._retries, self._backoff = retries, backoff

    @property
    def url(self) -> str:
        """The address, without a name and password that may be in it."""
        return _CREDENTIALS.sub("", self._url)

    def tried(self, call: Callable[[], T]) -> T:
        """What `call` returns, which is called again while it fails with `Passing`."""
        attempt = 0
        while True:
            try:
                return call()
            except Passing as failure:
                if attempt >= self._retries:
                    raise self.unusable(str(failure), attempts=attempt + 1) from failure.__cause__
                time.sleep(wait_before_retry(attempt, backoff=self._backoff, asked=failure.asked))
            attempt += 1

    def post(self, body: Mapping[str, Any]) -> "httpx.Response":
        """Ask once; `Passing` where asking again may help, else `Refused`."""
        try:
            answer = self._client.post(self._url, json=body)
        except self._http.RequestError as error:
            was_sent = not isinstance(error, self._http.ConnectError | self._http.ConnectTimeout)
            raise Passing(f"{type(error).__name__}: {error}", may_cost=was_sent) from error
        if answer.is_success:
            return answer
        said = self._hidden(f"{answer.status_code}: {_message(answer)}")
        if answer.status_code in PASSING or answer.status_code >= 500:
            raise Passing(said, asked=_asked_wait(answer.headers.get("retry-after", "")))
        raise Refused(str(self.unusable(said)), status=answer.status_code, said=said)

    def unusable(self, said: str, *, attempts: int = 1) -> ModelUnavailable:
        """The error to raise after what was said, or not said, last."""
        return ModelUnavailable(
            f"{self._model} at {self.url} cannot be used; attempt {attempts}, the last, gave "
            f"{self._hidden(said)}\nCheck the address, the model's name, the key and the account's limits."
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _hidden(self, said: str) -> str:
        return said.replace(self._key, "[api_key]") if self._key else said


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
