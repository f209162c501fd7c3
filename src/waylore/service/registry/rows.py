"""The registry over anything that runs its named statements: the verbs are the same on every engine."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from waylore.service.registry.protocol import (
    PAGE,
    Claimed,
    Collection,
    Kept,
    Key,
    answer_of,
    claim_of,
    collection_of,
    key_of,
    row_of,
)

Rows = Callable[..., list[Any]]  # the name of a statement and what it is bound to


class RowsRegistry:
    """A registry whose statements `rows` runs; each is a transaction of its own."""

    def __init__(self, rows: Rows, close: Callable[[], None]) -> None:
        self._rows = rows
        self._close = close

    def secret(self) -> bytes:
        """Random bytes that all processes of a service share."""
        [(secret,)] = self._rows("secret")
        return bytes(secret)

    # -- keys ------------------------------------------------------------------------------------------

    def keys(self, *, after: Key | None = None, limit: int = PAGE) -> tuple[Key, ...]:
        """Keys, the oldest first, from `after` on."""
        created, id_ = (after.created.timestamp(), after.id) if after else (0.0, "")
        return tuple(map(key_of, self._rows("keys", created=created, id=id_, limit=limit)))

    def key(self, id_: str) -> Key | None:
        """A key by its identity."""
        return next(map(key_of, self._rows("key", id=id_)), None)

    def set_key(self, key: Key) -> None:
        """Add a key, or change it; when it was used is not touched."""
        self._rows("set_key", **row_of(key))

    def use_key(self, id_: str, at: datetime) -> None:
        """Remember that a key was used."""
        self._rows("use_key", id=id_, at=at.timestamp())

    # -- collections -----------------------------------------------------------------------------------

    def collections(
        self, *, after: str = "", limit: int = PAGE, among: Iterable[str] | None = None
    ) -> tuple[Collection, ...]:
        """Collections by name, from `after` on: all, or some."""
        some = "" if among is None else json.dumps(sorted(among))
        return tuple(map(collection_of, self._rows("collections", after=after, limit=limit, among=some)))

    def collection(self, name: str) -> Collection | None:
        """A collection by its name."""
        return next(map(collection_of, self._rows("collection", name=name)), None)

    def set_collection(self, collection: Collection) -> bool:
        """Add a collection, or change its description; whether it is new."""
        told = {"name": collection.name, "description": collection.description}
        is_new = bool(self._rows("add_collection", **told, created=collection.created.timestamp()))
        if not is_new:
            self._rows("describe_collection", **told)
        return is_new

    def remove_collection(self, name: str) -> bool:
        """Take a collection off the list; whether it was there."""
        return bool(self._rows("remove_collection", name=name))

    # -- answers ---------------------------------------------------------------------------------------

    def claim(self, claimed: Claimed, *, now: float, until: float) -> Kept | None:
        """None if the request is the caller's to do, nobody else's until then; else what is known of it."""
        bound = claim_of(claimed)
        while not self._rows("claim", **bound, now=now, until=until):
            known = self._rows("kept", caller=claimed.caller, word=claimed.word)
            if known:  # else it was let go in between
                digest, status, body, media_type = known[0]
                return Kept(digest, status, bytes(body), media_type)
        return None

    def keep(self, claimed: Claimed, answer: Kept, *, until: float) -> None:
        """Keep an answer for whoever asks again."""
        self._rows("keep", **claim_of(claimed), **answer_of(answer), until=until)

    def release(self, claimed: Claimed) -> None:
        """Let others do a request that could not be done."""
        self._rows("release", **claim_of(claimed))

    def sweep(self, now: float) -> None:
        """Drop kept answers that are too old."""
        self._rows("sweep", now=now)

    def close(self) -> None:
        """Let go of every connection."""
        self._close()
