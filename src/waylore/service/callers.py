"""Callers and their rights. A caller has an API key, a token of an OpenID provider, or needs neither.

Scopes include each other: write includes read, admin includes write. A caller without access to a collection
gets the same error as for a collection that does not exist.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from math import inf
from threading import Lock
from time import monotonic

from cachetools import LRUCache

from waylore.errors import Forbidden, NotFound
from waylore.service.keys import split_token, verify_secret
from waylore.service.registry.protocol import ALL_COLLECTIONS, SCOPES, Key, Registry, Scope
from waylore.types.author import Author
from waylore.types.knowledge import Source

COLLECTION_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"  # names that can be part of a URL
KEY_CACHE_SECONDS = 2.0  # a revoked key may still work this long
KNOWN_KEY_SECONDS = 60.0  # the same while the registry does not answer
MAX_KNOWN_KEYS = 4_096
LAST_USE_PRECISION = timedelta(minutes=1)  # minimum time between two writes of a key's last use


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with a scope and collections (`*` for all), and with labels, sources and a user like an author."""

    id: str
    scope: Scope
    collections: frozenset[str] = frozenset({ALL_COLLECTIONS})
    labels: frozenset[str] | None = None
    max_source: Source | None = None
    user: str = ""

    @property
    def author(self) -> Author:
        """The author that the caller reads and writes as."""
        return Author(self.id, self.labels, self.max_source, self.user)

    def can_see(self, collection: str) -> bool:
        """Return whether the caller may see a collection, if it exists."""
        return ALL_COLLECTIONS in self.collections or collection in self.collections

    def can_grant(self, key: Key) -> bool:
        """Return whether the caller has the collections, labels, source and user of a key, and so may manage it."""
        has_labels = self.labels is None or (key.labels is not None and self.labels >= key.labels)
        has_source = self.author.cap(key.max_source) == key.max_source
        has_user = self.user in ("", key.user)
        return has_labels and has_source and has_user and all(map(self.can_see, key.collections))


ANYONE = Caller("anyone", "admin")  # every caller, if the service does not authenticate


class Unauthenticated(Exception):
    """Missing credentials; send an API key as `Authorization: Bearer waylore_…`."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)


def require(caller: Caller, scope: Scope) -> None:
    """Raise Forbidden if the caller's scope is too small."""
    if SCOPES.index(caller.scope) < SCOPES.index(scope):
        raise Forbidden(f"this request needs scope {scope}, your key has {caller.scope}; use another key")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_not_found_error(collection: str) -> NotFound:
    """Return the error for a collection that does not exist or that the caller may not see."""
    return NotFound(f"no collection {collection!r}; GET /v1/collections lists the collections that you may see")


@dataclass(slots=True)
class _KnownKey:
    """A key of the registry. Until two monotonic times it is valid without a look-up, and without an answer."""

    key: Key
    cached_until: float
    known_until: float


class ApiKeys:
    """Authenticates callers by API keys.

    Keys of the registry are cached for KEY_CACHE_SECONDS, and for KNOWN_KEY_SECONDS if the registry does not answer.
    """

    def __init__(self, registry: Registry, run_later: Callable[[Callable[[], None]], object]) -> None:
        self._registry = registry
        self._run_later = run_later  # runs a call in the background of a response
        self._known: LRUCache[str, _KnownKey] = LRUCache(MAX_KNOWN_KEYS)
        self._admitted: dict[str, _KnownKey] = {}
        self._lock = Lock()

    def find_cached(self, token: str) -> Caller | None:
        """Return the caller of a recently used key without waiting for the registry."""
        known = self._get_known(token)
        return self._verify(token, known.key) if known and monotonic() < known.cached_until else None

    def find_known(self, token: str) -> Caller | None:
        """Return the caller of a key that was in the registry recently. It is used if the registry does not answer."""
        known = self._get_known(token)
        return self._verify(token, known.key) if known and monotonic() < known.known_until else None

    def extend_cached(self, token: str) -> None:
        """Accept a known key for a short time without a look-up, because the registry does not answer."""
        if known := self._get_known(token):
            known.cached_until = min(monotonic() + KEY_CACHE_SECONDS, known.known_until)

    def authenticate(self, token: str) -> Caller:
        """Return the caller of a key in the registry. Raise Unauthenticated if the key is not valid."""
        id_, _ = split_token(token)
        key = self._registry.get_key(id_) if id_ else None
        if key is None:
            self.forget(id_)
        else:
            now = monotonic()
            with self._lock:
                self._known[id_] = _KnownKey(key, now + KEY_CACHE_SECONDS, now + KNOWN_KEY_SECONDS)
        caller = self._verify(token, key)
        if caller is None:
            raise Unauthenticated("the API key is unknown, expired or revoked; use another")
        return caller

    def admit(self, key: Key) -> None:
        """Accept a key that is not in the registry, as long as this process runs."""
        with self._lock:
            self._admitted[key.id] = _KnownKey(key, inf, inf)

    def forget(self, id_: str) -> None:
        """Remove a changed key from the cache."""
        with self._lock:
            self._known.pop(id_, None)

    def _get_known(self, token: str) -> _KnownKey | None:
        id_, _ = split_token(token)
        with self._lock:
            return self._admitted.get(id_) or self._known.get(id_)

    def _verify(self, token: str, key: Key | None) -> Caller | None:
        now = datetime.now(UTC)
        if key is None or not verify_secret(key, split_token(token)[1], now):
            return None
        self._record_use(key, now)
        return Caller(f"key:{key.id}", key.scope, key.collections, key.labels, key.max_source, key.user)

    def _record_use(self, key: Key, now: datetime) -> None:
        if key.used is None or now - key.used > LAST_USE_PRECISION:
            with self._lock:
                if known := self._known.get(key.id):
                    known.key = replace(key, used=now)
            self._run_later(lambda: self._registry.record_key_use(key.id, now))
