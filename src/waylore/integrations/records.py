"""The objects that Zep's methods return, with the fields of Zep, and conversions from objects of Waylore.

Ids are Waylore's: a message and an episode have the id of their document, an edge the id of its fact, a node the id of
its entity. The module reads and writes no store.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.indexing.conversations.messages import ROLE_NAMES, to_time
from waylore.types.knowledge import Document, Entity, Fact, Passage
from waylore.types.messages import Message

SAID = "said"  # name of an edge for a passage without facts
_NO_ROLE = "norole"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessage:
    """A message of a thread, as Zep's `Message`."""

    role: str
    content: str
    name: str | None = None
    created_at: str | None = None
    metadata: Mapping[str, Any] | None = None
    uuid_: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessages:
    """The messages of a thread, and the number of all its messages."""

    messages: list[ThreadMessage]
    row_count: int
    total_count: int
    user_id: str
    thread_created_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRecord:
    """A thread and its user."""

    thread_id: str
    user_id: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """A user with the arguments of `user.add`."""

    user_id: str
    created_at: str
    email: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    metadata: Mapping[str, Any] | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """A context for a model, and the ids of the messages that were added with the same call."""

    context: str | None = None
    message_uuids: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityEdge:
    """A fact with its interval. For a passage without facts, `fact` is its text and `name` is "said"."""

    uuid_: str
    fact: str
    name: str
    created_at: str
    source_node_name: str = ""
    target_node_name: str = ""
    source_node_uuid: str = ""
    target_node_uuid: str = ""
    valid_at: str | None = None
    invalid_at: str | None = None
    expired_at: str | None = None
    episodes: list[str] | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityNode:
    """An entity with its description."""

    uuid_: str
    name: str
    summary: str
    labels: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A document or a found passage."""

    uuid_: str
    content: str
    created_at: str
    thread_id: str | None = None
    role: str | None = None
    role_type: str | None = None
    metadata: Mapping[str, Any] | None = None
    source: str | None = None
    source_description: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSearchResults:
    """The result of `graph.search`: the field of its scope has the results; the other fields are None."""

    edges: list[EntityEdge] | None = None
    nodes: list[EntityNode] | None = None
    episodes: list[Episode] | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTriple:
    """The edge that `graph.add_fact_triple` has added."""

    edge: EntityEdge


def read_field(value: Any, *names: str) -> Any:
    """Return the first of these fields that a dict or an object has, or None."""
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def to_message(value: Any) -> Message:
    """Return a message of Zep, a dict or an object with its fields, as `Message`."""
    if isinstance(value, Message):
        return value
    role = str(read_field(value, "role") or _NO_ROLE).lower()
    if role != _NO_ROLE and role not in ROLE_NAMES:
        raise ArgumentError(f"role of a message must be one of {', '.join(ROLE_NAMES)} or {_NO_ROLE}, got {role!r:.40}")
    return Message(
        ROLE_NAMES.get(role, "user"),
        str(read_field(value, "content") or ""),
        str(read_field(value, "name") or ""),
        to_time(read_field(value, "created_at"), "created_at"),
        str(read_field(value, "uuid_", "uuid") or ""),
    )


def make_message(document: Document, passage: Passage, text: str) -> ThreadMessage:
    """Return a turn as a message of a thread."""
    return ThreadMessage(
        role=passage.role,
        content=text,
        name=passage.speaker,
        created_at=format_time(passage.at or document.recorded_at),
        metadata=dict(document.metadata) or None,
        uuid_=document.id,
    )


def make_edge(fact: Fact, document: Document, score: float | None = None) -> EntityEdge:
    """Return a fact as an edge; without a stated beginning it is valid from the time at which it was said."""
    began = fact.valid_from or fact.at or document.at
    return EntityEdge(
        uuid_=fact.id,
        fact=fact.statement or f"{fact.subject} {fact.predicate} {fact.object}",
        name=fact.predicate,
        created_at=format_time(document.recorded_at),
        source_node_name=fact.subject,
        target_node_name=fact.object,
        source_node_uuid=fact.subject_id,
        target_node_uuid=fact.object_id,
        valid_at=format_time(began) if began else None,
        invalid_at=format_time(fact.valid_to) if fact.valid_to else None,
        episodes=[document.id],
        score=score,
    )


def make_text_edge(passage: Passage, document: Document, score: float) -> EntityEdge:
    """Return a passage without facts as an edge, so that a prompt made of edges has its text."""
    return EntityEdge(
        uuid_=passage.id,
        fact=passage.text,
        name=SAID,
        created_at=format_time(document.recorded_at),
        source_node_name=passage.speaker,
        valid_at=format_time(passage.at) if passage.at else None,
        episodes=[document.id],
        score=score,
    )


def make_node(entity: Entity) -> EntityNode:
    """Return an entity as a node."""
    return EntityNode(
        uuid_=entity.id, name=entity.name, summary=entity.description, labels=[entity.type] if entity.type else []
    )


def make_episode(document: Document, passage: Passage, text: str, score: float | None = None) -> Episode:
    """Return a document, or one of its passages, as an episode."""
    return Episode(
        uuid_=document.id,
        content=text,
        created_at=format_time(passage.at or document.recorded_at),
        thread_id=document.session or None,
        role=passage.speaker or None,
        role_type=passage.role or None,
        metadata=dict(document.metadata) or None,
        source="message" if passage.role else "text",
        source_description=document.title or None,
        score=score,
    )


def format_time(moment: datetime) -> str:
    """Return a time as Zep writes it, ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def matches_dates(value: str | None, groups: Sequence[Sequence[Any]] | None) -> bool:
    """Return whether a time fits all filters of one of the groups, as in Zep's `SearchFilters`."""
    return not groups or any(all(_matches_date(value, each) for each in group) for group in groups)


def matches_names(names: Iterable[str], wanted: Sequence[str] | None, unwanted: Sequence[str] | None) -> bool:
    """Return whether one of the names is wanted and none is unwanted; None sets no condition."""
    known = {name.casefold() for name in names}
    is_wanted = wanted is None or not known.isdisjoint(name.casefold() for name in wanted)
    return is_wanted and known.isdisjoint(name.casefold() for name in unwanted or ())


def _matches_date(value: str | None, each: Any) -> bool:
    name = str(read_field(each, "comparison_operator"))
    if name.upper().replace("_", " ") in ("IS NULL", "IS NOT NULL"):
        return (value is None) == (name.upper().replace("_", " ") == "IS NULL")
    if name not in _COMPARE:
        raise ArgumentError(f"comparison_operator must be one of {', '.join(_COMPARE)}, IS NULL, got {name!r:.40}")
    limit = to_datetime(str(read_field(each, "date")), "date")
    return value is not None and _COMPARE[name](to_datetime(value), limit)
