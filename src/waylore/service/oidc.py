"""Authenticate callers by tokens of an OpenID Connect provider.

A token must be signed by the provider, name us as its audience, and not be expired. The provider's keys are
found by discovery and cached. They are read again if a token names an unknown key, at most twice a minute.
Two claims, named in the settings, hold the collections and the scope of the caller. A third claim lists the labels
of the caller. If it is absent or malformed, the caller has none and sees public documents only. If the settings name
no such claim, every caller has all labels.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

import httpx
import jwt

from waylore.errors import StoreUnavailable
from waylore.service.callers import Caller, Unauthenticated
from waylore.service.registry.protocol import SCOPES, Scope
from waylore.settings.sections import OidcSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
TIMEOUT_SECONDS = 5.0
LEEWAY_SECONDS = 30  # by which the clocks of the provider and the service may differ


class OidcTokens:
    """Authenticates callers by tokens of one provider."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._keys: jwt.PyJWKClient | None = None
        self._lock = Lock()

    def authenticate(self, token: str) -> Caller:
        """Return the caller of a token. Raise Unauthenticated if the token is not valid."""
        if not self._settings.issuer:
            raise Unauthenticated
        claims = self._decode(token)
        scope = _find_scope(claims.get(self._settings.scope))
        collections = _split_words(claims.get(self._settings.collections))
        if scope is None or not collections:
            raise Unauthenticated(
                f"the token needs read, write or admin in claim {self._settings.scope!r} and collections in "
                f"claim {self._settings.collections!r}; add both at the provider"
            )
        labels = _split_words(claims.get(self._settings.labels)) if self._settings.labels else None
        return Caller(f"oidc:{claims['sub']}", scope, collections, labels)

    def _decode(self, token: str) -> Mapping[str, Any]:
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._get_keys().get_signing_key_from_jwt(token).key,  # the key alone: many name no algorithm
                algorithms=ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "sub"]},
            )
        except (jwt.PyJWKClientConnectionError, httpx.HTTPError) as error:
            raise StoreUnavailable(
                f"the OpenID provider {self._settings.issuer} does not answer ({error}); try again"
            ) from error
        except jwt.PyJWTError as error:
            raise Unauthenticated(f"the token is not valid ({error}); get another from the provider") from error
        return claims

    def _get_keys(self) -> jwt.PyJWKClient:
        with self._lock:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(_discover_keys(self._settings.issuer), timeout=TIMEOUT_SECONDS)
            return self._keys


def _discover_keys(issuer: str) -> str:
    """Return the URL of the provider's keys (OpenID Connect Discovery 1.0)."""
    response = httpx.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", timeout=TIMEOUT_SECONDS)
    found = response.raise_for_status().json()
    is_provider = isinstance(found, dict) and found.get("issuer") == issuer
    if not is_provider or not isinstance(found.get("jwks_uri"), str):
        raise StoreUnavailable(
            f"{issuer} does not describe itself as an OpenID provider of that name; check oidc.issuer"
        )
    return str(found["jwks_uri"])


def _find_scope(claim: Any) -> Scope | None:
    """Return the largest of the scopes that a token lists."""
    listed = _split_words(claim)
    return next((scope for scope in reversed(SCOPES) if scope in listed), None)


def _split_words(claim: Any) -> frozenset[str]:
    """Return the words of a claim, which is a list or a text with spaces."""
    listed = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(word for word in listed if isinstance(word, str) and word)
