"""Convert table rows to domain types and back, for both engines. This module knows columns, not queries.

An id is 16 bytes in a row and 32 hexadecimal digits in a domain type.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import product, repeat
from operator import itemgetter
from typing import Any, Self, TypeVar

import numpy as np

from waylore.plugins import import_later
from waylore.relations import get_relation_name
from waylore.store.bm25 import Corpus, find_places, pack_sequence
from waylore.store.vectors import from_int8, join_codes
from waylore.text import normalise
from waylore.types.columns import NO_TIME, TurnColumns
from waylore.types.identity import identity
from waylore.types.knowledge import (
    EPOCH,
    Document,
    Entity,
    Fact,
    IndexedDocument,
    Mention,
    Passage,
    Scalar,
    Vector,
)
from waylore.types.results import DayCounts
from waylore.types.search import Filter

tells_time = import_later("waylore.spans", "tells_time")  # a search starts without it
_IDENTITY = re.compile("[0-9a-f]{32}")
_BEGINNING = re.compile("[0-9a-f]{0,32}")
K = TypeVar("K")
T = TypeVar("T")
Row = Sequence[Any]
MAX_DESCRIPTIONS = 8  # descriptions of an entity that are read for each permission
MAX_NAMESAKES = 1_000  # entities with the same name that a search by name reads
NO_TERM = (-1, 0)  # the number of a term that no passage has, and its passages
NEVER = int(np.iinfo(np.int64).max)  # when documents without an expiry expire, in microseconds
HIGHEST_CHARACTER = "\U0010ffff"  # sorts after every character that can follow a prefix


@dataclass(slots=True)
class Change:
    """The amounts by which a write changes the counters of a collection; negative for removed items.

    Passages, those of them that are turns, their length in terms, and their facts and pairs are counted for each
    permission. What an index outside of the store has to be told is listed by id and permission.
    """

    documents: int = 0
    entities: int = 0
    facts: int = 0
    mentions: int = 0
    passages: Counter[int] = field(default_factory=Counter)
    length: Counter[int] = field(default_factory=Counter)
    assertions: Counter[int] = field(default_factory=Counter)
    turns: Counter[int] = field(default_factory=Counter)
    touched_passages: set[tuple[str, int]] = field(default_factory=set)
    touched_entities: set[tuple[str, int]] = field(default_factory=set)

    @property
    def totals(self) -> dict[str, int]:
        """The changes of the collection's own counters, by column."""
        own = {"documents": self.documents, "entities": self.entities, "facts": self.facts, "mentions": self.mentions}
        return {**own, "passages": self.passages.total(), "length": self.length.total()}

    @property
    def by_access(self) -> list[tuple[int, ...]]:
        """The changes of each permission: its number, passages, length, assertions and turns."""
        numbers = sorted({*self.passages, *self.length, *self.assertions})
        return [(n, self.passages[n], self.length[n], self.assertions[n], self.turns[n]) for n in numbers]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """An indexed document with its digest, the number of its permission and, on SQLite, its row."""

    indexed: IndexedDocument
    digest: str
    access: int
    row: int = 0

    @property
    def sort_key(self) -> int:
        """The key that orders descriptions of the document among others."""
        return make_sort_key(bytes.fromhex(self.indexed.document.id))

    @property
    def tags(self) -> list[str]:
        """The tags of the document that filters compare, each once."""
        return list(dict.fromkeys(tag for tags in list_tags(self.indexed.document) for tag in tags))


def to_microseconds(moment: datetime) -> int:
    """Convert a time to microseconds since 1970. A time without a zone is read as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def to_optional_microseconds(moment: datetime | None) -> int | None:
    """Convert a time to microseconds since 1970; None stays None."""
    return None if moment is None else to_microseconds(moment)


@lru_cache(maxsize=4_096)
def from_microseconds(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a time; the inverse of `to_microseconds`."""
    return EPOCH + timedelta(microseconds=microseconds)


def to_day_counts(row: Sequence[int]) -> DayCounts:
    """Return the counts of a day, which is given as days since 1970."""
    day, documents, passages = row
    return DayCounts(EPOCH.date() + timedelta(days=day), documents, passages)


