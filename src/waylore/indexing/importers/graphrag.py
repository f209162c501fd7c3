"""Import the output of Microsoft's GraphRAG: a folder of parquet tables, with their old or new names.

A document consists of its text units. A relationship becomes a fact of the text units in which it was found.
An entity is mentioned in its text units, and its description becomes a document, like each community report.
The tables are held in memory. Vectors, claims (covariates) and layouts are not read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped, Source, describe_limit, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.importers.parts import (
    ImportedPart,
    assemble_parts,
    make_document,
    make_entity,
    make_entity_document,
    make_fact_document,
)
from waylore.indexing.importers.rows import (
    Fields,
    ImportRow,
    convert_rows,
    get_list,
    get_name,
    get_number,
    get_text,
)
from waylore.types.knowledge import Document, Entity, IndexedDocument, NewFact

RELATED = "related_to"  # GraphRAG describes relationships without naming them
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "documents": ("id", "title", "text", "raw_content", "text_unit_ids"),
    "text_units": ("id", "text", "document_ids", "document_id"),
    "entities": ("title", "name", "type", "description", "text_unit_ids"),
    "relationships": ("source", "target", "description", "weight", "text_unit_ids"),
    "community_reports": ("title", "full_content", "summary", "level", "community"),
}
NAMES = ("create_final_{}.parquet", "{}.parquet")  # names before version 1 and since then; the newer one is preferred
PLACES = (".", "output", "artifacts", "output/*/artifacts", "*/artifacts")


@dataclass(frozen=True, slots=True)
class GraphragIndex:
    """The text units by their GraphRAG ids, and the entities and facts of each; filled row by row."""

    texts: dict[str, str] = field(default_factory=dict)
    documents: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    entities: dict[str, list[Entity]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, list[NewFact]] = field(default_factory=lambda: defaultdict(list))


def find_tables(folder: Path) -> dict[str, Path]:
    """Return the tables of a GraphRAG output by name; if there are several runs, the tables of the newest one."""
    for place in PLACES:
        for candidate in sorted(folder.glob(place) if "*" in place else [folder / place], reverse=True):
            files = ((table, candidate / name.format(table)) for table in COLUMNS for name in NAMES)
            found = {table: file for table, file in files if file.is_file()}
            if found:
                return found
    return {}


def import_graphrag(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield entities and facts without a text unit, then documents with their text units, then reports."""
    tables = find_tables(source.path if source.path.is_dir() else source.path.parent)
    if not tables:
        raise ReadError(f"it has no GraphRAG table, such as {NAMES[-1].format('entities')}")
    if sum(file.stat().st_size for file in tables.values()) > source.limits.bytes:
        raise ReadError(describe_limit("bytes", source.limits.bytes))
    index = GraphragIndex()
    rows = partial(_read_rows, tables, source)
    yield from convert_rows(rows("text_units"), partial(_read_text_unit, index))
    yield from convert_rows(rows("entities"), partial(_read_entity, index, template))
    yield from convert_rows(rows("relationships"), partial(_read_relationship, index, template))
    yield from convert_rows(_list_documents(index, rows("documents")), partial(_build_document, index, template))
    yield from convert_rows(rows("community_reports"), partial(_build_report, template))


def _read_rows(tables: Mapping[str, Path], source: Source, table: str) -> Iterator[ImportRow | Skipped]:
    if table not in tables:
        return
    uri = f"{source.uri}/{tables[table].name}"
    parquet, broken = require_library("pyarrow.parquet", "parquet"), require_library("pyarrow").ArrowException
    number = 0
    try:
        with parquet.ParquetFile(tables[table]) as file:
            columns = [name for name in COLUMNS[table] if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for value in batch.to_pylist():
                    number += 1
                    yield ImportRow(f"{uri}#row={number}", source.clean(value))
    except (broken, OSError, ValueError, KeyError) as error:
        yield Skipped(uri, f"from row {number + 1} on it cannot be read: {error}"[:300])


def _read_text_unit(index: GraphragIndex, row: Fields) -> Iterable[IndexedDocument]:
    unit, text = get_name(row, "id"), get_text(row, "text")
    if not text:
        raise ReadError("it has no text")
    index.texts[unit] = text
    for document in _get_ids(row, "document_ids", "document_id") or [unit]:
        index.documents[document].append(unit)
    return ()


def _read_entity(index: GraphragIndex, template: Document, row: Fields) -> Iterable[IndexedDocument]:
    name, type_ = get_name(row, "title", "name"), get_text(row, "type").lower()
    description, units = get_text(row, "description"), _get_units(index, row)
    for unit in units:
        index.entities[unit].append(make_entity(name, type_))
    return [make_entity_document(make_entity(name, type_, description), template)] if description or not units else ()


def _read_relationship(index: GraphragIndex, template: Document, row: Fields) -> Iterable[IndexedDocument]:
    units = _get_units(index, row)
    strength = get_number(row, "weight", 5.0) / max(len(units), 1)  # GraphRAG adds up the weights of all text units
    fact = NewFact(
        get_name(row, "source"),
        RELATED,
        get_name(row, "target"),
        statement=get_text(row, "description"),
        weight=min(max(strength, 1.0), 10.0),
        source=template.source,
    )
    for unit in units:
        index.facts[unit].append(fact)
    return () if units else [make_fact_document(fact, template)]


def _list_documents(index: GraphragIndex, rows: Iterable[ImportRow | Skipped]) -> Iterator[ImportRow | Skipped]:
    """Yield the rows of documents, then a row for each document that only occurs in text units."""
    left = dict(index.documents)
    for row in rows:
        if isinstance(row, ImportRow):
            left.pop(get_text(row.value, "id"), None)
        yield row
    yield from (ImportRow(id_, {"id": id_}) for id_ in left)


def _build_document(index: GraphragIndex, template: Document, row: Fields) -> Iterable[IndexedDocument]:
    id_, whole = get_name(row, "id"), str(row.get("text") or row.get("raw_content") or "")
    units = dict.fromkeys((*_get_units(index, row), *index.documents.get(id_, ())))
    parts = [_build_part(index, unit, whole) for unit in units] or [ImportedPart(make_storable(whole))]
    if not any(part.text.strip() for part in parts):
        raise ReadError("it has neither text units nor a text")
    return [assemble_parts(make_document(template, "graphrag", id_, title=get_text(row, "title")), parts)]


def _build_part(index: GraphragIndex, unit: str, whole: str) -> ImportedPart:
    text = index.texts[unit]
    start = make_storable(whole).find(text)
    return ImportedPart(text, tuple(index.facts[unit]), tuple(index.entities[unit]), None if start < 0 else start)


def _build_report(template: Document, row: Fields) -> Iterable[IndexedDocument]:
    title, text = get_text(row, "title"), get_text(row, "full_content", "summary")
    if not text:
        raise ReadError("it has no content")
    about: dict[str, Any] = {name: row[name] for name in ("level", "community") if get_text(row, name)}
    document = make_document(template, "report", title, text, title=title)
    return [assemble_parts(replace(document, metadata={**about, **template.metadata}), [ImportedPart(text)])]


def _get_units(index: GraphragIndex, row: Fields) -> list[str]:
    return [unit for unit in _get_ids(row, "text_unit_ids") if unit in index.texts]


def _get_ids(row: Fields, *names: str) -> list[str]:
    """Return ids from a list, or from a text with commas, as in early versions."""
    every = (part.strip() for value in get_list(row, *names) for part in str(value).split(","))
    return list(dict.fromkeys(part for part in every if part))
