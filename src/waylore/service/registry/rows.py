"""The Registry protocol over a function that runs named SQL: the same code for every database."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias

from waylore.deadline import commit_in_time
from waylore.service.registry.protocol import (
    PAGE_SIZE,
    CachedResponse,
    IdempotencyKey,
    Key,
    RegisteredCollection,
    bind_key,
    bind_key_entry,
    bind_request,
    bind_response,
    name_change,
    to_collection,
    to_key,
)
from waylore.store.receipts import read_entry
from waylore.types.audit import AuditEntry
from waylore.types.author import LOCAL

RunStatement: TypeAlias = Callable[..., list[Any]]  # called with the name of a statement, and its parameters by keyword


class RowsRegistry:
    """A registry that runs each statement in a transaction of its own, and changes of keys one after another."""

    def __init__(
        self,
        run: RunStatement,
        change_keys: Callable[[Callable[[RunStatement], None]], None],  # runs a change in one transaction
        close: Callable[[], None],
    ) -> None:
        self._rows = run
        self._change_keys = change_keys
        self._close = close

    def get_secret(self) -> bytes:
        """Return random bytes that all processes of a service share."""
        [(secret,)] = self._rows("secret")
        return bytes(secret)

    # -- keys ------------------------------------------------------------------------------------------

    def list_keys(self, *, after: Key | None = None, limit: int = PAGE_SIZE) -> tuple[Key, ...]:
        """Return keys, oldest first, starting after `after`."""
        created, id_ = (after.created.timestamp(), after.id) if after else (0.0, "")
        return tuple(map(to_key, self._rows("keys", created=created, id=id_, limit=limit)))

    def get_key(self, id_: str) -> Key | None:
        """Return a key by id."""
        return next(map(to_key, self._rows("key", id=id_)), None)

    def set_key(self, key: Key, *, author: str = LOCAL) -> None:
        """Add or change a key, and add the change to the audit log. The time of its last use is not changed."""

        def change(run: RunStatement) -> None:
            before = next(map(to_key, run("key", id=key.id)), None)
            if verb := name_change(before, key):
                run("set_key", **bind_key(key))
                last = next(iter(run("last_audit")), None)
                run("add_audit", **bind_key_entry(last, verb, author, before, key))

        self._change_keys(change)

    def audit(self, *, after: int = 0, limit: int = PAGE_SIZE) -> tuple[AuditEntry, ...]:
        """Return the changes of keys after the number of an entry, oldest first."""
        return tuple(map(read_entry, self._rows("audit", after=after, limit=limit)))

    def record_key_use(self, id_: str, at: datetime) -> None:
        """Store the time of a key's last use."""
        self._rows("use_key", id=id_, at=at.timestamp())

    # -- collections -----------------------------------------------------------------------------------

    def list_collections(
        self, *, after: str = "", limit: int = PAGE_SIZE, among: Iterable[str] | None = None
    ) -> tuple[RegisteredCollection, ...]:
        """Return collections by name, starting after `after`: all, or those with a name in `among`."""
        names = "" if among is None else json.dumps(sorted(among))
        return tuple(map(to_collection, self._rows("collections", after=after, limit=limit, among=names)))

    def get_collection(self, name: str) -> RegisteredCollection | None:
        """Return a collection by name."""
        return next(map(to_collection, self._rows("collection", name=name)), None)

    def set_collection(self, collection: RegisteredCollection) -> bool:
        """Add a collection, or change its description. Return whether it is new."""
        bound = {"name": collection.name, "description": collection.description}
        with commit_in_time():
            is_new = bool(self._rows("add_collection", **bound, created=collection.created.timestamp()))
            if not is_new:
                self._rows("describe_collection", **bound)
        return is_new

    def remove_collection(self, name: str) -> bool:
        """Remove a collection from the registry. Return whether it existed."""
        with commit_in_time():
            return bool(self._rows("remove_collection", name=name))

    # -- cached responses ------------------------------------------------------------------------------

    def claim(self, request: IdempotencyKey, *, now: float, until: float) -> CachedResponse | None:
        """Reserve a request for the caller until a time and return None, or return the known response."""
        bound = bind_request(request)
        while not self._rows("claim", **bound, now=now, until=until):
            rows = self._rows("kept", caller=request.caller, word=request.word)
            if rows:  # else it was released in between
                digest, status, body, media_type = rows[0]
                return CachedResponse(digest, status, bytes(body), media_type)
        return None

    def store_response(self, request: IdempotencyKey, response: CachedResponse, *, until: float) -> None:
        """Store the response to a request until a time."""
        self._rows("keep", **bind_request(request), **bind_response(response), until=until)

    def release(self, request: IdempotencyKey) -> None:
        """Release a request that failed, so that it can be sent again."""
        self._rows("release", **bind_request(request))

    def delete_expired_responses(self, now: float) -> None:
        """Delete responses whose time has passed."""
        self._rows("sweep", now=now)

    def close(self) -> None:
        """Close all connections."""
        self._close()