def parse_ids(ids: Iterable[str]) -> tuple[bytes, ...]:
    """Return ids as bytes, each once. Strings that are no ids are skipped."""
    distinct = list(dict.fromkeys(ids))
    try:
        return tuple(map(bytes.fromhex, distinct))
    except ValueError:
        return tuple(bytes.fromhex(id_) for id_ in distinct if _IDENTITY.fullmatch(id_))


def span_ids(beginning: str) -> tuple[str, str] | None:
    """Return the first and the last id that begin with these digits; None if no id does."""
    return (beginning.ljust(32, "0"), beginning.ljust(32, "f")) if _BEGINNING.fullmatch(beginning) else None


def make_sort_key(id_: bytes) -> int:
    """Return the first half of an id as a signed integer that sorts like the id."""
    return int.from_bytes(id_[:8], "big") - (1 << 63)


def compute_predicate_key(predicate: str) -> int:
    """Hash a predicate to an integer, for indexes."""
    return make_sort_key(blake2b(normalise(predicate).encode(), digest_size=8).digest())


def compute_series_key(subject_id: str, predicate: str) -> int:
    """Hash the id of a subject and a predicate to an integer, for indexes."""
    return make_sort_key(bytes.fromhex(identity("series", subject_id, get_relation_name(predicate))))


def list_series(entities: Iterable[str], predicates: Iterable[str]) -> list[int]:
    """Return the keys of each entity with each predicate, each once."""
    pairs = product(dict.fromkeys(entities), dict.fromkeys(predicates))
    return list(dict.fromkeys(compute_series_key(*pair) for pair in pairs))


def get_latest(moment: datetime | None) -> int:
    """Convert a time to microseconds since 1970; None is later than every time."""
    return int(np.iinfo(np.int64).max) if moment is None else to_microseconds(moment)


def compute_session_key(document: Document, passage: Passage) -> int | None:
    """Hash the session of a passage with its user and agent to an integer, for indexes; None without a session.

    The turns of a day that have no session are one.
    """
    if not document.session and not passage.role:
        return None
    day = f"{passage.at:%Y-%m-%d}" if passage.at and not document.session else ""
    named = (document.user, document.agent, document.session, *([day] if day else []))
    return make_sort_key(bytes.fromhex(identity("session", *named)))


def get_time(document: Document, passage: Passage) -> int:
    """Return when a passage was said, else when its document was recorded, in microseconds."""
    return to_microseconds(passage.at or document.recorded_at)


def format_tag(key: str, value: Scalar) -> str:
    """Join one key and value of a document's metadata into a string."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def list_values(value: Scalar | Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Return a metadata value as a tuple of scalars."""
    return (value,) if isinstance(value, str | int | float | bool) else tuple(value)


def list_tags(of: Document | Filter) -> list[list[str]]:
    """Return a list of tags for each key of metadata, one tag for each value, and one for agent and session each.

    The tag of a session has no equals sign outside of its value, so it differs from every tag of metadata.
    """
    tags = [[format_tag(key, value) for value in list_values(values)] for key, values in sorted(of.metadata.items())]
    named = (("agent", of.agent), ("session", of.session))
    return tags + [[f"{name}:{json.dumps(value, ensure_ascii=False)}"] for name, value in named if value]


def make_filter_key(where: Filter) -> str:
    """Return a text that is the same for equal filters."""
    turns = bind_turns(where) if where.has_turns else ""
    return f"{format_labels(where)}{list_tags(where)}{turns}{where.user!r}"


def bind_turns(where: Filter) -> dict[str, Any]:
    """Return the parameters by which queries select passages by time and speaker."""
    moments = {"since": where.since, "until": where.until, "said_by": where.as_of}
    bound = {name: to_optional_microseconds(moment) for name, moment in moments.items()}
    return {**bound, "speaker": where.speaker or None, "has_turns": where.has_turns, "expired_by": None}


