"""Import memories that mem0 exports: the JSON of `get_all`, a list of memories, or one memory on each line.

A memory becomes a turn of its user, agent and session (`run_id`), with the time of `created_at`. Its id identifies it,
so a changed memory replaces its earlier version. `expiration_date` and `categories` become metadata.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped, Source
from waylore.indexing.conversations.messages import ROLE_NAMES
from waylore.indexing.importers.parts import make_document
from waylore.indexing.importers.rows import (
    Fields,
    ImportRow,
    convert_rows,
    get_metadata,
    get_text,
    get_time,
    read_json_rows,
)
from waylore.indexing.pipeline import index_message
from waylore.protocols import Extractor
from waylore.store.rows import to_microseconds
from waylore.types.knowledge import Document, IndexedDocument
from waylore.types.messages import Message

LISTS = ("results", "memories")
KEPT = ("expiration_date", "categories")  # fields that become metadata
SCOPES = ("user_id", "agent_id", "run_id", "hash")


def is_mem0(value: Fields) -> bool:
    """Return whether an object is a memory of mem0, or has a list of them."""
    if isinstance(value.get("memory"), str) and any(name in value for name in SCOPES):
        return True
    return any(isinstance(each, dict) and is_mem0(each) for name in LISTS for each in _get_list(value, name)[:1])


def import_mem0(
    source: Source, template: Document, extractor: Extractor | None = None
) -> Iterator[IndexedDocument | Skipped]:
    """Yield a turn for each memory, in the order of the file."""
    rows = (each for row in read_json_rows(source) for each in _split(row))
    return convert_rows(rows, lambda value: [_build_turn(value, template, extractor)])


def choose_user(named: str, template: Document) -> str:
    """Return the user of a row: its own, or the user of the call. If both are given, they must be the same."""
    if template.user and named not in ("", template.user):
        raise ReadError(f"it belongs to the user {named[:60]!r}")
    return named or template.user


def build_turn(message: Message, frame: Document, extractor: Extractor | None = None) -> IndexedDocument:
    """Index a message of an export as a turn, identified by its own id. It has a time only if the export has one."""
    own = (message.id,) if message.id else (message.role, message.name, message.content, str(message.at))
    made = make_document(frame, "turn", frame.agent, frame.session, *own)
    document = replace(made, at=message.at, source="conversation")
    return index_message(document, message, to_microseconds(message.at) if message.at else 0, extractor=extractor)


def _split(row: ImportRow | Skipped) -> Iterator[ImportRow | Skipped]:
    """Yield each memory of a row that has a list of them."""
    if isinstance(row, Skipped) or not isinstance(row.value, Mapping) or "memory" in row.value:
        yield row
        return
    found = [each for name in LISTS for each in _get_list(row.value, name)]
    if not found:
        yield Skipped(row.uri, "it has no memories")
    for number, value in enumerate(found, start=1):
        yield ImportRow(f"{row.uri}#item={number}", value)


def _get_list(value: Fields, name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _build_turn(value: Any, template: Document, extractor: Extractor | None) -> IndexedDocument:
    if not isinstance(value, Mapping):
        raise ReadError("it is not a JSON object")
    text = get_text(value, "memory", "text", "data")
    if not text:
        raise ReadError("it has no memory")
    about = value.get("metadata") if isinstance(value.get("metadata"), Mapping) else {}
    fields = {**(about or {}), **{name: value[name] for name in KEPT if name in value}}
    frame = replace(
        template,
        user=choose_user(get_text(value, "user_id"), template),
        agent=get_text(value, "agent_id"),
        session=get_text(value, "run_id"),
        metadata=get_metadata(fields, (), template.metadata),
    )
    role = ROLE_NAMES.get(get_text(value, "role").lower(), "user")
    message = Message(role, text, get_text(value, "actor_id"), get_time(value, "created_at"), get_text(value, "id"))
    return build_turn(message, frame, extractor)
