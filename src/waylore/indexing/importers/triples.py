"""Import triples: lines of JSON (`{"subject": …}` or `["s", "p", "o"]`), a JSON list of them, CSV or TSV.

A triple without a text becomes a document at once. Triples with a text are held until the file has been read, because
triples with the same text or address form one document. Strings name entities; numbers, booleans and objects marked
`is_value` are plain values. The module extracts no entities from texts.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from waylore.indexing.blocks import ReadError, Skipped, Source, describe_limit
from waylore.indexing.importers.parts import ImportedPart, assemble_parts, make_document, make_fact_document
from waylore.indexing.importers.rows import (
    Fields,
    ImportRow,
    convert_rows,
    get_metadata,
    get_name,
    get_number,
    get_text,
    get_time,
    read_json_rows,
    read_table_rows,
)
from waylore.types.identity import document_id
from waylore.types.knowledge import SOURCES, Document, IndexedDocument, NewFact, Status
from waylore.types.knowledge import Source as FactSource

TABLES = (".csv", ".tsv")
SUBJECT, PREDICATE, OBJECT = ("subject", "s", "head"), ("predicate", "p", "relation"), ("object", "o", "tail")
ENDS = (*SUBJECT, *PREDICATE, *OBJECT)
FACT_FIELDS = "statement weight confidence status valid_from valid_to subject_type object_type is_value".split()
USED = frozenset((*ENDS, *FACT_FIELDS, "text", "title", "uri"))
_YES = ("true", "yes", "1")


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact with its document, and the text that states it (may be empty)."""

    fact: NewFact
    document: Document
    text: str = ""


def import_triples(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield each triple without a text, then each text with all its triples."""
    held: list[tuple[str, Triple]] = []

    def convert(row: ImportRow) -> Iterator[IndexedDocument]:
        triple = _build_triple(row.value, template)
        if not triple.text:
            yield make_fact_document(triple.fact, triple.document)
        elif len(held) >= source.limits.blocks:
            raise ReadError(describe_limit("blocks", source.limits.blocks, "triples with a text"))
        else:
            held.append((row.uri, triple))

    rows = (row if isinstance(row, Skipped) else ImportRow(row.uri, row) for row in _read_rows(source))
    yield from convert_rows(rows, convert)
    yield from convert_rows(_group_by_document(held), lambda group: [_build_document(group, template)])


def _read_rows(source: Source) -> Iterator[ImportRow | Skipped]:
    if source.path.suffix.lower() not in TABLES:
        yield from read_json_rows(source)
        return
    for row in read_table_rows(source):
        if isinstance(row, ImportRow) and not all(
            set(names) & set(row.value) for names in (SUBJECT, PREDICATE, OBJECT)
        ):
            raise ReadError("its first row must name the columns: subject, predicate, object (or s, p, o)")
        yield row


def _build_triple(value: Any, template: Document) -> Triple:
    if isinstance(value, list):
        if len(value) != 3:
            raise ReadError(f"it is a list of {len(value)}: a triple is [subject, predicate, object]")
        value = dict(zip(("subject", "predicate", "object"), value, strict=True))
    if not isinstance(value, dict):
        raise ReadError('it is neither {"subject": …, "predicate": …, "object": …} nor a list of three')
    fact = _build_fact(value, template)
    is_fact_source = value.get("source") in SOURCES
    metadata = get_metadata(value, USED | {"source"} if is_fact_source else USED, template.metadata)
    document = replace(
        template,
        title=get_text(value, "title"),
        uri=get_text(value, "uri"),
        source=fact.source,
        metadata=metadata,
    )
    return Triple(fact, document, get_text(value, "text"))


def _build_fact(row: Fields, template: Document) -> NewFact:
    object_ = next((row[name] for name in OBJECT if row.get(name) is not None), None)
    is_value = isinstance(object_, bool | int | float) or str(row.get("is_value")).strip().lower() in _YES
    plain = json.dumps(object_) if isinstance(object_, bool) else get_text(row, *OBJECT)
    source, status = row.get("source"), get_text(row, "status") or "confirmed"
    return NewFact(
        subject=get_name(row, *SUBJECT),
        predicate=get_name(row, *PREDICATE),
        object=plain if is_value else get_name(row, *OBJECT),
        statement=get_text(row, "statement"),
        weight=get_number(row, "weight", 5.0),
        confidence=get_number(row, "confidence", 1.0),
        source=cast(FactSource, source) if source in SOURCES else template.source,
        status=cast(Status, status),
        valid_from=get_time(row, "valid_from"),
        valid_to=get_time(row, "valid_to"),
        subject_type=get_text(row, "subject_type"),
        object_type=get_text(row, "object_type"),
        is_value=is_value,
    )


def _group_by_document(held: list[tuple[str, Triple]]) -> Iterator[ImportRow]:
    """Yield the triples of each document; a document is identified by its address, or else by its text."""
    groups: dict[str, list[tuple[str, Triple]]] = defaultdict(list)
    for uri, triple in held:
        groups[triple.document.uri or f"\0{triple.document.title}\0{triple.text}"].append((uri, triple))
    for group in groups.values():
        yield ImportRow(group[0][0], [triple for _, triple in group])


def _build_document(group: list[Triple], template: Document) -> IndexedDocument:
    first = group[0].document
    facts: dict[str, list[NewFact]] = defaultdict(list)
    for triple in group:
        facts[triple.text].append(triple.fact)
    own = make_document(template, "text", first.title, group[0].text).id
    document = replace(first, id=document_id(uri=first.uri) if first.uri else own)
    return assemble_parts(document, [ImportedPart(text, tuple(stated)) for text, stated in facts.items()])