def to_expiry(first: int) -> datetime | None:
    """Convert the time of an expiry; None if it never comes."""
    return None if first == NEVER else from_microseconds(first)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleScope:
    """The visible part of a collection for one verb: the permissions of the caller, and the tags of the filter.

    `corpus`, `has_facts`, `has_turns` and `has_only_turns` depend on the permissions and not on the tags.
    """

    tags: list[list[str]]
    turns: dict[str, Any]  # the filter by time and speaker
    corpus: Corpus
    has_facts: bool
    has_turns: bool
    has_only_turns: bool
    has_unconfirmed: bool  # whether any assertion of the collection is staged or retracted
    is_limited: bool  # whether some documents may be hidden
    first_expiry: int  # when the first visible document expires or has expired, in microseconds

    @property
    def is_everything(self) -> bool:
        """True if the filter lets every passage through."""
        return not (self.needs_words or self.has_expired)

    @property
    def needs_words(self) -> bool:
        """True if the inverted index tells which passages the filter lets through, apart from expired ones."""
        return bool(self.is_limited or self.tags or self.turns["has_turns"])

    @property
    def has_expired(self) -> bool:
        """True if a visible document has expired."""
        return self.turns["expired_by"] is not None

    def hide_expired(self, where: Filter) -> Self:
        """Return the scope without documents that have expired by the time of a filter; itself if there are none."""
        expired_by = get_expiry(where, self.first_expiry)
        return self if expired_by is None else replace(self, turns={**self.turns, "expired_by": expired_by})


def get_expiry(where: Filter, first: int) -> int | None:
    """Return the time by which documents must not have expired, if some have; `first` is when the first one expires.

    Both are in microseconds. None means that no document is left out, so queries need not look for expired ones.
    """
    moment = to_optional_microseconds(where.as_of or where.now)
    return moment if moment is not None and moment >= first else None


def format_labels(where: Filter) -> str | None:
    """Return the caller's labels as JSON, or None for a caller without restriction."""
    return None if where.labels is None else json.dumps(sorted(where.labels), ensure_ascii=False)


def fold_case(text: str) -> str:
    """Return a text with small Latin letters, as both engines fold them."""
    return text.encode().lower().decode()


def list_names(name: str, aliases: Sequence[str]) -> list[str]:
    """Return the normalised names of an entity that searches look up, each once."""
    return list(dict.fromkeys(map(normalise, (name, *aliases))))


def join_searchable_text(title: str, text: str) -> str:
    """Return the text of a passage that the word search indexes."""
    return f"{title} {text}"


def dump_labels(labels: Iterable[str]) -> str:
    """Return labels as documents store them."""
    return json.dumps(sorted(labels), ensure_ascii=False)


def to_document(row: Row) -> Document:
    """Convert a row of the query `documents`."""
    _, id_, title, uri, source, metadata, labels_, recorded_at, user, agent, session, at, expires, author = row
    return Document(
        id=id_.hex(),
        title=title,
        uri=uri,
        source=source,
        metadata={} if metadata == "{}" else json.loads(metadata),
        labels=_parse_labels(labels_),
        recorded_at=from_microseconds(recorded_at),
        user=user,
        agent=agent,
        session=session,
        at=None if at is None else from_microseconds(at),
        expires=None if expires is None else from_microseconds(expires),
        author=author,
    )


def to_passages(rows: Sequence[Row]) -> list[Passage]:
    """Convert rows of the query `passages`. Their vectors are decoded together."""
    return [_to_passage(row, vector) for row, vector in zip(rows, _decode_vectors(rows, 9), strict=True)]


def _to_passage(row: Row, vector: Vector | None) -> Passage:
    _, id_, document_id, text, title, position, start, end, headings, _, speaker, role, at = row
    place = (position, start, end, _parse_strings(headings))
    said_at = None if at is None else from_microseconds(at)
    return Passage(id_.hex(), document_id.hex(), text, title, *place, vector, speaker, role, said_at)


def make_turn_row(stored: StoredDocument, passage: Passage, numbers: Sequence[int]) -> tuple[bytes | None, bool | None]:
    """Return what is stored of a turn beside its terms: their numbers in order, and whether it tells a time."""
    if not stored.indexed.document.session and not passage.role:
        return None, None
    return pack_sequence(numbers), tells_time(passage.text)


