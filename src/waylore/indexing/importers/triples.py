"""Imports triples: lines of JSON (`{"subject": …}` or `["s", "p", "o"]`), a JSON list of them, CSV or TSV.

A triple without a text is a document of its own and is handed on at once. Triples with a text are held until
the file has been read, because those that share a text, or an address, make one document. Strings name
entities; numbers, booleans and what is marked `is_value` are plain values. No entity is looked for in a text.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from waylore.indexing.blocks import Refusal, Refused, Source, over
from waylore.indexing.importers.parts import Part, assembled, framed, told
from waylore.indexing.importers.rows import (
    Fields,
    Row,
    each,
    json_rows,
    moment_in,
    name_in,
    number_in,
    rest_of,
    said,
    table_rows,
)
from waylore.types.identity import document_id
from waylore.types.knowledge import SOURCES, Claim, Contribution, Document, Status
from waylore.types.knowledge import Source as Voice

TABLES = (".csv", ".tsv")
SUBJECT, PREDICATE, OBJECT = ("subject", "s", "head"), ("predicate", "p", "relation"), ("object", "o", "tail")
ENDS = (*SUBJECT, *PREDICATE, *OBJECT)
CLAIMED = "statement weight confidence status valid_from valid_to subject_type object_type is_value".split()
USED = frozenset((*ENDS, *CLAIMED, "text", "title", "uri"))
_YES = ("true", "yes", "1")


@dataclass(frozen=True, slots=True)
class Triple:
    """A claim, the document that it is from, and the text that states it, if there is one."""

    claim: Claim
    document: Document
    text: str = ""


def triples(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """Each triple, and then each text with all the triples that it states."""
    held: list[tuple[str, Triple]] = []

    def made(row: Row) -> Iterator[Contribution]:
        triple = _triple(row.value, frame)
        if not triple.text:
            yield told(triple.claim, triple.document)
        elif len(held) >= source.limits.blocks:
            raise Refused(over("blocks", source.limits.blocks, "triples with a text"))
        else:
            held.append((row.uri, triple))

    rows = (row if isinstance(row, Refusal) else Row(row.uri, row) for row in _rows(source))
    yield from each(rows, made)
    yield from each(_texts(held), lambda group: [_together(group, frame)])


def _rows(source: Source) -> Iterator[Row | Refusal]:
    if source.path.suffix.lower() not in TABLES:
        yield from json_rows(source)
        return
    for row in table_rows(source):
        if isinstance(row, Row) and not all(
            set(names) & set(row.value) for names in (SUBJECT, PREDICATE, OBJECT)
        ):
            raise Refused("its first row must name the columns: subject, predicate, object (or s, p, o)")
        yield row


def _triple(value: Any, frame: Document) -> Triple:
    if isinstance(value, list):
        if len(value) != 3:
            raise Refused(f"it is a list of {len(value)}: a triple is [subject, predicate, object]")
        value = dict(zip(("subject", "predicate", "object"), value, strict=True))
    if not isinstance(value, dict):
        raise Refused('it is neither {"subject": …, "predicate": …, "object": …} nor a list of three')
    claim = _claim(value, frame)
    is_voice = value.get("source") in SOURCES
    metadata = rest_of(value, USED | {"source"} if is_voice else USED, frame.metadata)
    document = replace(
        frame, title=said(value, "title"), uri=said(value, "uri"), source=claim.source, metadata=metadata
    )
    return Triple(claim, document, said(value, "text"))


def _claim(row: Fields, frame: Document) -> Claim:
    object_ = next((row[name] for name in OBJECT if row.get(name) is not None), None)
    is_value = isinstance(object_, bool | int | float) or str(row.get("is_value")).strip().lower() in _YES
    plain = json.dumps(object_) if isinstance(object_, bool) else said(row, *OBJECT)
    voice, status = row.get("source"), said(row, "status") or "confirmed"
    return Claim(
        subject=name_in(row, *SUBJECT),
        predicate=name_in(row, *PREDICATE),
        object=plain if is_value else name_in(row, *OBJECT),
        statement=said(row, "statement"),
        weight=number_in(row, "weight", 5.0),
        confidence=number_in(row, "confidence", 1.0),
        source=cast(Voice, voice) if voice in SOURCES else frame.source,
        status=cast(Status, status),
        valid_from=moment_in(row, "valid_from"),
        valid_to=moment_in(row, "valid_to"),
        subject_type=said(row, "subject_type"),
        object_type=said(row, "object_type"),
        is_value=is_value,
    )


def _texts(held: list[tuple[str, Triple]]) -> Iterator[Row]:
    """Triples by the document that they are from: its address, or else its text."""
    groups: dict[str, list[tuple[str, Triple]]] = defaultdict(list)
    for uri, triple in held:
        groups[triple.document.uri or f"\0{triple.document.title}\0{triple.text}"].append((uri, triple))
    for group in groups.values():
        yield Row(group[0][0], [triple for _, triple in group])


def _together(group: list[Triple], frame: Document) -> Contribution:
    first = group[0].document
    claims: dict[str, list[Claim]] = defaultdict(list)
    for triple in group:
        claims[triple.text].append(triple.claim)
    own = framed(frame, "text", first.title, group[0].text).id
    document = replace(first, id=document_id(uri=first.uri) if first.uri else own)
    return assembled(document, [Part(text, tuple(stated)) for text, stated in claims.items()])
