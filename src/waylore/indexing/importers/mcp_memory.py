"""Imports the file of the MCP memory server: lines of JSON that are entities with observations, or relations.

An entity is a document with its name as the title and a passage for each observation; a relation is a document
that states it. An entity that lost or gained observations replaces what was there. The server calls whoever it
talks to `default_user`; to Waylore that is the `user`, so that "where do I work?" is answered.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from waylore.indexing.blocks import Refusal, Refused, Source
from waylore.indexing.importers.parts import Part, assembled, entity, framed, told
from waylore.indexing.importers.rows import Fields, each, json_rows, name_in, said, texts_in
from waylore.types.knowledge import Claim, Contribution, Document

KINDS = ("entity", "relation")
ALIASES = {"default_user": ("user",)}


def memory(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """Each entity and each relation, in the order of the file."""
    remembered = replace(frame, source="conversation")
    return each(json_rows(source), lambda value: [_made(value, remembered)])


def _made(value: Any, frame: Document) -> Contribution:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in KINDS:
        raise Refused('its "type" must be "entity" or "relation"')
    return _entity(value, frame) if kind == "entity" else _relation(value, frame)


def _entity(row: Fields, frame: Document) -> Contribution:
    name, type_ = name_in(row, "name"), said(row, "entityType")
    observations = texts_in(row, "observations") or [f"{name}: {type_}" if type_ else name]
    document = framed(frame, "memory", name, title=name)
    about = entity(name, type_, aliases=ALIASES.get(name, ()))
    return assembled(document, [Part(text) for text in observations], [about])


def _relation(row: Fields, frame: Document) -> Contribution:
    ends = (name_in(row, "from"), name_in(row, "relationType"), name_in(row, "to"))
    return told(Claim(*ends, source=frame.source), frame)
