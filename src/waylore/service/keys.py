"""API keys: how one is made, told, compared, rotated and revoked.

A key is told once, as `waylore_ID_SECRET`; the registry keeps a hash of the secret, which has 256 random bits, so
that a plain hash is as good as a slow one. What a key opens is decided by `http_callers`.
"""

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from waylore.errors import ConfigError
from waylore.service.registry.protocol import EVERY, Key, Scope

MARK = "waylore_"
GRACE = timedelta(days=1)  # that the former secret of a rotated key goes on working


def issued(
    name: str,
    *,
    collections: Iterable[str] = (EVERY,),
    scope: Scope = "read",
    labels: Iterable[str] | None = None,
    expires: datetime | None = None,
) -> tuple[Key, str]:
    """A new key, and what its holder is to be told, once."""
    collections, labels = frozenset(collections), None if labels is None else frozenset(labels)
    if any(not word or "\n" in word for word in (name, *collections, *(labels or ()))):
        raise ConfigError("names of keys, collections and labels are words in one line: write them so")
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    key = Key(
        id=id_,
        name=name,
        hash=_hashed(secret),
        collections=collections,
        scope=scope,
        created=datetime.now(UTC),
        labels=labels,
        expires=expires,
    )
    return key, _told(id_, secret)


def rotated(key: Key, *, grace: timedelta = GRACE) -> tuple[Key, str]:
    """The key with a new secret; the former one works for a while longer."""
    secret = secrets.token_urlsafe(32)
    until = datetime.now(UTC) + grace
    return replace(key, hash=_hashed(secret), former=key.hash, former_until=until), _told(key.id, secret)


def revoked(key: Key) -> Key:
    """The key, of no more use to anyone; a key that was revoked stays as it is."""
    return key if key.revoked else replace(key, revoked=datetime.now(UTC))


def parted(token: str) -> tuple[str, str]:
    """Identity and secret of what a holder was told; empty if it is nothing of ours."""
    id_, _, secret = token.removeprefix(MARK).partition("_")
    return (id_, secret) if token.startswith(MARK) and secret else ("", "")


def opens(key: Key, secret: str, now: datetime) -> bool:
    """Whether a secret is the key's own, or its former one in time, and the key is good."""
    given = _hashed(secret)
    is_own = hmac.compare_digest(given, key.hash)
    is_former = hmac.compare_digest(given, key.former or key.hash)
    in_time = key.former_until is not None and now < key.former_until
    is_good = key.revoked is None and (key.expires is None or now < key.expires)
    return is_good and (is_own or (is_former and in_time))


def _hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _told(id_: str, secret: str) -> str:
    return f"{MARK}{id_}_{secret}"
