"""The Registry protocol: API keys and their audit log, collections, and cached responses for idempotency keys.

The registry is small and lives in the database of the store, or of the catalogue if there are cells. It stores a hash
of a key's secret, never the secret. `callers.py` decides what a scope allows and who may see a collection.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from waylore.store.receipts import bind_entry
from waylore.types.audit import AuditEntry, Verb
from waylore.types.author import LOCAL, Author
from waylore.types.knowledge import Source

Scope = Literal[
    "read",  # search and read
    "write",  # also add and delete documents
    "admin",  # also manage collections and API keys
]
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")  # each includes the previous ones
PAGE_SIZE = 1_000  # rows that a list returns by default
ALL_COLLECTIONS = "*"  # means all, in a key's list of collections
ALL_LABELS = "*"  # means all labels of a key, in the audit log


@dataclass(frozen=True, slots=True)
class Key:
    """An API key: its name, its scope, its collections and its times."""

    id: str
    name: str
    hash: str = field(repr=False)
    collections: frozenset[str]
    scope: Scope
    created: datetime
    labels: frozenset[str] | None = None  # None sees everything
    expires: datetime | None = None
    revoked: datetime | None = None
    used: datetime | None = None
    former: str = field(default="", repr=False)  # hash of the secret before the last rotation
    former_until: datetime | None = None  # the former secret works until then
    max_source: Source = "conversation"  # most trusted source that its writes may have
    user: str = ""  # the key reads and writes only for this user; empty means any


@dataclass(frozen=True, slots=True)
class RegisteredCollection:
    """A collection that the service offers."""

    name: str
    description: str
    created: datetime


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A request that must run only once: its caller, the caller's key word, and a digest of the request."""

    caller: str
    word: str
    digest: str


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """The response to a request with an idempotency key. Status 0 means that the request is still running."""

    digest: str
    status: int = 0
    body: bytes = b""
    media_type: str = ""


class Registry(Protocol):
    """API keys, collections and cached responses. Every method may be called from any thread."""

    def get_secret(self) -> bytes:
        """Return random bytes that all processes of a service share."""
        ...

    def list_keys(self, *, after: Key | None = None, limit: int = PAGE_SIZE) -> tuple[Key, ...]:
        """Return keys, oldest first, starting after `after`."""
        ...

    def get_key(self, id_: str) -> Key | None:
        """Return a key by id."""
        ...

    def set_key(self, key: Key, *, author: str = LOCAL) -> None:
        """Add or change a key, and add the change to the audit log. The time of its last use is not changed."""
        ...

    def audit(self, *, after: int = 0, limit: int = PAGE_SIZE) -> tuple[AuditEntry, ...]:
        """Return the changes of keys after the number of an entry, oldest first. -5 returns the newest five."""
        ...

    def record_key_use(self, id_: str, at: datetime) -> None:
        """Store the time of a key's last use."""
        ...

    def list_collections(
        self, *, after: str = "", limit: int = PAGE_SIZE, among: Iterable[str] | None = None
    ) -> tuple[RegisteredCollection, ...]:
        """Return collections by name, starting after `after`: all, or those with a name in `among`."""
        ...

    def get_collection(self, name: str) -> RegisteredCollection | None:
        """Return a collection by name."""
        ...

    def set_collection(self, collection: RegisteredCollection) -> bool:
        """Add a collection, or change its description. Return whether it is new."""
        ...

    def remove_collection(self, name: str) -> bool:
        """Remove a collection from the registry. Return whether it existed. Its documents are not deleted."""
        ...

    def claim(self, request: IdempotencyKey, *, now: float, until: float) -> CachedResponse | None:
        """Reserve a request for the caller until a time and return None, or return the known response."""
        ...

    def store_response(self, request: IdempotencyKey, response: CachedResponse, *, until: float) -> None:
        """Store the response to a request until a time."""
        ...

    def release(self, request: IdempotencyKey) -> None:
        """Release a request that failed, so that it can be sent again."""
        ...

    def delete_expired_responses(self, now: float) -> None:
        """Delete responses whose time has passed."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


def to_key(row: tuple[Any, ...]) -> Key:
    """Convert a row to a key. Lists are stored as lines, times as seconds since 1970."""
    id_, name, hash_, collections, scope, labels, *times, former, former_until, max_source, user = row
    created, expires, revoked, used = map(_to_time, times)
    return Key(
        id=id_,
        name=name,
        hash=hash_,
        collections=frozenset(collections.split("\n")) - {""},
        scope=scope,
        created=created or datetime.fromtimestamp(0, UTC),
        labels=None if labels is None else frozenset(labels.split("\n")) - {""},
        expires=expires,
        revoked=revoked,
        used=used,
        former=former,
        former_until=_to_time(former_until),
        max_source=max_source,
        user=user,
    )


def bind_key(key: Key) -> Mapping[str, str | float | None]:
    """Return the SQL parameters of a key."""
    return {
        "id": key.id,
        "name": key.name,
        "hash": key.hash,
        "collections": "\n".join(sorted(key.collections)),
        "scope": key.scope,
        "labels": None if key.labels is None else "\n".join(sorted(key.labels)),
        "created": key.created.timestamp(),
        "expires": _to_seconds(key.expires),
        "revoked": _to_seconds(key.revoked),
        "former": key.former,
        "former_until": _to_seconds(key.former_until),
        "max_source": key.max_source,
        "user": key.user,
    }


def name_change(before: Key | None, after: Key) -> Verb | None:
    """Return the change of a key by its name in the audit log; None without a change."""
    if before is None:
        return "create_key"
    if before.revoked != after.revoked:
        return "revoke_key"
    if before.hash != after.hash:
        return "rotate_key"
    return None if replace(before, used=after.used) == after else "change_key"


def bind_key_entry(
    last: tuple[int, bytes] | None, verb: Verb, author: str, before: Key | None, after: Key
) -> Mapping[str, Any]:
    """Return the columns of the next entry of the log of keys; its last entry is given by number and hash."""
    labels = [] if before is None else [_dump_labels(before)]
    return bind_entry(last, verb, Author(author), (), before=labels, after=[_dump_labels(after)], key=after.id)


def _dump_labels(key: Key) -> str:
    return json.dumps([ALL_LABELS] if key.labels is None else sorted(key.labels))


def to_collection(row: tuple[Any, ...]) -> RegisteredCollection:
    """Convert a row to a collection."""
    name, description, created = row
    return RegisteredCollection(name, description, datetime.fromtimestamp(created, UTC))


def bind_request(request: IdempotencyKey) -> Mapping[str, str]:
    """Return the SQL parameters of an idempotency key."""
    return {"caller": request.caller, "word": request.word, "digest": request.digest}


def bind_response(response: CachedResponse) -> Mapping[str, int | bytes | str]:
    """Return the SQL parameters of a cached response."""
    return {"status": response.status, "body": response.body, "media_type": response.media_type}


def _to_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _to_seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
