"""The stored types: documents with their passages, entities, mentions and facts.

These are frozen dataclasses that check their own values. Nothing here reads or writes a store.
`docs/glossary.md` defines each word.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.relations import get_relation_name, is_denial
from waylore.text import normalise
from waylore.types.identity import identity, pair_id
from waylore.types.messages import Role
from waylore.types.quotes import quote_between

Vector: TypeAlias = npt.NDArray[np.float32]
Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
Source = Literal["user_edit", "file", "system", "conversation"]
Speaking: TypeAlias = Role | Literal[""]  # the role of a turn; other passages have none
Status = Literal["staged", "confirmed", "retracted"]

SOURCES: tuple[Source, ...] = ("user_edit", "file", "system", "conversation")
STATUSES: tuple[Status, ...] = ("staged", "confirmed", "retracted")
LIVE: tuple[Status, ...] = ("staged", "confirmed")
USER_NAME = "user"  # in facts: the speaker, or the owner of the memory if no user is named
SAME, RESEMBLES = "same_as", "resembles"  # predicates: two names of one thing, and two similar names
ENRICHED = "enriched_passage"  # key of metadata: the passage to which a model added the document
PAIR_WEIGHT, PAIR_CONFIDENCE = 4.0, 0.6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Document:
    """An added text with its source, metadata and permission labels. Without labels every caller may read it.

    A document of a `user` is visible only to calls for that user. `at` is the time of its event, None if unknown;
    `recorded_at` is when it was added. From `expires` on, reads leave it out; None if it never expires. `author` is the
    identity of the key or program that wrote it.
    """

    id: str
    title: str = ""
    uri: str = ""
    source: Source = "file"
    metadata: Metadata = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    recorded_at: datetime = field(default=EPOCH, repr=False)
    user: str = ""
    agent: str = ""
    session: str = ""
    at: datetime | None = None
    expires: datetime | None = None
    author: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ArgumentError(f"source must be one of {', '.join(SOURCES)}, got {self.source!r}")
        for key, value in self.metadata.items():
            values = value if isinstance(value, list | tuple) else [value]
            if not all(isinstance(v, str | int | float | bool) for v in values):
                raise ArgumentError(f"metadata {key!r} must be a string, a number, a boolean or a list of those")


def has_ended(document: Document, now: datetime, age: timedelta | None = None) -> bool:
    """Return whether a document has expired, or its event (without one: its writing) is older than an age."""
    is_expired = document.expires is not None and document.expires <= now
    return is_expired or (age is not None and (document.at or document.recorded_at) < now - age)


def get_enriched(document: Document) -> str:
    """Return the id of the passage to which a model added this document; empty for other documents."""
    return str(document.metadata.get(ENRICHED, ""))


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document that can be returned as a hit; `start` and `end` are offsets into the original.

    A silent passage, without text and title, has no words and no vector, is not counted and is never a hit. A turn of a
    conversation has a speaker and a role. `at` is when it was said, or the time of the event of its document.
    """

    id: str
    document_id: str
    text: str
    title: str = ""
    position: int = 0
    start: int = 0
    end: int = 0
    headings: tuple[str, ...] = ()
    vector: Vector | None = field(default=None, compare=False, repr=False)
    speaker: str = ""
    role: Speaking = ""
    at: datetime | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it has neither text nor title: no search finds it, and it only states facts."""
        return not self.text and not self.title

    @property
    def embeddable(self) -> str:
        """The text whose vector finds this passage, after the name of its speaker."""
        said = f"{self.speaker}: {self.text}" if self.speaker else self.text
        return f"{self.title}\n{said}" if self.title else said


@dataclass(frozen=True, slots=True)
class Entity:
    """Something with a name, a type and a description; `passages` is the number of passages that mention it."""

    id: str
    name: str
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    sense: str = ""
    passages: int = 0
    vector: Vector | None = field(default=None, compare=False, repr=False)

    @property
    def embeddable(self) -> str:
        """The text whose vector finds this entity: the same from every document that names it."""
        return normalise(self.name)


@dataclass(frozen=True, slots=True)
class SimilarEntities:
    """Two entities whose names share a key (`waylore.names`), and the cosine of the vectors of their names."""

    entity: Entity
    other: Entity
    key: str
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """An occurrence of an entity in a passage; `is_own` if the title of the passage names the entity."""

    entity_id: str
    passage_id: str
    count: int = 1
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, predicate and object, as one passage states them.

    `object` is the name of an entity, or a plain value if `object_id` is empty. A *pair* has no predicate: the
    statement names both entities without saying how they are related. A predicate that begins with "not" denies the
    fact. `is_own` if the subject said it. `at` is when the passage was said, as a store reads it.
    """

    id: str
    subject_id: str
    subject: str
    predicate: str
    object: str
    object_id: str = ""
    passage_id: str = ""
    statement: str = ""
    weight: float = 5.0
    confidence: float = 1.0
    source: Source = "file"
    status: Status = "confirmed"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime = field(default=EPOCH, repr=False)
    access_count: int = field(default=0, repr=False)
    last_accessed: datetime | None = field(default=None, repr=False)
    vector: Vector | None = field(default=None, compare=False, repr=False)
    at: datetime | None = field(default=None, compare=False, repr=False)
    is_own: bool = field(default=False, repr=False)

    def __str__(self) -> str:
        return f"{self.subject} {self.draw_arrow()} {self.object}"

    @property
    def is_typed(self) -> bool:
        """Whether the fact has a predicate."""
        return bool(self.predicate)

    @property
    def began(self) -> datetime:
        """When the fact began: its `valid_from`, else when it was said, else when it was recorded."""
        return self.valid_from or self.at or self.recorded_at

    @property
    def is_dated(self) -> bool:
        """Whether the time at which the fact began or was said is known."""
        return self.valid_from is not None or self.at is not None

    @property
    def is_denial(self) -> bool:
        """Whether the predicate denies a relation."""
        return is_denial(self.predicate)

    @property
    def series(self) -> tuple[str, str]:
        """The subject and the name of the relation. Facts of one series, and their denials, compete."""
        return self.subject_id, get_relation_name(self.predicate)

    @property
    def quote(self) -> tuple[str, bool]:
        """The words between the two names in the statement of a pair, and whether the subject is first."""
        return ("", True) if self.is_typed else quote_between(self.statement, self.subject, self.object)

    def draw_arrow(self, *, is_forward: bool = True) -> str:
        """Return the relation as an arrow from subject to object, or from object to subject.

        A pair is shown by the words of its statement, in their order: `Login ←“is used by”— Sessions`.
        """
        words, is_in_order = self.quote
        named = self.predicate if self.is_typed else "names"
        relation = f"“{words}”" if words else named
        return f"—{relation}→" if is_forward == is_in_order else f"←{relation}—"

    @property
    def ends(self) -> tuple[str, ...]:
        """The ids of the entities that the fact connects: one if its object is a plain value."""
        return (self.subject_id, self.object_id) if self.object_id else (self.subject_id,)

    @property
    def embeddable(self) -> str:
        """The text whose vector finds this fact."""
        return self.statement or f"{self.subject} {self.predicate} {self.object}"


