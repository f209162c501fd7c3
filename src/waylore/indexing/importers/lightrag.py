"""Import a custom graph of LightRAG: one JSON object with `chunks`, `entities` and `relationships`.

A chunk becomes a document with an id made of its content, as in LightRAG. An entity is mentioned in the chunk of its
`source_id`, and a description of it becomes a document. A relationship becomes a fact of that chunk, with its first
keyword as the predicate. Entities and relationships without a chunk become documents of their own. Vectors and caches
are not read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from waylore.indexing.blocks import ReadError, Skipped, Source
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
    get_metadata,
    get_name,
    get_number,
    get_text,
    read_json_rows,
)
from waylore.text import count_occurrences, normalise
from waylore.types.knowledge import Document, Entity, IndexedDocument, NewFact

TABLES = ("chunks", "entities", "relationships")
SEPARATOR = "<SEP>"  # LightRAG joins several sources or descriptions with this
# LightRAG writes these if a value is missing.
UNKNOWN = frozenset(("UNKNOWN", "custom_kg", "No description provided"))
RELATED = "related_to"
_USED = ("content", "tokens", "chunk_order_index")


@dataclass(frozen=True, slots=True)
class LightragIndex:
    """Chunks by content, contents by source, and the entities and facts of each content; filled row by row."""

    chunks: dict[str, Fields] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    entities: dict[str, list[Entity]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, list[NewFact]] = field(default_factory=lambda: defaultdict(list))


def import_lightrag(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield entities and facts without a chunk, then each chunk with its entities and facts."""
    for row in read_json_rows(source):
        if isinstance(row, Skipped):
            yield row
        elif not isinstance(row.value, dict) or not any(isinstance(row.value.get(t), list) for t in TABLES):
            yield Skipped(row.uri, f"it must be an object with lists of {', '.join(TABLES)}")
        else:
            yield from _import_graph(row, template)


def _import_graph(row: ImportRow, template: Document) -> Iterator[IndexedDocument | Skipped]:
    index = LightragIndex()
    yield from convert_rows(_list_rows(row, "chunks"), partial(_read_chunk, index))
    yield from convert_rows(_list_rows(row, "entities"), partial(_read_entity, index, template))
    yield from convert_rows(_list_rows(row, "relationships"), partial(_read_relationship, index, template))
    contents = (ImportRow(f"{row.uri}#chunks", content) for content in index.chunks)
    yield from convert_rows(contents, partial(_build_document, index, template))


def _list_rows(row: ImportRow, table: str) -> Iterator[ImportRow | Skipped]:
    listed = row.value.get(table)
    for number, value in enumerate(listed if isinstance(listed, list) else (), start=1):
        uri = f"{row.uri}#{table}={number}"
        yield ImportRow(uri, value) if isinstance(value, dict) else Skipped(uri, "it is not a JSON object")


def _read_chunk(index: LightragIndex, row: Fields) -> Iterable[IndexedDocument]:
    content = get_text(row, "content")
    if not content:
        raise ReadError("it has no content")
    index.chunks.setdefault(content, row)
    index.sources[get_text(row, "source_id")].append(content)
    return ()


def _read_entity(index: LightragIndex, template: Document, row: Fields) -> Iterable[IndexedDocument]:
    name, type_ = get_name(row, "entity_name"), _drop_unknown(get_text(row, "entity_type"))
    description = _drop_unknown(get_text(row, "description"))
    places = _find_contents(index, row, name)
    for content in places:
        index.entities[content].append(make_entity(name, type_))
    return [make_entity_document(make_entity(name, type_, description), template)] if description or not places else ()


def _read_relationship(index: LightragIndex, template: Document, row: Fields) -> Iterable[IndexedDocument]:
    subject, object_ = get_name(row, "src_id"), get_name(row, "tgt_id")
    fact = NewFact(
        subject,
        _get_predicate(row),
        object_,
        statement=_drop_unknown(get_text(row, "description")),
        weight=min(max(get_number(row, "weight", 5.0), 1.0), 10.0),
        source=template.source,
    )
    places = _find_contents(index, row, subject, object_)
    for content in places:
        index.facts[content].append(fact)
    return () if places else [make_fact_document(fact, template)]


def _build_document(index: LightragIndex, template: Document, content: str) -> Iterable[IndexedDocument]:
    row = index.chunks[content]
    path = _drop_unknown(get_text(row, "file_path"))
    document = make_document(template, "chunk", content, title=path)
    part = ImportedPart(content, tuple(index.facts[content]), tuple(index.entities[content]))
    return [assemble_parts(replace(document, metadata=get_metadata(row, _USED, template.metadata)), [part])]


def _find_contents(index: LightragIndex, row: Fields, *names: str) -> list[str]:
    """For each source of a row, return the content with most of the names, the first one if equal."""
    wanted = [normalise(name) for name in names]

    def count_names(content: str) -> int:
        text = normalise(content)
        return sum(count_occurrences(name, text) > 0 for name in wanted)

    sources = (index.sources.get(source.strip()) for source in get_text(row, "source_id").split(SEPARATOR))
    return list(dict.fromkeys(max(contents, key=count_names) for contents in sources if contents))


def _get_predicate(row: Fields) -> str:
    words = get_text(row, "keywords").replace(SEPARATOR, ",").split(",")
    return next((word.strip() for word in words if word.strip()), RELATED)


def _drop_unknown(text: str) -> str:
    """Return a text, or an empty string if it is LightRAG's placeholder for a missing value."""
    return "" if text in UNKNOWN else " ".join(part.strip() for part in text.split(SEPARATOR))
