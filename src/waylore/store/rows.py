"""Turns the columns of rows into domain types and back, for every engine. Knows columns, not queries.

Identities are 16 bytes in a row, and 32 hexadecimal digits in a domain type.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

from waylore.store.vectors import unhalved, unquantised
from waylore.text import normalise
from waylore.types.knowledge import (
    EPOCH,
    SOURCES,
    Document,
    Entity,
    Fact,
    Mention,
    Metadata,
    Passage,
    Scalar,
    Vector,
)
from waylore.types.search import Filter

K = TypeVar("K")
T = TypeVar("T")
Row = Sequence[Any]
VOICES = 8  # documents of each permission that describe an entity
NAMESAKES = 1_000  # entities of one name that are looked at
LAST = "\U0010ffff"  # sorts after whatever may follow a prefix


@dataclass(slots=True)
class Change:
    """What a write adds to the collection's counters; negative for what it takes away."""

    documents: int = 0
    passages: int = 0
    entities: int = 0
    facts: int = 0
    mentions: int = 0
    length: int = 0


def instant(moment: datetime) -> int:
    """Microseconds since 1970."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=4_096)
def moment(instant: int) -> datetime:
    """The inverse of `instant`."""
    return EPOCH + timedelta(microseconds=instant)


def tie(id_: bytes) -> int:
    """The first half of an identity as a signed integer that sorts as the identity does."""
    return int.from_bytes(id_[:8], "big") - (1 << 63)


def predicate_key(predicate: str) -> int:
    """A predicate as an integer, for indexes."""
    return tie(blake2b(normalise(predicate).encode(), digest_size=8).digest())


def tag(key: str, value: Scalar) -> str:
    """One key and value of a document's metadata, as one string."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def values(value: Scalar | Sequence[Scalar]) -> tuple[Scalar, ...]:
    """A metadata value as the scalars it stands for."""
    return (value,) if isinstance(value, str | int | float | bool) else tuple(value)


def tags(metadata: Metadata) -> list[list[str]]:
    """For each key the tags that stand for its values."""
    return [[tag(k, v) for v in values(vs)] for k, vs in sorted(metadata.items())]


def labels(where: Filter) -> str | None:
    """The caller's labels as JSON, or None for a caller without restriction."""
    return None if where.labels is None else json.dumps(sorted(where.labels), ensure_ascii=False)


def names_of(name: str, aliases: Sequence[str]) -> list[str]:
    """The names that find an entity."""
    return list(dict.fromkeys(map(normalise, (name, *aliases))))


def readable(title: str, text: str) -> str:
    """What of a passage is searched by words."""
    return f"{title} {text}"


def voice(fact: Fact) -> float:
    """How much a support is trusted: its source first, then its weight times its confidence."""
    return 100.0 * (len(SOURCES) - SOURCES.index(fact.source)) + fact.weight * fact.confidence


def document(row: Row) -> Document:
    """From `documents`."""
    _, id_, title, uri, source, metadata, labels_, recorded_at = row
    return Document(
        id=id_.hex(),
        title=title,
        uri=uri,
        source=source,
        metadata=json.loads(metadata),
        labels=_labels(labels_),
        recorded_at=moment(recorded_at),
    )


def passages(rows: Sequence[Row]) -> list[Passage]:
    """From `passages`; the vectors of an answer are decoded together."""
    return [_passage(row, vector) for row, vector in zip(rows, _vectors(rows, 9), strict=True)]


def _passage(row: Row, vector: Vector | None) -> Passage:
    _, id_, document_id, text, title, position, start, end, headings, _ = row
    return Passage(id_.hex(), document_id.hex(), text, title, position, start, end, _strings(headings), vector)


def entity(rows: Sequence[Row]) -> Entity:
    """From `profiles`: one entity, put together from what each visible document says of it."""
    _, id_, sense, passages = rows[0][:4]
    names = Counter(row[4] for row in rows)
    name = min(names, key=lambda n: (-names[n], n))
    return Entity(
        id=id_.hex(),
        name=name,
        type=next((row[5] for row in rows if row[5]), ""),
        description=" ".join(_distinct(row[6] for row in rows)),
        aliases=_distinct([a for row in rows for a in (row[4], *_strings(row[7])) if a != name]),
        sense=sense,
        passages=passages,
    )