def make_pair(
    fact: "Fact | NewFact", ends: tuple[str, str], passage_id: str, recorded_at: datetime, vector: Vector | None = None
) -> Fact:
    """Make the pair of the two entities of a fact, given by their ids, with its names and statement."""
    return Fact(
        pair_id(*ends),
        ends[0],
        fact.subject,
        "",
        fact.object,
        ends[1],
        passage_id,
        fact.statement,
        PAIR_WEIGHT,
        PAIR_CONFIDENCE,
        recorded_at=recorded_at,
        vector=vector,
    )


Embeddable: TypeAlias = Passage | Entity | Fact


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact that a caller adds, by names.

    An object that is a number or a date is a plain value. Dates may be ISO text; without an offset they are UTC. If
    `is_pair`, the statement only names subject and object: such a fact has no predicate, is not listed and connects
    passages. A predicate that begins with "not" denies a fact: ("Ann", "not works_at", "Acme"). `is_own` if the subject
    said it.
    """

    subject: str
    predicate: str
    object: str
    statement: str = ""
    weight: float = 5.0
    confidence: float = 1.0
    source: Source = "file"
    status: Status = "confirmed"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    subject_type: str = ""
    object_type: str = ""
    is_value: bool = False
    is_pair: bool = False
    is_own: bool = False

    def __post_init__(self) -> None:
        self._convert()
        required = ("subject", "object") if self.is_pair else ("subject", "predicate", "object")
        for name in ("subject", "predicate", "object", "statement", "subject_type", "object_type"):
            _check_words(name, getattr(self, name), is_required=name in required)
        _check_range("weight", self.weight, 1.0, 10.0)
        _check_range("confidence", self.confidence, 0.0, 1.0)
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ArgumentError("valid_from must not be after valid_to")
        if self.source not in SOURCES:
            raise ArgumentError(f"source must be one of {', '.join(SOURCES)}, got {self.source!r}")
        if self.status not in STATUSES:
            raise ArgumentError(f"status must be one of {', '.join(STATUSES)}, got {self.status!r}")

    def _convert(self) -> None:
        """Turn dates into aware datetimes, and an object that is a number or a date into a plain value."""
        for name in ("valid_from", "valid_to"):
            value: object = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, to_datetime(value, name))  # type: ignore[arg-type]  # checked there
        given: object = self.object
        if isinstance(given, int | float | date) and not isinstance(given, bool):
            object.__setattr__(self, "object", given.isoformat() if isinstance(given, date) else str(given))
            object.__setattr__(self, "is_value", True)


def _check_words(name: str, value: object, *, is_required: bool) -> None:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, got {type(value).__name__}")
    if is_required and not value.strip():
        raise ArgumentError(f"{name} must not be empty")


def _check_range(name: str, value: object, lowest: float, highest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise ArgumentError(f"{name} must be a number from {lowest:g} to {highest:g}, got {value!r}")


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document with its passages, entities, mentions and facts: the unit that is written, exported and forgotten.

    It contains every entity and passage that its mentions and facts refer to, so it can be removed as a whole. `pairs`
    are facts without a predicate.
    """

    document: Document
    passages: tuple[Passage, ...] = ()
    entities: tuple[Entity, ...] = ()
    mentions: tuple[Mention, ...] = ()
    facts: tuple[Fact, ...] = ()
    pairs: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        passages = {p.id for p in self.passages}
        entities = {e.id for e in self.entities}
        stated = (*self.facts, *self.pairs)
        referred = {m.entity_id for m in self.mentions} | {end for f in stated for end in f.ends}
        stated_in = {m.passage_id for m in self.mentions} | {f.passage_id for f in stated}
        if not referred <= entities or not stated_in <= passages:
            raise ArgumentError(
                "an indexed document must hold every entity and passage that it refers to: "
                f"missing {sorted(referred - entities) + sorted(stated_in - passages)}"
            )
        if any(p.document_id != self.document.id for p in self.passages):
            raise ArgumentError("the passages of an indexed document must belong to that document")

    @property
    def parts(self) -> Iterator[Embeddable]:
        """Every part that has a vector."""
        yield from (passage for passage in self.passages if not passage.is_silent)
        yield from self.entities
        yield from self.facts
        yield from self.pairs

    @property
    def digest(self) -> str:
        """A hash of the content. It leaves out author, time of recording, vectors and the order of the parts."""
        document, labels = self.document, sorted(self.document.labels)
        metadata = json.dumps(dict(document.metadata), sort_keys=True, default=list)
        return identity(
            "digest",
            repr(
                (
                    document.id,
                    document.title,
                    document.uri,
                    document.source,
                    metadata,
                    labels,
                    *_describe_scope(document),
                )
            ),
            repr(sorted(map(_describe_passage, self.passages))),
            repr(sorted((e.id, e.name, e.type, e.description, e.aliases, e.sense) for e in self.entities)),
            repr(sorted((m.entity_id, m.passage_id, int(m.count), bool(m.is_own)) for m in self.mentions)),
            repr(sorted(map(_describe_fact, (*self.facts, *self.pairs)))),
        )


def _describe_scope(document: Document) -> tuple[object, ...]:
    """Return user, agent, session, time and expiry; nothing if there are none, as in earlier digests."""
    scope = (document.user, document.agent, document.session, document.at and str(document.at))
    expires = ("expires", str(document.expires)) if document.expires else ()
    return (*(scope if any(scope) else ()), *expires)


def _describe_passage(passage: Passage) -> tuple[object, ...]:
    place = (passage.position, passage.start, passage.end)
    turn = (passage.speaker, passage.role, passage.at and str(passage.at))
    known = turn if any(turn) else ()
    return (passage.id, passage.document_id, passage.title, passage.text, *place, passage.headings, *known)


def _describe_fact(fact: Fact) -> tuple[object, ...]:
    ends = (fact.subject_id, fact.subject, fact.predicate, fact.object, fact.object_id)
    weights = (float(fact.weight), float(fact.confidence), fact.source, fact.status)
    period = (str(fact.valid_from), str(fact.valid_to))
    return (fact.id, fact.passage_id, *ends, fact.statement, *weights, *period, *(["own"] if fact.is_own else []))
