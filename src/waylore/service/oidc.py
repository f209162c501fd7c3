"""Authenticate callers by tokens of an OpenID Connect provider.

A token must be signed by the provider, name us as its audience, and not be expired. `provider_keys.py` has the
provider's keys. Two claims, named in the settings, hold the collections and the scope of the caller. A third claim
lists the labels of the caller. If it is absent or malformed, the caller has no labels and sees only public documents.
If the settings name no such claim, every caller has all labels.
"""

from collections.abc import Mapping
from typing import Any

import jwt

from waylore.service.callers import Caller, Unauthenticated
from waylore.service.provider_keys import ProviderKeys
from waylore.service.registry.protocol import SCOPES, Scope
from waylore.settings.sections import OidcSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 30  # allowed difference between the clocks of the provider and the service
MAX_TOKEN_LENGTH = 8_000  # longer tokens are refused unread


class OidcTokens:
    """Authenticates callers by tokens of one provider."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self.keys = ProviderKeys(settings.issuer)

    @property
    def is_used(self) -> bool:
        """Whether the settings name a provider."""
        return bool(self._settings.issuer)

    def authenticate(self, token: str) -> Caller:
        """Return the caller of a token. Raise Unauthenticated if the token is not valid."""
        if not self.is_used:
            raise Unauthenticated
        if len(token) > MAX_TOKEN_LENGTH:
            raise Unauthenticated(f"the token is longer than {MAX_TOKEN_LENGTH} characters; get a shorter one")
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
            key = self.keys.find(str(jwt.get_unverified_header(token).get("kid", "")))
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,  # only the key: many name no algorithm
                algorithms=ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthenticated(f"the token is not valid ({error}); get another from the provider") from error
        return claims


def _find_scope(claim: Any) -> Scope | None:
    """Return the largest of the scopes that a token lists."""
    listed = _split_words(claim)
    return next((scope for scope in reversed(SCOPES) if scope in listed), None)


def _split_words(claim: Any) -> frozenset[str]:
    """Return the words of a claim, which is a list or a text with spaces."""
    listed = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(word for word in listed if isinstance(word, str) and word)
