"""Write a collection as lines of JSON, and read it back.

The first line has the format and the model of the vectors; each further line is one indexed document. Equal collections
give equal bytes. Vectors are written as they are stored, so an import loses nothing. The module writes to no store;
files of other programs are read by `indexing.importers`.
"""

import base64
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from waylore import legacy
from waylore.errors import ConfigError
from waylore.plugins import import_later
from waylore.store.vectors import from_half, from_int8, to_int8
from waylore.types.knowledge import Document, Embeddable, Entity, Fact, IndexedDocument, Mention, Passage, Vector
from waylore.types.results import Statistics

FORMAT = 2
EARLIER_FORMAT = 1  # vectors of passages and entities in half precision, and pairs as facts
HEADER_FIELDS = ("waylore", legacy.EXPORT_FIELD)  # field of the first line with the format
SCOPE_FIELDS = ("user", "agent", "session", "at", "expires", "author")  # left out if empty
MAX_HEADER_CHARACTERS = 10_000
_convert_untyped = import_later("waylore.store.earlier.convert", "convert_untyped")


def to_lines(statistics: Statistics, documents: Iterable[IndexedDocument]) -> Generator[str]:
    """Yield the lines of an export."""
    yield _to_line({HEADER_FIELDS[0]: FORMAT, "model": statistics.model, "dimension": statistics.dimension})
    for document in documents:
        yield _to_line(_to_json(document))


def write_export(statistics: Statistics, documents: Iterable[IndexedDocument], to: IO[str]) -> int:
    """Write an export; return the number of documents."""
    written = -1  # the first line is the header
    for line in to_lines(statistics, documents):
        to.write(line)
        written += 1
    return written


def is_export(path: Path) -> bool:
    """Return whether the first line of a file is the header of an export."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline(MAX_HEADER_CHARACTERS))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and any(field in first for field in HEADER_FIELDS)


def read_export(lines: Iterable[str]) -> tuple[str | None, Iterator[IndexedDocument]]:
    """Return the model of the vectors, and an iterator over the documents of an export."""
    rest = iter(lines)
    try:
        header = json.loads(next(rest))
        version = next(header[field] for field in HEADER_FIELDS if field in header)
        model = header["model"]
    except (StopIteration, ValueError, KeyError, TypeError) as error:
        raise ConfigError("this is not a Waylore export: its first line has no format") from error
    if version not in (EARLIER_FORMAT, FORMAT):
        raise ConfigError(f"this export has format {version}, this Waylore reads up to {FORMAT}: upgrade Waylore")
    return model, _read_documents(rest, version)


def _read_documents(lines: Iterator[str], version: int) -> Iterator[IndexedDocument]:
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            yield _read_document(json.loads(line), version)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"line {number} of the export is damaged ({error}): export it again") from error


def _to_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"


def _to_json(indexed: IndexedDocument) -> dict[str, Any]:
    document = asdict(indexed.document)
    document["labels"] = sorted(indexed.document.labels)
    document["recorded_at"] = indexed.document.recorded_at.isoformat()
    for name in SCOPE_FIELDS:
        if not document[name]:
            del document[name]
        elif isinstance(document[name], datetime):
            document[name] = document[name].isoformat()
    return {
        "document": document,
        "passages": [_drop_defaults(p) for p in indexed.passages],
        "entities": [_drop_defaults(e) for e in indexed.entities],
        "mentions": [[m.entity_id, m.passage_id, m.count, m.is_own] for m in indexed.mentions],
        "facts": [_drop_defaults(f) for f in indexed.facts],
        "pairs": [_drop_defaults(p) for p in indexed.pairs],
    }


def _drop_defaults(part: Embeddable) -> dict[str, Any]:
    """Return the fields of a part whose values are not the default."""
    plain: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if value is not None and field.name == "vector":
            plain[field.name] = base64.b64encode(to_int8(value)).decode()
        elif isinstance(value, datetime):
            plain[field.name] = value.isoformat()
        elif value != field.default:
            plain[field.name] = value
    return plain


def _read_document(plain: dict[str, Any], version: int) -> IndexedDocument:
    document = plain["document"]
    document["labels"] = frozenset(document["labels"])
    for name in ("recorded_at", "at", "expires"):
        if name in document:
            document[name] = datetime.fromisoformat(document[name])
    decode = _from_half if version == EARLIER_FORMAT else _from_int8
    parts = (*plain["facts"], *plain.get("pairs", ()))
    stated = [_read_fact(_decode_vector(fact, _from_int8)) for fact in parts]
    stated = _convert_untyped(stated) if version == EARLIER_FORMAT else stated
    return IndexedDocument(
        document=Document(**document),
        passages=tuple(_read_passage(_decode_vector(p, decode)) for p in plain["passages"]),
        entities=tuple(_read_entity(_decode_vector(e, decode)) for e in plain["entities"]),
        mentions=tuple(Mention(*m) for m in plain["mentions"]),
        facts=tuple(fact for fact in stated if fact.is_typed),
        pairs=tuple(fact for fact in stated if not fact.is_typed),
    )


def _read_passage(plain: dict[str, Any]) -> Passage:
    headings = tuple(plain.pop("headings", ()))
    if "at" in plain:
        plain["at"] = datetime.fromisoformat(plain["at"])
    return Passage(**plain, headings=headings)


def _read_entity(plain: dict[str, Any]) -> Entity:
    aliases = tuple(plain.pop("aliases", ()))
    return Entity(**plain, aliases=aliases)


def _read_fact(plain: dict[str, Any]) -> Fact:
    for name in ("valid_from", "valid_to", "recorded_at", "last_accessed"):
        if name in plain:
            plain[name] = datetime.fromisoformat(plain[name])
    return Fact(**plain)


def _decode_vector(plain: dict[str, Any], decode: Callable[[str], Vector]) -> dict[str, Any]:
    return {**plain, "vector": decode(plain["vector"])} if "vector" in plain else plain


def _from_half(text: str) -> Vector:
    blob = base64.b64decode(text)
    vector: Vector = from_half([blob], len(blob) // 2)[0]
    return vector


def _from_int8(text: str) -> Vector:
    vector: Vector = from_int8([base64.b64decode(text)])[0]
    return vector