def profiles(rows: Sequence[Row]) -> list[Entity]:
    """From `export_profiles`: entities as one document describes them."""
    return [_profile(row, vector) for row, vector in zip(rows, _vectors(rows, 8), strict=True)]


def _profile(row: Row, vector: Vector | None) -> Entity:
    _, id_, sense, _, name, type_, description, aliases, _ = row
    return Entity(id_.hex(), name, type_, description, _strings(aliases), sense, vector=vector)


def _vectors(rows: Sequence[Row], column: int) -> list[Vector | None]:
    """The half-precision vectors of a column, where there are any."""
    blobs = [row[column] for row in rows if row[column] is not None]
    decoded = iter(unhalved(blobs, len(blobs[0]) // 2) if blobs else ())
    return [None if row[column] is None else next(decoded) for row in rows]


def facts(rows: Sequence[Row]) -> list[Fact]:
    """From the queries for facts, whose columns are the fields of Fact behind one that says what it is for."""
    vectors = iter(unquantised([row[18] for row in rows if row[18] is not None]))
    return [_fact(row, None if row[18] is None else next(vectors)) for row in rows]


def _fact(row: Row, vector: Vector | None) -> Fact:
    (_, id_, subject_id, subject, predicate, object_, object_id, passage, statement, weight, confidence) = row[
        :11
    ]
    (source, status, since, to, recorded_at, count, last) = row[11:18]
    return Fact(
        id_.hex(),
        subject_id.hex(),
        subject,
        predicate,
        object_,
        "" if object_id is None else object_id.hex(),
        passage.hex(),
        statement,
        weight,
        confidence,
        source,
        status,
        None if since is None else moment(since),
        None if to is None else moment(to),
        moment(recorded_at),
        count,
        None if last is None else moment(last),
        vector,
    )


def strongest(rows: Sequence[Row], cap: int) -> dict[str, tuple[Fact, ...]]:
    """Facts by what they were asked for by, each once, strongest first."""
    found: dict[bytes, dict[str, Fact]] = defaultdict(dict)
    for row, fact in zip(rows, facts(rows), strict=True):
        found[row[0]][fact.id] = fact
    return {id_.hex(): by_strength(found[id_].values())[:cap] for id_ in sorted(found)}


def by_strength(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts by what they weigh, ties broken by identity."""
    return tuple(sorted(facts, key=lambda f: (-f.weight * f.confidence, f.id)))


def mention(row: Row) -> Mention:
    """From the queries for mentions."""
    entity, passage, count, is_own = row
    return Mention(entity.hex(), passage.hex(), count, bool(is_own))


def mentions_by_entity(rows: Iterable[Row], cap: int) -> dict[str, tuple[Mention, ...]]:
    """Where each entity is mentioned, the foremost first."""
    found = grouped((m.entity_id, m) for m in map(mention, rows))
    return {id_: foremost(found[id_])[:cap] for id_ in sorted(found)}


def mentions_by_passage(rows: Iterable[Row], cap: int) -> dict[str, tuple[Mention, ...]]:
    """What each passage mentions, the foremost first."""
    found = grouped((m.passage_id, m) for m in map(mention, rows))
    return {id_: foremost(found[id_])[:cap] for id_ in sorted(found)}


def foremost(mentions: Iterable[Mention]) -> tuple[Mention, ...]:
    """An entity's own passages, then by how often."""
    return tuple(sorted(mentions, key=lambda m: (-m.is_own, -m.count, m.passage_id, m.entity_id)))


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Values by their keys, in the order in which they come."""
    found: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


@lru_cache(maxsize=4_096)
def _labels(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))


@lru_cache(maxsize=4_096)
def _strings(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for t in texts if t))
