"""The words of Waylore as frozen dataclasses, and the identities that content gives them.

A document, passage, entity or fact has the same 128-bit identity wherever and however often it is
added: that is what makes adding twice the same as adding once, and what lets a walk go on in another
cell. Nothing here reads or writes anything. `docs/glossary.md` says what each word means.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from waylore.text import normalise

Vector: TypeAlias = npt.NDArray[np.float32]
Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
Source = Literal["user_edit", "file", "system", "conversation"]
Status = Literal["staged", "confirmed", "retracted"]
Gate = Literal["open", "unused", "empty", "unnamed", "unsure", "failed"]  # what became of the graph, and why

SOURCES: tuple[Source, ...] = ("user_edit", "file", "system", "conversation")
STATUSES: tuple[Status, ...] = ("staged", "confirmed", "retracted")
LIVE: tuple[Status, ...] = ("staged", "confirmed")
SAME, RESEMBLES = "same_as", "resembles"  # what joins two names of one thing, and names that look alike
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def file_of(uri: str) -> str:
    """The file that a document came from: the address of a row in a file ends in its place, after a #."""
    return uri.partition("#")[0]


def identity(kind: str, *parts: str) -> str:
    """Return 128 bits of `kind` and `parts` as 32 hexadecimal digits."""
    digest = blake2b(digest_size=16, person=kind.encode())
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def document_id(*, uri: str = "", text: str = "", labels: frozenset[str] = frozenset()) -> str:
    """A document is its address where it has one, else its text and who may read it."""
    return identity("document", uri, *(() if uri else (text, *sorted(labels))))


def passage_id(document: str, text: str) -> str:
    """A passage is its text within its document."""
    return identity("passage", document, text)


@lru_cache(maxsize=65_536)
def entity_id(name: str, sense: str = "") -> str:
    """An entity is its normalised name, and a sense where two things share a name."""
    return identity("entity", normalise(name), normalise(sense))


def fact_id(subject: str, predicate: str, object_: str, *, is_entity: bool) -> str:
    """A fact is its subject's identity, its predicate, and its object's identity or plain value."""
    return identity("fact", subject, normalise(predicate), "entity" if is_entity else "", object_)


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
    """Two entities whose names share a key (`waylore.naming`), and how near the vectors of their names are."""

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


@dataclass(frozen=True, slots=True)
class Filter:
    """What a caller may see and wants to see; an empty filter lets everything through.

    `labels=None` is a caller without restriction. Otherwise a document is visible if it has no labels
    or shares one with the caller. Every key of `metadata` must match one of its values.
    """

    labels: frozenset[str] | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, its vector where there is an embedder, what the caller may see, and as of when.

    `as_of=None` lets facts through whenever they were valid.
    """

    text: str
    vector: Vector | None = field(default=None, compare=False, repr=False)
    where: Filter = field(default_factory=Filter)
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """One candidate of a ranking."""

    id: str
    score: float


Ranking: TypeAlias = tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one search placed a hit, how much of the final score that made, and for which query, if another."""

    search: str
    rank: int
    score: float
    share: float
    query: str = ""

    def __str__(self) -> str:
        asked = f" for “{self.query}”" if self.query else ""
        return f"{self.search}: rank {self.rank}, score {self.score:.4f}{asked}"


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of a path, and whether it was followed from its subject to its object."""

    fact: Fact
    is_forward: bool = True

    def __str__(self) -> str:
        if self.is_forward:
            return f"—{self.fact.predicate}→ {self.fact.object}"
        return f"←{self.fact.predicate}— {self.fact.subject}"


@dataclass(frozen=True, slots=True)
class FactPath:
    """How the graph led to a passage: from an entity that the question points at, over facts."""

    start: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The path in a line."""
        return " ".join([self.start, *map(str, self.steps), "→ this passage"])

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts in the order in which they were followed."""
        return tuple(step.fact for step in self.steps)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A value, what it is, and the values it was made of."""

    value: float
    description: str
    details: tuple["Explanation", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        lines = [f"{indent}{self.value:.4f}  {self.description}"]
        for detail in self.details:
            lines.extend(detail._lines(indent + "  "))
        return lines


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its score, where each search placed it, and the path that the graph led to it by."""

    passage: Passage
    document: Document
    score: float
    placements: tuple[Placement, ...]
    path: FactPath | None = None

    @property
    def explanation(self) -> Explanation:
        """Why this passage, as a tree."""
        searches = tuple(Explanation(p.share, str(p)) for p in self.placements)
        steps = tuple(Explanation(f.confidence, f.embeddable) for f in self.path.facts) if self.path else ()
        path = (Explanation(len(steps), f"path: {self.path}", steps),) if self.path else ()
        return Explanation(self.score, "the sum of its shares", searches + path)


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question: hits, best first, what the graph knows of it, and what could not be searched.

    `skipped` says why the graph was left out, and is empty where it was walked; `gate` says it in a word.
    `chosen` says why a method was chosen. `entities` are what the question names, `facts` what joins them to
    the hits, in the order of the paths. `candidates` and `seconds` are by stage, and so is `began`, on the
    clock of `time.perf_counter`. `rows` is how much of each kind the store gave. These tell of the search
    itself, also where its answer `is_kept` from before.
    """

    query: str
    hits: tuple[Hit, ...]
    recipe: str = ""
    chosen: str = ""
    confidence: float | None = None
    skipped: str = ""
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    gate: Gate = "open"
    began: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    rows: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    is_kept: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Merge:
    """Two entities that are taken for one, or for alike, and the fact that says so.

    `fact.passage_id` is the passage that defines it, and is empty where only their names are alike.
    """

    entity: Entity
    other: Entity
    fact: Fact

    @property
    def is_same(self) -> bool:
        """Whether they are taken for one; otherwise they merely look alike."""
        return normalise(self.fact.predicate) == normalise(SAME)

    def __str__(self) -> str:
        return f"{self.entity.name} —{self.fact.predicate}→ {self.other.name}: {self.fact.embeddable}"


@dataclass(frozen=True, slots=True)
class Branch:
    """A fact followed outward from an entity, what it leads to (None: a plain value), and what lies beyond."""

    fact: Fact
    is_forward: bool
    entity: Entity | None = None
    branches: tuple["Branch", ...] = ()

    def __str__(self) -> str:
        return str(Step(self.fact, self.is_forward))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """An entity with what stands around it."""

    entity: Entity
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went when documents were forgotten: identities that nothing else supports any more."""

    documents: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much a collection holds, and the embedding model that it was made with."""

    documents: int
    passages: int
    entities: int
    facts: int
    mentions: int
    model: str | None
    dimension: int | None
    version: int
    details: Mapping[str, Any] = field(default_factory=dict)
