"""Imports what Microsoft's GraphRAG wrote: a folder of parquet tables, by their old names or their new ones.

A document has its text units for parts; a relationship is a fact that the text units it was found in support,
an entity is mentioned in its text units and has a document of its own for its description, and so has a
community report. The tables are held in memory. Vectors, claims (covariates) and layouts are not read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Refusal, Refused, Source, over, required
from waylore.indexing.encoding import storable
from waylore.indexing.importers.parts import Part, assembled, card, entity, framed, told
from waylore.indexing.importers.rows import Fields, Row, each, listed, name_in, number_in, said
from waylore.types.knowledge import Claim, Contribution, Document, Entity

RELATED = "related_to"  # GraphRAG describes a relationship and does not name it
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "documents": ("id", "title", "text", "raw_content", "text_unit_ids"),
    "text_units": ("id", "text", "document_ids", "document_id"),
    "entities": ("title", "name", "type", "description", "text_unit_ids"),
    "relationships": ("source", "target", "description", "weight", "text_unit_ids"),
    "community_reports": ("title", "full_content", "summary", "level", "community"),
}
NAMES = ("create_final_{}.parquet", "{}.parquet")  # before version 1, and since; the newer counts
PLACES = (".", "output", "artifacts", "output/*/artifacts", "*/artifacts")


@dataclass(frozen=True, slots=True)
class Known:
    """The text units, and what was found in each, by the identity that GraphRAG gave it; filled row by row."""

    texts: dict[str, str] = field(default_factory=dict)
    documents: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    named: dict[str, list[Entity]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))


def tables(folder: Path) -> dict[str, Path]:
    """The tables of a GraphRAG output by name; the newest run's, if the folder holds several."""
    for place in PLACES:
        for candidate in sorted(folder.glob(place) if "*" in place else [folder / place], reverse=True):
            files = ((table, candidate / name.format(table)) for table in COLUMNS for name in NAMES)
            found = {table: file for table, file in files if file.is_file()}
            if found:
                return found
    return {}


def output(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """What is known without a text, then each document with what its text units say, then the reports."""
    found = tables(source.path if source.path.is_dir() else source.path.parent)
    if not found:
        raise Refused(f"there is no table of GraphRAG's in it, such as {NAMES[-1].format('entities')}")
    if sum(file.stat().st_size for file in found.values()) > source.limits.bytes:
        raise Refused(over("bytes", source.limits.bytes))
    known = Known()
    rows = partial(_rows, found, source)
    yield from each(rows("text_units"), partial(_text_unit, known))
    yield from each(rows("entities"), partial(_entity, known, frame))
    yield from each(rows("relationships"), partial(_relationship, known, frame))
    yield from each(_documents(known, rows("documents")), partial(_document, known, frame))
    yield from each(rows("community_reports"), partial(_report, frame))


def _rows(found: Mapping[str, Path], source: Source, table: str) -> Iterator[Row | Refusal]:
    if table not in found:
        return
    uri = f"{source.uri}/{found[table].name}"
    parquet, broken = required("pyarrow.parquet", "parquet"), required("pyarrow").ArrowException
    number = 0
    try:
        with parquet.ParquetFile(found[table]) as file:
            columns = [name for name in COLUMNS[table] if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for value in batch.to_pylist():
                    number += 1
                    yield Row(f"{uri}#row={number}", value)
    except (broken, OSError, ValueError, KeyError) as error:
        yield Refusal(uri, f"from row {number + 1} on it cannot be read: {error}"[:300])


def _text_unit(known: Known, row: Fields) -> Iterable[Contribution]:
    unit, text = name_in(row, "id"), said(row, "text")
    if not text:
        raise Refused("it has no text")
    known.texts[unit] = text
    for document in _ids(row, "document_ids", "document_id") or [unit]:
        known.documents[document].append(unit)
    return ()


def _entity(known: Known, frame: Document, row: Fields) -> Iterable[Contribution]:
    name, type_ = name_in(row, "title", "name"), said(row, "type").lower()
    description, units = said(row, "description"), _units(known, row)
    for unit in units:
        known.named[unit].append(entity(name, type_))
    return [card(entity(name, type_, description), frame)] if description or not units else ()


def _relationship(known: Known, frame: Document, row: Fields) -> Iterable[Contribution]:
    units = _units(known, row)
    strength = number_in(row, "weight", 5.0) / max(len(units), 1)  # it is summed over where it was found
    claim = Claim(
        name_in(row, "source"),
        RELATED,
        name_in(row, "target"),
        statement=said(row, "description"),
        weight=min(max(strength, 1.0), 10.0),
        source=frame.source,
    )
    for unit in units:
        known.claims[unit].append(claim)
    return () if units else [told(claim, frame)]


def _documents(known: Known, rows: Iterable[Row | Refusal]) -> Iterator[Row | Refusal]:
    """The documents, and then one for each that only text units know of."""
    left = dict(known.documents)
    for row in rows:
        if isinstance(row, Row):
            left.pop(said(row.value, "id"), None)
        yield row
    yield from (Row(id_, {"id": id_}) for id_ in left)


def _document(known: Known, frame: Document, row: Fields) -> Iterable[Contribution]:
    id_, whole = name_in(row, "id"), str(row.get("text") or row.get("raw_content") or "")
    units = dict.fromkeys((*_units(known, row), *known.documents.get(id_, ())))
    parts = [_part(known, unit, whole) for unit in units] or [Part(storable(whole))]
    if not any(part.text.strip() for part in parts):
        raise Refused("it has neither text units nor a text")
    return [assembled(framed(frame, "graphrag", id_, title=said(row, "title")), parts)]


def _part(known: Known, unit: str, whole: str) -> Part:
    text = known.texts[unit]
    start = storable(whole).find(text)
    return Part(text, tuple(known.claims[unit]), tuple(known.named[unit]), None if start < 0 else start)


def _report(frame: Document, row: Fields) -> Iterable[Contribution]:
    title, text = said(row, "title"), said(row, "full_content", "summary")
    if not text:
        raise Refused("it has no content")
    about: dict[str, Any] = {name: row[name] for name in ("level", "community") if said(row, name)}
    document = framed(frame, "report", title, text, title=title)
    return [assembled(replace(document, metadata={**about, **frame.metadata}), [Part(text)])]


def _units(known: Known, row: Fields) -> list[str]:
    return [unit for unit in _ids(row, "text_unit_ids") if unit in known.texts]


def _ids(row: Fields, *names: str) -> list[str]:
    """Identities that are a list, or a text with commas as early versions wrote them."""
    every = (part.strip() for value in listed(row, *names) for part in str(value).split(","))
    return list(dict.fromkeys(part for part in every if part))
