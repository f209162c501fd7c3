"""What goes over the wire: the words of Waylore as JSON, one shape for the command line, MCP and HTTP.

`Found.of(found)` makes a model from what the engine returns, attribute by attribute. The schemas are what the
OpenAPI document and the MCP tools promise, so a change here is a change for every client. They hold no vectors
and decide nothing.
"""

from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from waylore.types.knowledge import Scalar, Source, Status


class Wire(BaseModel):
    """What every model here is: closed, unchangeable, and made from an object of the engine."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    @classmethod
    def of(cls, thing: object) -> Self:
        """The same, for the wire."""
        return cls.model_validate(thing)


class Document(Wire):
    """What was added: where it came from, what is known of it, and who may read it (all, if no labels)."""

    id: str
    title: str
    uri: str
    source: Source
    metadata: dict[str, Scalar | list[Scalar]]
    labels: Annotated[list[str], AfterValidator(sorted)]
    recorded_at: datetime


class Passage(Wire):
    """A piece of a document; `start` and `end` are offsets into the original."""

    id: str
    document_id: str
    title: str
    text: str
    position: int
    start: int
    end: int
    headings: list[str]


class Entity(Wire):
    """Something with a name; `passages` counts those that mention it."""

    id: str
    name: str
    type: str
    description: str
    aliases: list[str]
    passages: int


class Fact(Wire):
    """Subject, predicate, object; `object_id` is empty where the object is a plain value."""

    id: str
    subject: str
    subject_id: str
    predicate: str
    object: str
    object_id: str
    statement: str
    weight: float
    confidence: float
    source: Source
    status: Status
    valid_from: datetime | None
    valid_to: datetime | None
    passage_id: str


class Explanation(Wire):
    """A value, what it is, and the values it was made of."""

    value: float
    description: str
    details: list["Explanation"]


class Placement(Wire):
    """Where one search placed a hit, how much of its score that made, and for which query, if another."""

    search: str
    rank: int
    score: float
    share: float
    query: str


class Step(Wire):
    """One fact of a path, and whether it was followed from its subject to its object."""

    fact: Fact
    is_forward: bool


class Path(Wire):
    """How the graph led to a passage; `text` says it in a line."""

    start: str
    steps: list[Step]
    text: str


class Hit(Wire):
    """A passage with its score, where each search placed it, the path to it, and all of that as a tree."""

    score: float
    passage: Passage
    document: Document
    placements: list[Placement]
    path: Path | None
    explanation: Explanation


class Found(Wire):
    """The answer to a question.

    `skipped` says why the graph was left out, `chosen` why a method was taken, `missing` what could not be
    searched. `seconds` and `candidates` are by stage.
    """

    query: str
    hits: list[Hit]
    recipe: str
    chosen: str
    confidence: float | None
    skipped: str
    entities: list[Entity]
    facts: list[Fact]
    missing: list[str]
    candidates: dict[str, int]
    seconds: dict[str, float]


class Citation(Wire):
    """A mark in a context, such as [1], and the passage behind it."""

    mark: int
    passage_id: str
    document_id: str
    title: str
    uri: str


class Context(Wire):
    """The text for a model, how many tokens it takes, and the passage behind each mark."""

    text: str
    tokens: int
    sources: list[Citation]


class Branch(Wire):
    """A fact followed outward, what it leads to (nothing, if to a plain value), and what lies beyond."""

    fact: Fact
    is_forward: bool
    entity: Entity | None
    branches: list["Branch"]


class Surroundings(Wire):
    """An entity with what stands around it."""

    entity: Entity
    branches: list[Branch]


class Contribution(Wire):
    """A document with all that it says."""

    document: Document
    passages: list[Passage]
    entities: list[Entity]
    facts: list[Fact]


class Receipt(Wire):
    """What went when documents were forgotten: identities that nothing else supports any more."""

    documents: list[str]
    passages: list[str]
    entities: list[str]
    facts: list[str]


class Statistics(Wire):
    """How much a collection holds, and the embedding model that it was made with."""

    documents: int
    passages: int
    entities: int
    facts: int
    mentions: int
    model: str | None
    dimension: int | None
    version: int


class Refusal(Wire):
    """What was passed over, and why."""

    uri: str
    reason: str


class Added(Wire):
    """What adding files came to: `unchanged` files cost a hash, `documents` were new or changed."""

    files: int
    unchanged: int
    documents: int
    passages: int
    facts: int
    forgotten: int
    refused: int
    refusals: list[Refusal]
    seconds: float


class Imported(Wire):
    """What importing a file came to; `repeated` were said before in the same file, and count once."""

    format: str
    documents: int
    written: int
    repeated: int
    refused: int
    refusals: list[Refusal]
