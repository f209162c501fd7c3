"""The words of Waylore as frozen dataclasses, and the identities that content gives them.

A document, passage, entity or fact has the same 128-bit identity wherever and however often it is
added: that is what makes adding twice the same as adding once, and what lets a walk go on in another
cell. Nothing here reads or writes anything. `docs/glossary.md` says what each word means.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from waylore.text import normalise
from waylore.types.identity import identity

Vector: TypeAlias = npt.NDArray[np.float32]
Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
Source = Literal["user_edit", "file", "system", "conversation"]
Status = Literal["staged", "confirmed", "retracted"]

SOURCES: tuple[Source, ...] = ("user_edit", "file", "system", "conversation")
STATUSES: tuple[Status, ...] = ("staged", "confirmed", "retracted")
LIVE: tuple[Status, ...] = ("staged", "confirmed")
SAME, RESEMBLES = "same_as", "resembles"  # what joins two names of one thing, and names that look alike
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Document:
    """What was added: where it came from, what is known of it, and who may read it (all, if no labels)."""

    id: str
    title: str = ""
    uri: str = ""
    source: Source = "file"
    metadata: Metadata = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    recorded_at: datetime = field(default=EPOCH, repr=False)

    def __post_init__(self) -> None:
        for key, value in self.metadata.items():
            values = value if isinstance(value, list | tuple) else [value]
            if not all(isinstance(v, str | int | float | bool) for v in values):
                raise ValueError(f"metadata {key!r} must be a string, a number, a boolean or a list of those")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that can be returned; `start` and `end` are offsets into the original."""

    id: str
    document_id: str
    text: str
    title: str = ""
    position: int = 0
    start: int = 0
    end: int = 0
    headings: tuple[str, ...] = ()
    vector: Vector | None = field(default=None, compare=False, repr=False)

    @property
    def embeddable(self) -> str:
        """The text whose vector finds this passage."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Entity:
    """Something with a name, a type and a description; `passages` counts those that mention it."""

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
class Alike:
    """Two entities whose names share a key (`waylore.names`), and how near the vectors of their names are."""

    entity: Entity
    other: Entity
    key: str
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity occurs in a passage; `is_own` where the passage is about it (its title names it)."""

    entity_id: str
    passage_id: str
    count: int = 1
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, predicate, object, as one passage states it.

    `object` is the name of an entity, or a plain value where `object_id` is empty.
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

    def __str__(self) -> str:
        return f"{self.subject} —{self.predicate}→ {self.object}"

    @property
    def ends(self) -> tuple[str, ...]:
        """The entities that it joins: one, where its object is a plain value."""
        return (self.subject_id, self.object_id) if self.object_id else (self.subject_id,)

    @property
    def embeddable(self) -> str:
        """The text whose vector says what this fact is about."""
        return self.statement or f"{self.subject} {self.predicate} {self.object}"


Embeddable: TypeAlias = Passage | Entity | Fact


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact as a caller puts it, by names; it becomes a Fact when it is added."""

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

    def __post_init__(self) -> None:
        if not (self.subject.strip() and self.predicate.strip() and self.object.strip()):
            raise ValueError("a claim needs a subject, a predicate and an object")
        if not (1.0 <= self.weight <= 10.0 and 0.0 <= self.confidence <= 1.0):
            raise ValueError("a claim's weight is 1 to 10 and its confidence 0 to 1")
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ValueError("a claim cannot cease to hold before it begins to")
        if self.source not in SOURCES or self.status not in STATUSES:
            raise ValueError(f"a claim's source is one of {SOURCES}, its status one of {STATUSES}")


@dataclass(frozen=True, slots=True)
class Contribution:
    """A document with all that it says: the unit that is written, exported and forgotten.

    Whatever a mention or a fact points at is in the contribution itself, so it can be taken away again.
    """

    document: Document
    passages: tuple[Passage, ...] = ()
    entities: tuple[Entity, ...] = ()
    mentions: tuple[Mention, ...] = ()
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        passages = {p.id for p in self.passages}
        entities = {e.id for e in self.entities}
        pointed_at = {m.entity_id for m in self.mentions} | {end for f in self.facts for end in f.ends}
        told_in = {m.passage_id for m in self.mentions} | {f.passage_id for f in self.facts}
        if not pointed_at <= entities or not told_in <= passages:
            raise ValueError(
                "a contribution must hold every entity and passage it points at: "
                f"missing {sorted(pointed_at - entities) + sorted(told_in - passages)}"
            )
        if any(p.document_id != self.document.id for p in self.passages):
            raise ValueError("a contribution's passages must be of its own document")

    @property
    def parts(self) -> Iterator[Embeddable]:
        """All that has a vector."""
        yield from self.passages
        yield from self.entities
        yield from self.facts

    @property
    def digest(self) -> str:
        """Identifies what is said: not when it was recorded, nor its vectors, nor the order of its parts."""
        document, labels = self.document, sorted(self.document.labels)
        metadata = json.dumps(dict(document.metadata), sort_keys=True, default=list)
        return identity(
            "digest",
            repr((document.id, document.title, document.uri, document.source, metadata, labels)),
            repr(sorted(map(_said_in_passage, self.passages))),
            repr(sorted((e.id, e.name, e.type, e.description, e.aliases, e.sense) for e in self.entities)),
            repr(sorted((m.entity_id, m.passage_id, int(m.count), bool(m.is_own)) for m in self.mentions)),
            repr(sorted(map(_said_as_fact, self.facts))),
        )


def _said_in_passage(passage: Passage) -> tuple[object, ...]:
    place = (passage.position, passage.start, passage.end)
    return (passage.id, passage.document_id, passage.title, passage.text, *place, passage.headings)


def _said_as_fact(fact: Fact) -> tuple[object, ...]:
    ends = (fact.subject_id, fact.subject, fact.predicate, fact.object, fact.object_id)
    weights = (float(fact.weight), float(fact.confidence), fact.source, fact.status)
    return (fact.id, fact.passage_id, *ends, fact.statement, *weights, str(fact.valid_from), str(fact.valid_to))