def to_turns(
    rows: Iterable[Row], terms: Iterable[str], counted: Mapping[str, tuple[int, int]], *, passages: int
) -> TurnColumns:
    """Convert rows of the query `turns`. `counted` has the number and the passages of each known term of a question."""
    ordered = sorted(rows, key=itemgetter(0, 1, 2, 3))
    columns = zip(*ordered, strict=True) if ordered else repeat((), 10)
    sessions, roles, positions, ids, speakers, at, texts, sequences, telling, vectors = columns
    distinct = tuple(dict.fromkeys(terms))
    numbers = [counted.get(term, NO_TERM) for term in distinct]
    dimension = max((len(vector) for vector in vectors if vector is not None), default=0)
    return TurnColumns(
        ids=tuple(map(bytes.hex, ids)),
        sessions=np.array(sessions, np.int64),
        positions=np.array(positions, np.int64),
        speakers=speakers,
        roles=roles,
        at=np.array([NO_TIME if moment is None else moment for moment in at], np.int64),
        texts=texts,
        tells_time=np.array(telling, np.bool_),
        sequence=find_places(sequences, [number for number, _ in numbers]),
        sizes=np.array([len(sequence) // 4 for sequence in sequences], np.int64),
        codes=join_codes([bytes(dimension) if vector is None else vector for vector in vectors], max(dimension, 1)),
        terms=distinct,
        counts=np.array([count for _, count in numbers], np.int64),
        passages=passages,
    )


def to_entity(rows: Sequence[Row]) -> Entity:
    """Convert rows of the query `profiles` to one entity, from each visible description of it."""
    _, id_, sense, passages = rows[0][:4]
    names = Counter(row[4] for row in rows)
    name = min(names, key=lambda n: (-names[n], n))
    return Entity(
        id=id_.hex(),
        name=name,
        type=next((row[5] for row in rows if row[5]), ""),
        description=" ".join(_drop_repeated(row[6] for row in rows)),
        aliases=_drop_repeated([a for row in rows for a in (row[4], *_parse_strings(row[7])) if a != name]),
        sense=sense,
        passages=passages,
    )


def to_descriptions(rows: Sequence[Row]) -> list[Entity]:
    """Convert rows of the query `export_profiles` to entities as one document describes them."""
    return [_to_description(row, vector) for row, vector in zip(rows, _decode_vectors(rows, 8), strict=True)]


def _to_description(row: Row, vector: Vector | None) -> Entity:
    _, id_, sense, _, name, type_, description, aliases, _ = row
    return Entity(id_.hex(), name, type_, description, _parse_strings(aliases), sense, vector=vector)


def _decode_vectors(rows: Sequence[Row], column: int) -> list[Vector | None]:
    """Decode a column of vectors in eight bits per dimension. A row without one gives None."""
    decoded = iter(from_int8([row[column] for row in rows if row[column] is not None]))
    return [None if row[column] is None else next(decoded) for row in rows]


def to_facts(rows: Sequence[Row]) -> list[Fact]:
    """Convert rows of the queries for facts: the requested item, then the fields of Fact."""
    return [_to_fact(row, vector) for row, vector in zip(rows, _decode_vectors(rows, 18), strict=True)]


def _to_fact(row: Row, vector: Vector | None) -> Fact:
    (_, id_, subject_id, subject, predicate, object_, object_id, passage, statement, weight, confidence) = row[:11]
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
        None if since is None else from_microseconds(since),
        None if to is None else from_microseconds(to),
        from_microseconds(recorded_at),
        count,
        None if last is None else from_microseconds(last),
        vector,
    )


def sort_by_strength(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Sort facts by weight times confidence. Ties are broken by id."""
    return tuple(sorted(facts, key=lambda f: (-f.weight * f.confidence, f.id)))


def to_mention(row: Row) -> Mention:
    """Convert a row of the queries for mentions."""
    entity, passage, count, is_own = row
    return Mention(entity.hex(), passage.hex(), count, bool(is_own))


def sort_mentions(mentions: Iterable[Mention]) -> tuple[Mention, ...]:
    """Sort mentions: first of passages about the entity, then by count."""
    return tuple(sorted(mentions, key=lambda m: (-m.is_own, -m.count, m.passage_id, m.entity_id)))


def group_pairs(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Group values by key, in the order of the pairs."""
    groups: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


@lru_cache(maxsize=4_096)
def _parse_labels(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))


@lru_cache(maxsize=4_096)
def _parse_strings(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _drop_repeated(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for t in texts if t))
