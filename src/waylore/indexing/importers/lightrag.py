"""Imports a custom graph of LightRAG: one JSON object with `chunks`, `entities` and `relationships`.

A chunk is a document, known by its content as LightRAG knows it. An entity with a description is a document
of its own, and is mentioned in the chunk that its `source_id` names; a relationship is stated there, with its
first keyword as the predicate. What names no chunk stands for itself. Vectors and caches are not read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from waylore.indexing.blocks import Refusal, Refused, Source
from waylore.indexing.importers.parts import Part, assembled, card, entity, framed, told
from waylore.indexing.importers.rows import (
    Fields,
    Row,
    each,
    json_rows,
    name_in,
    number_in,
    rest_of,
    said,
)
from waylore.text import normalise, occurrences
from waylore.types.knowledge import Claim, Contribution, Document, Entity

TABLES = ("chunks", "entities", "relationships")
SEPARATOR = "<SEP>"  # stands between several sources or descriptions in graphs that LightRAG made itself
UNKNOWN = frozenset(
    ("UNKNOWN", "custom_kg", "No description provided")
)  # what it writes where nothing is known
RELATED = "related_to"
_USED = ("content", "tokens", "chunk_order_index")


@dataclass(frozen=True, slots=True)
class Known:
    """The chunks by content, the contents by source, and what is known from each content; filled row by row."""

    chunks: dict[str, Fields] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    named: dict[str, list[Entity]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))


def graph(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """What is known without a chunk, then each chunk with what is known from it."""
    for row in json_rows(source):
        if isinstance(row, Refusal):
            yield row
        elif not isinstance(row.value, dict) or not any(isinstance(row.value.get(t), list) for t in TABLES):
            yield Refusal(row.uri, f"it must be an object with lists of {', '.join(TABLES)}")
        else:
            yield from _contributions(row, frame)


def _contributions(row: Row, frame: Document) -> Iterator[Contribution | Refusal]:
    known = Known()
    yield from each(_rows(row, "chunks"), partial(_chunk, known))
    yield from each(_rows(row, "entities"), partial(_entity, known, frame))
    yield from each(_rows(row, "relationships"), partial(_relationship, known, frame))
    contents = (Row(f"{row.uri}#chunks", content) for content in known.chunks)
    yield from each(contents, partial(_document, known, frame))


def _rows(row: Row, table: str) -> Iterator[Row | Refusal]:
    listed = row.value.get(table)
    for number, value in enumerate(listed if isinstance(listed, list) else (), start=1):
        uri = f"{row.uri}#{table}={number}"
        yield Row(uri, value) if isinstance(value, dict) else Refusal(uri, "it is not a JSON object")


def _chunk(known: Known, row: Fields) -> Iterable[Contribution]:
    content = said(row, "content")
    if not content:
        raise Refused("it has no content")
    known.chunks.setdefault(content, row)
    known.sources[said(row, "source_id")].append(content)
    return ()


def _entity(known: Known, frame: Document, row: Fields) -> Iterable[Contribution]:
    name, type_ = name_in(row, "entity_name"), _known(said(row, "entity_type"))
    description = _known(said(row, "description"))
    places = _places(known, row, name)
    for content in places:
        known.named[content].append(entity(name, type_))
    return [card(entity(name, type_, description), frame)] if description or not places else ()


def _relationship(known: Known, frame: Document, row: Fields) -> Iterable[Contribution]:
    subject, object_ = name_in(row, "src_id"), name_in(row, "tgt_id")
    claim = Claim(
        subject,
        _predicate(row),
        object_,
        statement=_known(said(row, "description")),
        weight=min(max(number_in(row, "weight", 5.0), 1.0), 10.0),
        source=frame.source,
    )
    places = _places(known, row, subject, object_)
    for content in places:
        known.claims[content].append(claim)
    return () if places else [told(claim, frame)]


def _document(known: Known, frame: Document, content: str) -> Iterable[Contribution]:
    row = known.chunks[content]
    path = _known(said(row, "file_path"))
    document = framed(frame, "chunk", content, title=path)
    part = Part(content, tuple(known.claims[content]), tuple(known.named[content]))
    return [assembled(replace(document, metadata=rest_of(row, _USED, frame.metadata)), [part])]


def _places(known: Known, row: Fields, *names: str) -> list[str]:
    """For each source that a row names the content that has most of these names; the first of several."""
    wanted = [normalise(name) for name in names]

    def has(content: str) -> int:
        text = normalise(content)
        return sum(occurrences(name, text) > 0 for name in wanted)

    sources = (known.sources.get(source.strip()) for source in said(row, "source_id").split(SEPARATOR))
    return list(dict.fromkeys(max(contents, key=has) for contents in sources if contents))


def _predicate(row: Fields) -> str:
    words = said(row, "keywords").replace(SEPARATOR, ",").split(",")
    return next((word.strip() for word in words if word.strip()), RELATED)


def _known(text: str) -> str:
    """A text, or nothing where LightRAG's word for "unknown" stands in its place."""
    return "" if text in UNKNOWN else " ".join(part.strip() for part in text.split(SEPARATOR))
