"""API keys: create, verify, rotate and revoke them.

A key is shown once, as the token `waylore_ID_SECRET`. The registry stores a hash of the secret. The secret
has 256 random bits, so a fast hash is as safe as a slow one. `callers.py` decides what a key allows.
"""

import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from waylore import legacy
from waylore.errors import ArgumentError, ConfigError
from waylore.lengths import MAX_TITLE
from waylore.service.registry.protocol import ALL_COLLECTIONS, Key, Scope
from waylore.types.author import get_default_source
from waylore.types.knowledge import Source

KEY_PREFIX = "waylore_"
KEY_PREFIXES = (KEY_PREFIX, legacy.KEY_PREFIX)  # the prefix is not hashed, so tokens with the old name work
USER_PATTERN = rf"^[^\x00-\x1f\x7f-\x9f]{{1,{MAX_TITLE}}}$"
ROTATION_GRACE = timedelta(days=1)  # time for which the former secret of a rotated key still works


def make_key(
    name: str,
    *,
    collections: Iterable[str] = (ALL_COLLECTIONS,),
    scope: Scope = "read",
    labels: Iterable[str] | None = None,
    expires: datetime | None = None,
    max_source: Source | None = None,
    user: str | None = None,
) -> tuple[Key, str]:
    """Create a key. Return it and its token, which is not stored anywhere."""
    collections, labels = frozenset(collections), None if labels is None else frozenset(labels)
    if scope != "read" and labels == frozenset():
        raise ArgumentError("labels must name a label of a key that writes; leave them out for all, or use scope read")
    if any(not word or "\n" in word for word in (name, *collections, *(labels or ()))):
        raise ConfigError("names of keys, collections and labels must be text of one line")
    if user is not None and not re.fullmatch(USER_PATTERN, user):
        raise ArgumentError(f"user must be text of one line of 1 to {MAX_TITLE:,} characters")
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    key = Key(
        id=id_,
        name=name,
        hash=_hash(secret),
        collections=collections,
        scope=scope,
        created=datetime.now(UTC),
        labels=labels,
        expires=expires,
        max_source=max_source or get_default_source(labels, user or ""),
        user=user or "",
    )
    return key, _make_token(id_, secret)


def rotate_secret(key: Key, *, grace: timedelta = ROTATION_GRACE) -> tuple[Key, str]:
    """Return the key with a new secret, and its token. The former secret works for `grace`."""
    secret = secrets.token_urlsafe(32)
    until = datetime.now(UTC) + grace
    return replace(key, hash=_hash(secret), former=key.hash, former_until=until), _make_token(key.id, secret)


def mark_revoked(key: Key) -> Key:
    """Return the key as revoked now. A key that was revoked before stays as it is."""
    return key if key.revoked else replace(key, revoked=datetime.now(UTC))


def split_token(token: str) -> tuple[str, str]:
    """Return the id and the secret of a token. Both are empty if it is not a token of Waylore."""
    prefix = next((prefix for prefix in KEY_PREFIXES if token.startswith(prefix)), "")
    id_, _, secret = token.removeprefix(prefix).partition("_")
    return (id_, secret) if prefix and secret else ("", "")


def verify_secret(key: Key, secret: str, now: datetime) -> bool:
    """Return whether a key is valid and a secret is its current one, or its former one in the grace time."""
    digest = _hash(secret)
    is_current = hmac.compare_digest(digest, key.hash)
    is_former = hmac.compare_digest(digest, key.former or key.hash)
    is_in_time = key.former_until is not None and now < key.former_until
    is_valid = key.revoked is None and (key.expires is None or now < key.expires)
    return is_valid and (is_current or (is_former and is_in_time))


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _make_token(id_: str, secret: str) -> str:
    return f"{KEY_PREFIX}{id_}_{secret}"
