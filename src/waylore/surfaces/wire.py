"""Describe the JSON of Waylore's types: one shape for the command line, MCP and HTTP.

The OpenAPI document and the MCP tools publish these schemas, so a change here is a change for every client. Answers
that are read often are written by `to_dict` and `types/plain.py`, without these models; tests check that the models
accept what is written. The models of receipts, reports, keys and jobs also write them: `Receipt.of(receipt)`.
"""

from datetime import date, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

from waylore.types.audit import Verb
from waylore.types.knowledge import Scalar, Source, Speaking, Status
from waylore.types.search import EndKind, StepKind
from waylore.types.views import ChangeKind


class Wire(BaseModel):
    """The base of all models: frozen, without unknown fields, built from an object of the engine."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    @classmethod
    def of(cls, thing: object) -> Self:
        """Return the model of an object."""
        return cls.model_validate(thing)


class Document(Wire):
    """An added text with its source, metadata and labels. Without labels every caller may read it."""

    id: str
    title: str
    uri: str
    source: Source
    metadata: dict[str, Scalar | list[Scalar]]
    labels: Annotated[list[str], AfterValidator(sorted)]
    recorded_at: datetime
    user: str
    agent: str
    session: str
    at: datetime | None
    expires: datetime | None
    author: str


class Passage(Wire):
    """A part of a document; `start` and `end` are offsets into the original."""

    id: str
    document_id: str
    title: str
    text: str
    position: int
    start: int
    end: int
    headings: list[str]
    speaker: str
    role: Speaking
    at: datetime | None


class Entity(Wire):
    """Something with a name; `passages` is the number of passages that mention it."""

    id: str
    name: str
    type: str
    description: str
    aliases: list[str]
    passages: int


class Fact(Wire):
    """Subject, predicate and object; `object_id` is empty if the object is a plain value."""

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
    """A value with its description and details; a detail that is not part of the sum has no value."""

    value: float | None
    description: str
    details: list["Explanation"]


class Placement(Wire):
    """The rank of a hit in one search, and its share of the score; `query` if another query was searched.

    `rank` is null if the hit was not in the list of the search and its score was read separately. `best` is the best
    score of the search, if the share was measured from it.
    """

    search: str
    rank: int | None
    score: float
    share: float
    query: str
    best: float | None


class Step(Wire):
    """The id of a fact in `facts`, and whether the fact was followed from its subject to its object.

    A fact that only names two things together is `quoted` by the `words` of its statement between the names.
    """

    fact_id: str
    is_forward: bool
    kind: StepKind
    words: str


class Path(Wire):
    """How the graph led to a passage; `text` is the path as one line."""

    start: str
    steps: list[Step]
    text: str


class Days(Wire):
    """Days that a passage or a question speaks of, both included, and the words that name them."""

    first: date
    last: date
    words: str


class Superseder(Wire):
    """The passage that supersedes a hit, how, and since when."""

    passage_id: str
    text: str
    at: datetime | None
    kind: EndKind
    since: datetime


class Hit(Wire):
    """A passage with its score, its rank in each search, and the path that led to it.

    `also_in` are other documents with the same text. `when` are the days that the passage speaks of. `superseded_by` is
    the passage that holds instead. `is_planned` if its fact begins later, `is_newer` if it was put before an older
    passage that says much the same. `explanation` is a tree if the request asks for it, else null.
    """

    score: float
    passage: Passage
    document: Document
    placements: list[Placement]
    path: Path | None
    also_in: list[Document]
    when: list[Days]
    superseded_by: Superseder | None
    is_planned: bool
    is_newer: bool
    explanation: Explanation | None


class SetAnswer(Wire):
    """The answer of the graph to a question that asks for a set or a connection, and how much of it is shown."""

    summary: str
    lines: list[str]
    is_complete: bool


class SearchResult(Wire):
    """The hits of a question, best first.

    `route_reason` is the reason for the choice of the recipe, `skip_reason` the reason why the graph was not used.
    `is_relevant` is whether the best hit likely answers the question, null if that cannot be judged.
    `spans` are the days that the question names, if turns near them were preferred. `set_answer` is null unless the
    question asks for a set or a connection that the graph states.
    `facts` has every fact of the paths, and facts of the entities that the question names; each fact once. `missing`
    lists the searches that could not run. `seconds` and `candidates` are by stage.
    """

    query: str
    hits: list[Hit]
    recipe: str
    route_reason: str
    confidence: float | None
    skip_reason: str
    is_relevant: bool | None
    relevance_reason: str
    spans: list[Days]
    set_answer: SetAnswer | None
    entities: list[Entity]
    facts: list[Fact]
    missing: list[str]
    candidates: dict[str, int]
    seconds: dict[str, float]


class Citation(Wire):
    """A mark in a context, such as [1], and its passage."""

    mark: int
    passage_id: str
    document_id: str
    title: str
    uri: str


class Context(Wire):
    """The text for a model, its length in tokens, the passage of each mark, and the number of removed characters."""

    text: str
    tokens: int
    sources: list[Citation]
    removed: int


class IndexedDocument(Wire):
    """A document with its passages, entities and facts."""

    document: Document
    passages: list[Passage]
    entities: list[Entity]
    facts: list[Fact]


class Assertion(Wire):
    """A fact as one passage states it, with the passage and its session."""

    fact: Fact
    passage: Passage
    session: str


class AssertionEnd(Wire):
    """How and when a fact ended, and the assertion that ended it; null if it ended at its stated time."""

    kind: EndKind
    at: datetime
    by: Assertion | None


class HeldTime(Wire):
    """A period in which a fact held: from `start` on and before `end`; null if unknown or still open."""

    start: datetime | None
    end: datetime | None


class TimelineEntry(Assertion):
    """An assertion with the periods in which it held, and the end of the last one.

    It has no times if it was corrected. `is_planned` if it begins later than now.
    """

    periods: list[HeldTime]
    end: AssertionEnd | None
    is_planned: bool


class Timeline(Wire):
    """The assertions of an entity in order of time. `has_more` if older ones were left out."""

    entity: str
    entries: list[TimelineEntry]
    has_more: bool


class MemoryChange(Wire):
    """A fact that began, changed, was corrected or ended, with the assertions before and after the change.

    A correction has the time at which it was said.
    """

    kind: ChangeKind
    at: datetime
    before: Assertion | None
    after: Assertion | None


class ChangeList(Wire):
    """Changes in order of time. `has_more` if older ones were left out."""

    changes: list[MemoryChange]
    has_more: bool


class ProfileLine(Wire):
    """The current assertion of one relation, or several, newest first, if the relation has several objects."""

    text: str
    assertions: list[Assertion]


class Profile(Wire):
    """The current facts about a user, one line for each relation. `has_more` if lines did not fit into the budget."""

    user: str
    lines: list[ProfileLine]
    has_more: bool


class Provenance(Wire):
    """Where a passage comes from, and the turns or passages before and after it, in their order."""

    speaker: str
    session: str
    at: datetime | None
    passage: Passage
    document: Document
    before: list[Passage]
    after: list[Passage]


class PredicateCount(Wire):
    """A predicate in the words of its authors, and the number of facts that have it.

    `is_inverse` if it states the requested relation from object to subject.
    """

    predicate: str
    facts: int
    is_inverse: bool


class RelatedFact(Wire):
    """A fact of an entity, the entity at its other end (null for a plain value), and the facts of that entity.

    `end` is the fact that superseded it. A `quoted` fact has no predicate: its quote names both ends.
    """

    subject: str
    predicate: str
    object: str
    kind: Literal["typed", "quoted", "same"]
    is_forward: bool
    entity: Entity | None
    quote: str
    since: datetime | None
    until: datetime | None
    stated: datetime | None
    source: Source
    confidence: float
    status: Status
    fact: str
    passage: str
    document: Document
    end: AssertionEnd | None
    branches: list["RelatedFact"]


class Counted(Wire):
    """How much an answer shows: `total` is a minimum if it is not exact."""

    complete: bool
    shown: int
    total: int
    is_exact: bool
    predicates: list[PredicateCount]
    unmatched: list[PredicateCount]


class Related(Counted):
    """The facts of a thing as a tree by hops; `candidates` are the things that share its name, if there are several.

    If no entity has the name, `similar` has entities whose names contain its words.
    """

    name: str
    entities: list[Entity]
    candidates: list[Entity]
    similar: list[Entity]
    facts: list[RelatedFact]


class ConnectingPath(Wire):
    """A path from one entity to another, as text and step by step."""

    start: Entity
    hops: int
    text: str
    steps: list[RelatedFact]


class Connection(Wire):
    """The shortest paths between two things, and the extent of the search; `exhaustive` if no bound stopped it.

    Names without an entity are in `unknown`. `candidates` has, by name, the things that share a name.
    """

    names: list[str]
    max_hops: int
    paths: list[ConnectingPath]
    candidates: dict[str, list[Entity]]
    unknown: list[str]
    entities: int
    facts: int
    exhaustive: bool
    text: str


class EntityList(Counted):
    """A page of entities; `after` is the cursor of the next page, empty on the last one."""

    entities: list[Entity]
    after: str
    candidates: list[Entity]


class Receipt(Wire):
    """The ids of removed documents, and of everything that no other document supports.

    `missing` lists the requested ids and addresses without a document. `id` is empty if the receipt is not stored.
    `unconfirmed` counts items that a search index has not confirmed as removed yet.
    """

    documents: list[str]
    passages: list[str]
    entities: list[str]
    facts: list[str]
    missing: list[str]
    id: str
    unconfirmed: int


class AuditEntry(Wire):
    """One change: who did what when, to how many documents or to which key, and the labels before and after.

    `documents` has at most 100 ids. `hash` covers the entry and the previous hash.
    """

    number: int
    at: datetime
    author: str
    request: str
    verb: Verb
    count: int
    documents: list[str]
    labels_before: list[str]
    labels_after: list[str]
    hash: str
    key: str = Field(description="id of the API key, in the log of keys")


class RememberReport(Wire):
    """The turns of a call by the ids of their documents: counts of new, known and split ones.

    `facts` are the facts of the new turns. `left_out` counts the omitted secrets of each kind.
    """

    documents: list[str]
    new: int
    known: int
    cut: int
    facts: list[Fact]
    left_out: dict[str, int]


class Statistics(Wire):
    """The size of a collection, and the embedding model that it was made with."""

    documents: int
    passages: int
    entities: int
    facts: int
    mentions: int
    model: str | None
    dimension: int | None
    version: int


class DayCounts(Wire):
    """A day, and how many documents and passages were written on it."""

    day: date
    documents: int
    passages: int


class Merge(Wire):
    """Two entities that are treated as one (`is_same`) or as similar, with the fact that is the evidence.

    The fact has no passage if only the names are similar.
    """

    entity: Entity
    other: Entity
    fact: Fact
    is_same: bool


class Skipped(Wire):
    """A file or part of a file that was skipped, with the reason."""

    uri: str
    reason: str


# The second name is in results of jobs that ran before the fields were renamed.
SkippedCount = Annotated[int, Field(validation_alias=AliasChoices("skipped_count", "refused"))]
SkippedList = Annotated[list[Skipped], Field(validation_alias=AliasChoices("skipped", "refusals"))]

LeftOut = dict[str, int]  # missing in results of older jobs


class AddReport(Wire):
    """The result of adding files: `documents` were new or changed, `unchanged` files were only hashed.

    `left_out` counts the secrets of each kind that were left out of the files.
    """

    files: int
    unchanged: int
    documents: int
    passages: int
    facts: int
    forgotten: int
    skipped_count: SkippedCount
    skipped: SkippedList
    seconds: float
    left_out: LeftOut = {}


class ImportReport(Wire):
    """The result of an import; `repeated` documents occurred earlier in the same file.

    `left_out` counts the omitted secrets of each kind.
    """

    format: str
    documents: int
    written: int
    repeated: int
    skipped_count: SkippedCount
    skipped: SkippedList
    left_out: LeftOut = {}
