"""Import an export of Zep: threads with their messages, and edges of the graph, as JSON or lines of JSON.

A message becomes a turn of its user and session, which is the thread. Messages of tools are left out. An edge becomes a
fact that is valid from `valid_at` to `invalid_at`, or to `expired_at`. Ids identify both, so a changed message or edge
replaces its earlier version. Zep's messages do not name their thread, and its edges do not name their user. If the file
has no fields for them, the session is the name of the file, and the user is the user of the call.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped, Source
from waylore.indexing.conversations.messages import ROLE_NAMES
from waylore.indexing.importers.mem0 import build_turn, choose_user
from waylore.indexing.importers.parts import make_document
from waylore.indexing.importers.rows import (
    Fields,
    ImportRow,
    convert_rows,
    get_metadata,
    get_name,
    get_text,
    get_time,
    read_json_rows,
)
from waylore.indexing.pipeline import index_text
from waylore.protocols import Extractor
from waylore.types.knowledge import Document, IndexedDocument, NewFact
from waylore.types.messages import Message

THREAD = ("thread_id", "session_id")
USER = ("user_id",)
INHERITED = (*THREAD, *USER)  # fields of a thread or graph that apply to its messages and edges
NAMES = "node_names"  # internal field of an edge with the names of the nodes in its file


def is_zep(value: Fields) -> bool:
    """Return whether an object is an edge or a message of Zep, or has a list of them."""
    if _is_edge(value) or (_is_message(value) and any(name in value for name in ("uuid", "uuid_", *INHERITED))):
        return True
    return any(isinstance(each, dict) and is_zep(each) for name in ("edges", "messages") for each in _get(value, name))


def import_zep(
    source: Source, template: Document, extractor: Extractor | None = None
) -> Iterator[IndexedDocument | Skipped]:
    """Yield a turn for each message and a document for each edge, in the order of the file."""
    rows = (each for row in read_json_rows(source) for each in _split(row))
    thread = source.path.stem
    return convert_rows(rows, lambda value: _build_documents(value, template, thread, extractor))


def _split(row: ImportRow | Skipped) -> Iterator[ImportRow | Skipped]:
    """Yield each message and edge of a row that has lists of them, with the fields that they inherit."""
    is_list = not isinstance(row, Skipped) and isinstance(row.value, Mapping) and not _is_edge(row.value)
    if isinstance(row, Skipped) or not is_list or _is_message(row.value):
        yield row
        return
    names = {get_text(node, "uuid", "uuid_"): get_text(node, "name") for node in _get(row.value, "nodes")}
    common = {name: row.value[name] for name in INHERITED if row.value.get(name)}
    found = [*_get(row.value, "messages"), *_get(row.value, "edges")]
    if not found:
        yield Skipped(row.uri, "it has neither messages nor edges")
    for number, value in enumerate(found, start=1):
        yield ImportRow(f"{row.uri}#item={number}", {**common, **value, NAMES: names})


def _build_documents(value: Any, template: Document, thread: str, extractor: Extractor | None) -> list[IndexedDocument]:
    """Return the document of a message or edge; none for a message of a tool."""
    if not isinstance(value, Mapping) or not (_is_edge(value) or _is_message(value)):
        raise ReadError("it is neither a message nor an edge")
    about = value.get("metadata") if isinstance(value.get("metadata"), Mapping) else {}
    frame = replace(
        template,
        source="conversation",
        user=choose_user(get_text(value, *USER), template),
        metadata=get_metadata(about or {}, (), template.metadata),
    )
    if _is_edge(value):
        return [_build_edge(value, frame, extractor)]
    role = ROLE_NAMES.get(get_text(value, "role").lower(), "user")
    if role == "tool":
        return []
    id_, at = get_text(value, "uuid", "uuid_"), get_time(value, "created_at")
    message = Message(role, get_text(value, "content"), get_text(value, "name"), at, id_)
    return [build_turn(message, replace(frame, session=get_text(value, *THREAD) or thread), extractor)]


def _build_edge(value: Fields, frame: Document, extractor: Extractor | None) -> IndexedDocument:
    """Index an edge as a fact. If the names of its nodes are unknown, the extractor reads its text."""
    text, predicate = get_text(value, "fact"), get_name(value, "name").lower()
    ends = [_find_name(value, "source_node"), _find_name(value, "target_node")]
    content = get_text(value, "uuid", "uuid_") or repr((text, predicate, ends, value.get("valid_at")))
    document = replace(make_document(frame, "zep-edge", content), at=get_time(value, "created_at"))
    if not all(ends):
        return index_text(document, text, extractor=extractor)
    fact = NewFact(
        ends[0],
        predicate,
        ends[1],
        text,
        source="conversation",
        valid_from=get_time(value, "valid_at"),
        valid_to=get_time(value, "invalid_at") or get_time(value, "expired_at"),
    )
    return index_text(document, text, [fact])


def _find_name(value: Fields, node: str) -> str:
    """Return the name of a node of an edge: from the edge's own field, or from the node in the same file."""
    known = value.get(NAMES)
    listed = known.get(get_text(value, f"{node}_uuid"), "") if isinstance(known, Mapping) else ""
    return get_text(value, f"{node}_name") or str(listed)


def _is_edge(value: Fields) -> bool:
    return isinstance(value.get("fact"), str) and ("source_node_uuid" in value or "source_node_name" in value)


def _is_message(value: Fields) -> bool:
    return isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


def _get(value: Fields, name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list."""
    found = value.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
