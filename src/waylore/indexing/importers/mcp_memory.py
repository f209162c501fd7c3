"""Import the file of the MCP memory server: lines of JSON with entities and observations, or with relations.

An entity becomes a document with its name as the title and a passage for each observation. A relation becomes a
document that states it. If the observations of an entity changed, the new document replaces the old one. The server
calls its user `default_user`. This entity gets the alias `user`, because "where do I work?" asks for `user`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped, Source
from waylore.indexing.importers.parts import (
    ImportedPart,
    assemble_parts,
    make_document,
    make_entity,
    make_fact_document,
)
from waylore.indexing.importers.rows import Fields, convert_rows, get_name, get_text, get_texts, read_json_rows
from waylore.types.knowledge import Document, IndexedDocument, NewFact

KINDS = ("entity", "relation")
ALIASES = {"default_user": ("user",)}


def import_mcp_memory(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield a document for each entity and relation, in the order of the file."""
    from_conversation = replace(template, source="conversation")
    return convert_rows(read_json_rows(source), lambda value: [_build_document(value, from_conversation)])


def _build_document(value: Any, template: Document) -> IndexedDocument:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in KINDS:
        raise ReadError('its "type" must be "entity" or "relation"')
    return _build_entity(value, template) if kind == "entity" else _build_relation(value, template)


def _build_entity(row: Fields, template: Document) -> IndexedDocument:
    name, type_ = get_name(row, "name"), get_text(row, "entityType")
    observations = get_texts(row, "observations") or [f"{name}: {type_}" if type_ else name]
    document = make_document(template, "memory", name, title=name)
    subject = make_entity(name, type_, aliases=ALIASES.get(name, ()))
    return assemble_parts(document, [ImportedPart(text) for text in observations], [subject])


def _build_relation(row: Fields, template: Document) -> IndexedDocument:
    ends = (get_name(row, "from"), get_name(row, "relationType"), get_name(row, "to"))
    return make_fact_document(NewFact(*ends, source=template.source), template)
