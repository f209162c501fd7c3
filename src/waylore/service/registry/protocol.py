"""What a service keeps beside the knowledge, as a protocol: API keys, collections, answers to be given again.

It is small and lives in the same database as the knowledge, or in the catalogue's where there are cells. A key
is kept as a hash of its secret, never as the secret. What a scope allows and who may see what is decided by the
surfaces: nothing here does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
PAGE = 1_000  # that are listed at a time
EVERY = "*"  # all collections, as the only word of a key's list


@dataclass(frozen=True, slots=True)
class Key:
    """An API key: what it is called, what it opens, and until when.

    `labels=None` reads everything. After a rotation the `former` secret works until `former_until`.
    """

    id: str
    name: str
    hash: str = field(repr=False)
    collections: frozenset[str]
    scope: Scope
    created: datetime
    labels: frozenset[str] | None = None
    expires: datetime | None = None
    revoked: datetime | None = None
    used: datetime | None = None
    former: str = field(default="", repr=False)
    former_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection that the service shows."""

    name: str
    description: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request that must be done once: who asks, under which word, and a digest of all that was asked."""

    caller: str
    word: str
    digest: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of a request that came before: its digest and answer; status 0 while it is being done."""

    digest: str
    status: int = 0
    body: bytes = b""
    media_type: str = ""


class Registry(Protocol):
    """Keys, collections and kept answers. Every verb may be called from any thread."""

    def secret(self) -> bytes:
        """Random bytes that all processes of a service share."""
        ...

    def keys(self, *, after: Key | None = None, limit: int = PAGE) -> tuple[Key, ...]:
        """Keys, the oldest first, from `after` on."""
        ...

    def key(self, id_: str) -> Key | None:
        """A key by its identity."""
        ...

    def set_key(self, key: Key) -> None:
        """Add a key, or change it; when it was used is not touched."""
        ...

    def use_key(self, id_: str, at: datetime) -> None:
        """Remember that a key was used."""
        ...

    def collections(
        self, *, after: str = "", limit: int = PAGE, among: Iterable[str] | None = None
    ) -> tuple[Collection, ...]:
        """Collections by name, from `after` on: all, or some."""
        ...

    def collection(self, name: str) -> Collection | None:
        """A collection by its name."""
        ...

    def set_collection(self, collection: Collection) -> bool:
        """Add a collection, or change its description; whether it is new."""
        ...

    def remove_collection(self, name: str) -> bool:
        """Take a collection off the list; whether it was there. What it holds is not touched."""
        ...

    def claim(self, claimed: Claimed, *, now: float, until: float) -> Kept | None:
        """None if the request is the caller's to do, nobody else's until then; else what is known of it."""
        ...

    def keep(self, claimed: Claimed, answer: Kept, *, until: float) -> None:
        """Keep an answer for whoever asks again."""
        ...

    def release(self, claimed: Claimed) -> None:
        """Let others do a request that could not be done."""
        ...

    def sweep(self, now: float) -> None:
        """Drop kept answers that are too old."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


def key_of(row: tuple[Any, ...]) -> Key:
    """A key from its row: lists as words with line ends, times in seconds since 1970."""
    id_, name, hash_, collections, scope, labels, *times, former, former_until = row
    created, expires, revoked, used = map(_time, times)
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
        former_until=_time(former_until),
    )


def row_of(key: Key) -> Mapping[str, str | float | None]:
    """What a key is bound as."""
    return {
        "id": key.id,
        "name": key.name,
        "hash": key.hash,
        "collections": "\n".join(sorted(key.collections)),
        "scope": key.scope,
        "labels": None if key.labels is None else "\n".join(sorted(key.labels)),
        "created": key.created.timestamp(),
        "expires": _seconds(key.expires),
        "revoked": _seconds(key.revoked),
        "former": key.former,
        "former_until": _seconds(key.former_until),
    }


def collection_of(row: tuple[Any, ...]) -> Collection:
    """A collection from its row."""
    name, description, created = row
    return Collection(name, description, datetime.fromtimestamp(created, UTC))


def claim_of(claimed: Claimed) -> Mapping[str, str]:
    """What a claim is bound as."""
    return {"caller": claimed.caller, "word": claimed.word, "digest": claimed.digest}


def answer_of(answer: Kept) -> Mapping[str, int | bytes | str]:
    """What an answer is bound as."""
    return {"status": answer.status, "body": answer.body, "media_type": answer.media_type}


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
