"""Callers by tokens of an OpenID Connect provider: signed by its keys, meant for us, and in time.

The provider's keys are found by discovery and remembered; they are looked up anew when a token names one that
is not known, at most twice a minute. What a token opens is in two claims that the settings name; a third, if
there, lists the labels that its bearer reads.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

import httpx
import jwt

from waylore.errors import StoreUnavailable
from waylore.service.callers import Caller, Unauthenticated
from waylore.service.registry.protocol import SCOPES, Scope
from waylore.settings.sections import Oidc

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
WAIT_SECONDS = 5.0
LEEWAY = 30  # seconds that two clocks may differ by


class Bearers:
    """Callers by tokens of one provider."""

    def __init__(self, settings: Oidc) -> None:
        self._settings = settings
        self._keys: jwt.PyJWKClient | None = None
        self._discovering = Lock()

    def caller(self, token: str) -> Caller:
        """Who bears this token."""
        if not self._settings.issuer:
            raise Unauthenticated
        claims = self._claims(token)
        scope = _scope(claims.get(self._settings.scope))
        collections = _words(claims.get(self._settings.collections))
        labels = claims.get(self._settings.labels)
        if scope is None or not collections:
            raise Unauthenticated(
                f"the token has no scope (read, write, admin) in {self._settings.scope!r}, or none in "
                f"{self._settings.collections!r} (collections): have the provider add both"
            )
        return Caller(f"oidc:{claims['sub']}", scope, collections, None if labels is None else _words(labels))

    def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._known_keys().get_signing_key_from_jwt(token).key,  # providers seldom say its algorithm
                algorithms=ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "sub"]},
            )
        except (jwt.PyJWKClientConnectionError, httpx.HTTPError) as error:
            raise StoreUnavailable(
                f"the OpenID provider {self._settings.issuer} does not answer ({error}): try again"
            ) from error
        except jwt.PyJWTError as error:
            raise Unauthenticated(
                f"the token cannot be used ({error}): get another from the provider"
            ) from error
        return claims

    def _known_keys(self) -> jwt.PyJWKClient:
        with self._discovering:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(_discovered(self._settings.issuer), timeout=WAIT_SECONDS)
            return self._keys


def _discovered(issuer: str) -> str:
    """Where the provider publishes its keys (OpenID Connect Discovery 1.0)."""
    found = httpx.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", timeout=WAIT_SECONDS)
    told = found.raise_for_status().json()
    if not isinstance(told, dict) or told.get("issuer") != issuer or not isinstance(told.get("jwks_uri"), str):
        raise StoreUnavailable(
            f"{issuer} does not describe itself as an OpenID provider of that name: check oidc.issuer"
        )
    return str(told["jwks_uri"])


def _scope(claim: Any) -> Scope | None:
    """The greatest of the scopes that a token lists."""
    listed = _words(claim)
    return next((scope for scope in reversed(SCOPES) if scope in listed), None)


def _words(claim: Any) -> frozenset[str]:
    """A claim's words, as a list or with spaces between."""
    listed = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(word for word in listed if isinstance(word, str) and word)
