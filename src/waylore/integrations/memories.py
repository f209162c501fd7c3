"""Convert documents to mem0's memories, and mem0's filters to filters of Waylore.

mem0's further fields of a memory are in the metadata of its document. The module reads and writes no store.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.types.knowledge import Document, Passage
from waylore.types.search import Hit

Item: TypeAlias = dict[str, Any]
Results: TypeAlias = dict[str, list[Item]]
ID, CREATED, HISTORY, EXPIRES = "mem0_id", "mem0_created_at", "mem0_history", "expiration_date"  # keys of metadata
SCOPES = ("user_id", "agent_id", "run_id")


def check_scopes(*scopes: object) -> tuple[str, ...]:
    """Return user, agent and session; at least one must be given."""
    for name, value in zip(SCOPES, scopes, strict=True):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ArgumentError(f"{name} must be a string that is not empty, got {value!r:.40}")
    if not any(scopes):
        raise ArgumentError("user_id, agent_id or run_id must be given; reset() forgets everything")
    return tuple(str(value or "").strip() for value in scopes)


def take_scopes(method: str, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scopes that older code passes besides `filters`. Refuse `limit` and name its replacement."""
    if unknown := sorted(scope.keys() - {*SCOPES}):
        raise ArgumentError(f"{method}: unknown argument {unknown[0]}; use filters, or top_k for the number")
    return {name: value for name, value in scope.items() if value is not None}


def flatten(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions of filters that must all hold; conditions of AND are taken out of their list."""
    flat = {key: value for key, value in filters.items() if key != "AND"}
    for each in filters.get("AND", ()):
        flat |= flatten(each)
    return flat


def read_condition(key: str, value: Any) -> Any:
    """Return the values of a condition; a memory must have one of them."""
    if isinstance(value, Mapping) and set(value) <= {"eq", "in"} and len(value) == 1:
        return value.get("in", value.get("eq"))
    if isinstance(value, Mapping) or value == "*" or key in ("OR", "NOT"):
        raise ArgumentError(f"filters: {key!r:.40} is not supported; use values, eq, in and AND")
    return value


def to_day(value: Any) -> str | None:
    """Return a date as mem0 writes it, YYYY-MM-DD."""
    if value is None:
        return None
    return to_datetime(value, EXPIRES).date().isoformat()


def make_id(document: Document) -> str:
    """Return the id of a memory: its stored id after an update, else the id of its document, with its user."""
    own = document.metadata.get(ID)
    return own if isinstance(own, str) else ":".join(filter(None, (document.id, document.user)))


def list_changes(document: Document) -> list[str]:
    """Return the changes of a memory as JSON texts: the text before, the text after, and the time."""
    changes = document.metadata.get(HISTORY)
    return [str(change) for change in changes] if isinstance(changes, list | tuple) else []


def get_times(document: Document) -> tuple[str, str]:
    """Return the times at which a memory was first said and last changed."""
    created = document.metadata.get(CREATED) or _format(document.at or document.recorded_at)
    return str(created), _format(document.recorded_at)


def _format(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def describe_hit(hit: Hit, *, explain: bool) -> Item:
    """Return a hit in the form of mem0: the memory with its score."""
    item = {**describe(hit.document, hit.passage, hit.text), "score": hit.score}
    return {**item, "score_details": hit.to_dict(explain=True)["explanation"]} if explain else item


def describe(document: Document, passage: Passage, text: str) -> Item:
    """Return a memory in the form of mem0; fields without a value are None."""
    own = (ID, CREATED, HISTORY, EXPIRES)
    created, updated = get_times(document)
    return {
        "id": make_id(document),
        "memory": text,
        "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {key: value for key, value in document.metadata.items() if key not in own} or None,
        "created_at": created,
        "updated_at": updated,
        "user_id": document.user or None,
        "agent_id": document.agent or None,
        "run_id": document.session or None,
        "actor_id": passage.speaker or None,
        "role": passage.role or None,
        EXPIRES: document.metadata.get(EXPIRES),
    }
