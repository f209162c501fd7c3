"""A collection as lines of JSON: what `export` writes and `import` reads.

The first line says what made the vectors; each line after it is one contribution. The same knowledge gives
the same bytes. Vectors are written as the store keeps them, so nothing is lost on the way back.
"""

import base64
import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from waylore.errors import ConfigError
from waylore.store.vectors import halved, quantised, unhalved, unquantised
from waylore.types.knowledge import Contribution, Document, Embeddable, Entity, Fact, Mention, Passage
from waylore.types.results import Statistics

FORMAT = 1
LONGEST_HEADER = 10_000


def lines(statistics: Statistics, contributions: Iterable[Contribution]) -> Generator[str]:
    """A collection line by line."""
    yield _line({"waylore": FORMAT, "model": statistics.model, "dimension": statistics.dimension})
    for contribution in contributions:
        yield _line(_plain(contribution))


def dump(statistics: Statistics, contributions: Iterable[Contribution], to: IO[str]) -> int:
    """Write a collection; return how many documents it has."""
    written = -1  # the first line is no document
    for line in lines(statistics, contributions):
        to.write(line)
        written += 1
    return written


def is_export(path: Path) -> bool:
    """Whether a file begins as an export does."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline(LONGEST_HEADER))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "waylore" in first


def load(lines: Iterable[str]) -> tuple[str | None, Iterator[Contribution]]:
    """The model that made the vectors, and the contributions."""
    rest = iter(lines)
    try:
        header = json.loads(next(rest))
        version, model = header["waylore"], header["model"]
    except (StopIteration, ValueError, KeyError, TypeError) as error:
        raise ConfigError("this is not a Waylore export: its first line should say its format") from error
    if version != FORMAT:
        raise ConfigError(f"this export has format {version}, this Waylore reads {FORMAT}: upgrade Waylore")
    return model, _contributions(rest)


def _contributions(lines: Iterator[str]) -> Iterator[Contribution]:
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            yield _contribution(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"line {number} of the export is damaged ({error}): export it again") from error


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"


def _plain(contribution: Contribution) -> dict[str, Any]:
    document = asdict(contribution.document)
    document["labels"] = sorted(contribution.document.labels)
    document["recorded_at"] = contribution.document.recorded_at.isoformat()
    return {
        "document": document,
        "passages": [_without_defaults(p) for p in contribution.passages],
        "entities": [_without_defaults(e) for e in contribution.entities],
        "mentions": [[m.entity_id, m.passage_id, m.count, m.is_own] for m in contribution.mentions],
        "facts": [_without_defaults(f) for f in contribution.facts],
    }


def _without_defaults(part: Embeddable) -> dict[str, Any]:
    """A part's fields, but for those that the reader puts back."""
    plain: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if value is not None and field.name == "vector":
            value = (quantised if isinstance(part, Fact) else halved)(value)
            plain[field.name] = base64.b64encode(value).decode()
        elif isinstance(value, datetime):
            plain[field.name] = value.isoformat()
        elif value != field.default:
            plain[field.name] = value
    return plain


def _contribution(plain: dict[str, Any]) -> Contribution:
    document = plain["document"]
    document["labels"] = frozenset(document["labels"])
    document["recorded_at"] = datetime.fromisoformat(document["recorded_at"])
    return Contribution(
        document=Document(**document),
        passages=tuple(_passage(p) for p in plain["passages"]),
        entities=tuple(_entity(e) for e in plain["entities"]),
        mentions=tuple(Mention(*m) for m in plain["mentions"]),
        facts=tuple(_fact(f) for f in plain["facts"]),
    )


def _passage(plain: dict[str, Any]) -> Passage:
    headings = tuple(plain.pop("headings", ()))
    return Passage(**_with_vector(plain), headings=headings)


def _entity(plain: dict[str, Any]) -> Entity:
    aliases = tuple(plain.pop("aliases", ()))
    return Entity(**_with_vector(plain), aliases=aliases)


def _fact(plain: dict[str, Any]) -> Fact:
    for name in ("valid_from", "valid_to", "recorded_at", "last_accessed"):
        if name in plain:
            plain[name] = datetime.fromisoformat(plain[name])
    if "vector" in plain:
        plain["vector"] = unquantised([base64.b64decode(plain["vector"])])[0]
    return Fact(**plain)


def _with_vector(plain: dict[str, Any]) -> dict[str, Any]:
    if "vector" in plain:
        blob = base64.b64decode(plain["vector"])
        plain["vector"] = unhalved([blob], len(blob) // 2)[0]
    return plain
