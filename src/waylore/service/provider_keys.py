"""The public keys of an OpenID Connect provider, found by discovery and cached.

One fetch runs at a time for all callers, and no other caller waits for it. If the provider does not answer, its last
keys are used for a day. They are fetched again after some minutes, and at most twice a minute if a token names an
unknown key.
"""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from threading import Lock
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import jwt

from waylore.errors import StoreUnavailable
from waylore.service.callers import Unauthenticated, is_loopback

FETCH_SECONDS = 3.0  # time limit of both requests together
REFRESH_SECONDS = 300.0  # after this time the keys are fetched again
RETRY_SECONDS = 30.0  # minimum interval between fetches
MAX_KEY_AGE_SECONDS = 86_400.0  # after this time keys of a provider that does not answer are dropped
MAX_ANSWER_BYTES = 1_000_000
UNKNOWN_KEY = "the token was signed with a key that is not known; try again in a minute, or get another token"
T = TypeVar("T")


class ProviderKeys:
    """The keys of one provider."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: Mapping[str, jwt.PyJWK] = {}  # by id
        self._fetched = self._tried = float("-inf")  # monotonic times of the last success and the last attempt
        self._is_answering = False
        self._fetching = Lock()

    def find(self, id_: str) -> jwt.PyJWK:
        """Return a key, and fetch the keys if it is not known.

        Raise Unauthenticated at once if another call is fetching them or has just fetched them. Raise StoreUnavailable
        if the provider does not answer.
        """
        known = self._get_current()
        if id_ not in known:
            if (known and monotonic() - self._tried < RETRY_SECONDS) or not self._fetching.acquire(blocking=False):
                raise Unauthenticated(UNKNOWN_KEY)
            self._fetch_and_release()
            known = self._get_current()
        if id_ not in known:
            raise Unauthenticated(UNKNOWN_KEY)
        return known[id_]

    def refresh(self) -> None:
        """Fetch the keys if it is time. Raise StoreUnavailable if the provider did not answer the last time."""
        now, pause = monotonic(), REFRESH_SECONDS if self._is_answering else RETRY_SECONDS
        if self._issuer and now - self._tried > pause and self._fetching.acquire(blocking=False):
            self._fetch_and_release()
        elif self._issuer and not self._is_answering:
            raise StoreUnavailable(f"the OpenID provider {self._issuer} did not answer the last time")

    def _get_current(self) -> Mapping[str, jwt.PyJWK]:
        return self._keys if monotonic() - self._fetched < MAX_KEY_AGE_SECONDS else {}

    def _fetch_and_release(self) -> None:
        self._tried, self._is_answering = monotonic(), False
        try:
            self._keys = _run(_fetch_keys(self._issuer))
            self._fetched, self._is_answering = monotonic(), True
        except (httpx.HTTPError, jwt.PyJWTError, TimeoutError, ValueError, OSError) as error:
            reason = str(error) or f"no answer in {FETCH_SECONDS:g} seconds"
            raise StoreUnavailable(
                f"the OpenID provider {self._issuer} does not answer ({reason}); try again"
            ) from error
        finally:
            self._fetching.release()


def _run(fetch: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this thread. `asyncio.run` would wait for a name server that hangs."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(fetch)
    finally:
        loop.close()


async def _fetch_keys(issuer: str) -> Mapping[str, jwt.PyJWK]:
    """Return the keys of a provider for signatures (OpenID Connect Discovery 1.0)."""
    async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(timeout=FETCH_SECONDS) as client:
        url = (await describe_provider(client, issuer))["jwks_uri"]
        check_address(issuer, url, "jwks_uri")
        keys = jwt.PyJWKSet.from_dict(await _read_json(client, url)).keys
    return {key.key_id: key for key in keys if key.key_id and key.public_key_use in (None, "sig")}


async def describe_provider(client: httpx.AsyncClient, issuer: str) -> dict[str, Any]:
    """Return the addresses of a provider by name, as it describes itself."""
    described = await _read_json(client, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if described.get("issuer") != issuer or not isinstance(described.get("jwks_uri"), str):
        raise StoreUnavailable(f"{issuer} is not an OpenID provider with that name; check oidc.issuer")
    return described


def check_address(issuer: str, url: str, name: str) -> None:
    """Raise StoreUnavailable if an address is not a web page, or others could read or change the traffic."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise StoreUnavailable(f"the OpenID provider {issuer} names {url[:200]}: its {name} must begin with https://")


async def _read_json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Return the JSON object that a server sends. Raise an error if it sends too much."""
    body = bytearray()
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ValueError(f"{url} sends more than {MAX_ANSWER_BYTES} bytes")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError(f"{url} sends no JSON object")
    return found
