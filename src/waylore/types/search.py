"""Questions and answers: filters, queries, rankings, hits with their explanations, and search results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from waylore.dates import format_day, to_datetime
from waylore.errors import ArgumentError
from waylore.types.knowledge import (
    LIVE,
    Document,
    Entity,
    Fact,
    Metadata,
    Passage,
    Status,
    Vector,
)
from waylore.types.plain import dump_document, dump_entity, dump_fact, dump_passage, dump_time

if TYPE_CHECKING:
    from waylore.spans import Span

Cosines = TypeVar("Cosines", float, npt.NDArray[np.float64])

GateOutcome = Literal[
    "open",  # the graph was used
    "unused",  # the recipe does not use the graph
    "empty",  # the graph has no facts
    "unnamed",  # the question names no known entity
    "unsure",  # the confidence is too low
    "failed",  # the graph could not be searched
]


NEWER = "newer"  # the placement of a turn that was put before an older one
SNIPPET_CHARACTERS = 200  # characters of a passage that is quoted in the text of another one
EndKind = Literal["changed", "corrected", "ended"]  # how a fact was superseded
StepKind = Literal["typed", "quoted", "named"]
GroupBy = Literal["turn", "session"]


@dataclass(frozen=True, slots=True)
class Filter:
    """The documents that a caller may and wants to see. An empty filter selects all documents without a user.

    `labels=None` means a caller without restrictions. Otherwise a document is visible if it has no labels or shares one
    with the caller; a single string is one label. A `user` sees its own documents and documents without a user. Every
    key of `metadata` must match one of its values.

    `since` and `until` select passages whose time `at` is at or after `since` and before `until`. `as_of` leaves out
    passages that were said later. Passages without a time are left out by `since` and `until`, but not by `as_of`.

    `now` leaves out documents that have expired by then; with `as_of`, documents that had expired at that time. Without
    both, expired documents are included. `Waylore` sets `now` by its clock.
    """

    labels: frozenset[str] | None = None
    metadata: Metadata = field(default_factory=dict)
    user: str = ""
    agent: str = ""
    session: str = ""
    speaker: str = ""
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    now: datetime | None = None

    @property
    def has_turns(self) -> bool:
        """True if passages are selected by time or speaker."""
        return bool(self.speaker or self.since or self.until or self.as_of)

    def __post_init__(self) -> None:
        for name in ("user", "agent", "session", "speaker"):
            if not isinstance(getattr(self, name), str):
                raise ArgumentError(f"{name} must be a string, got {getattr(self, name)!r:.60}")
        for name in ("since", "until", "as_of", "now"):
            moment: object = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, to_datetime(moment, name))  # type: ignore[arg-type]  # checked there
        labels: object = self.labels
        if isinstance(labels, str):
            object.__setattr__(self, "labels", frozenset({labels}))
        elif labels is not None and not isinstance(labels, frozenset):
            if not isinstance(labels, Iterable) or not all(isinstance(each, str) for each in labels):
                raise ArgumentError(f"labels must be a string, a set of strings or None, got {labels!r:.60}")
            object.__setattr__(self, "labels", frozenset(labels))
        if not isinstance(self.metadata, Mapping):
            raise ArgumentError(f"metadata must be a dict, got {type(self.metadata).__name__}")


@dataclass(frozen=True, slots=True)
class CosineScale:
    """How a model distributes its cosines: two unrelated texts have 0.4 with one model, 0.1 with another.

    `unit` is the difference of two cosines that counts as much as the whole weight of vector search. `mean` and
    `deviation` are of cosines between a question and an unrelated passage. `slope` and `offset` map a cosine to the
    scale of the model that the weights of the graph search were fitted to.
    """

    unit: float = 0.30
    mean: float = 0.0
    deviation: float = 1.0
    slope: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its vector, if there is an embedder, and a filter.

    Facts count if they are valid at `as_of`; with None all facts count. `min_similarity` is the minimum cosine of a
    hit; None sets no minimum. `scale` is the scale of the vector's model, None if unknown. With `group_by` "session",
    only the best turn of each session is a hit.
    """

    text: str
    vector: Vector | None = field(default=None, compare=False, repr=False)
    where: Filter = field(default_factory=Filter)
    as_of: datetime | None = None
    min_similarity: float | None = None
    scale: CosineScale | None = field(default=None, compare=False, repr=False)
    group_by: GroupBy = "turn"

    def map_cosines(self, cosines: Cosines) -> Cosines:
        """Map cosines of the question's model to the scale of the model that the graph search was fitted to."""
        return cosines if self.scale is None else self.scale.slope * cosines + self.scale.offset


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The number of visible passages, and the number of them that have each term of a question."""

    passages: int
    counts: Mapping[str, int]


class Scored(NamedTuple):
    """One candidate of a ranking."""

    id: str
    score: float


Ranking: TypeAlias = tuple[Scored, ...]


def make_ranking(ids: Iterable[str], scores: Iterable[float]) -> Ranking:
    """Return candidates with their scores, in the given order, without a call for each."""
    return tuple(map(partial(tuple.__new__, Scored), zip(ids, scores, strict=True)))


_SCORE_NAMES = {"vector": "cosine", "keyword": "BM25"}


class Placement(NamedTuple):
    """The rank of a hit in one search, and its share of the final score; `query` if the search had its own query.

    `rank` is None if the hit was not in the list of the search and its score was read separately. `best` is the best
    score of the search, if the share was measured from it. `note` describes a score that is not a rank.
    """

    search: str
    rank: int | None
    score: float
    share: float
    query: str = ""
    best: float | None = None
    note: str = ""

    def __str__(self) -> str:
        return f"{self.search}: {self.text}"

    @property
    def text(self) -> str:
        """Rank and score as text, or the note, without the name of the search."""
        if self.note:
            return self.note
        rank = "not among the first" if self.rank is None else f"rank {self.rank}"
        query = f" for “{self.query}”" if self.query else ""
        if self.best is None:
            return f"{rank}, score {self.score:.4f}{query}"
        return f"{rank}, {_SCORE_NAMES.get(self.search, 'score')} {self.score:.4f}, best {self.best:.4f}{query}"


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of a path, and whether it was followed from its subject to its object."""

    fact: Fact
    is_forward: bool = True

    def __str__(self) -> str:
        other = self.fact.object if self.is_forward else self.fact.subject
        return f"{self.fact.draw_arrow(is_forward=self.is_forward)} {other}"

    @property
    def kind(self) -> StepKind:
        """How the step is shown: with its predicate, with words of the statement, or as a name on the way."""
        if self.fact.is_typed:
            return "typed"
        return "quoted" if self.words else "named"

    @property
    def words(self) -> str:
        """The words of the statement between the two names, if the step is quoted."""
        return self.fact.quote[0]


@dataclass(frozen=True, slots=True)
class GraphPath:
    """How the graph led from an entity of the question to a passage."""

    start: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The path as one line of text."""
        return " ".join([self.start, *map(str, self.steps), "→ this passage"])

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts in the order in which they were followed."""
        return tuple(step.fact for step in self.steps)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A value with its description and details, as a tree.

    A value is the sum of the values of its details. A detail that is not part of the sum has no value.
    """

    value: float | None
    description: str
    details: tuple["Explanation", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        value = "" if self.value is None else f"{self.value:.4f}  "
        lines = [f"{indent}{value}{self.description}"]
        for detail in self.details:
            lines.extend(detail._lines(indent + "  "))
        return lines


@dataclass(frozen=True, slots=True)
class Superseder:
    """The passage that supersedes a hit, and since when.

    `changed`: the new fact holds since then. `corrected`: it held from the beginning. `ended`: the fact of the hit is
    over.
    """

    passage_id: str
    text: str
    at: datetime | None
    kind: EndKind
    since: datetime

    def __str__(self) -> str:
        return f"{self.kind} {format_day(self.since)}: {self.text}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its score, its rank in each search, and the path that led to it, if the graph found one.

    `also_in` are other documents with the same text, whose passages would have been hits too. `superseded_by` is the
    passage that holds instead; None if none is known. `is_planned` if its fact begins later. `is_newer` if it was put
    before an older passage that says much the same.
    """

    passage: Passage
    document: Document
    score: float
    placements: tuple[Placement, ...]
    path: GraphPath | None = None
    also_in: tuple[Document, ...] = ()
    superseded_by: Superseder | None = None
    is_planned: bool = False
    is_newer: bool = False

    @property
    def when(self) -> "tuple[Span, ...]":
        """The days that the passage speaks of, relative to the day it was said; empty if that day is unknown."""
        if self.passage.at is None:
            return ()
        from waylore.spans import find_spans  # noqa: PLC0415 (most hits are no turns)

        return find_spans(self.passage.text, self.passage.at)

    @property
    def id(self) -> str:
        """The id of the passage."""
        return self.passage.id

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.passage.text

    @property
    def title(self) -> str:
        """The title of the passage, or of its document."""
        return self.passage.title or self.document.title

    @property
    def said(self) -> str:
        """When and by whom the passage was said, such as `2026-03-01, Mara`; empty if neither is known."""
        day = format_day(self.passage.at) if self.passage.at else ""
        return ", ".join(filter(None, (day, self.passage.speaker)))

    @property
    def heading(self) -> str:
        """The title, then when and by whom it was said, and whether it is superseded or planned."""
        state = "planned" if self.is_planned else ""
        if self.superseded_by:
            state = f"{self.superseded_by.kind} {format_day(self.superseded_by.since)}"
        return " · ".join(filter(None, (self.title, self.said, state)))

    @property
    def text_with_end(self) -> str:
        """The text; if it is superseded, also the text that holds instead."""
        if self.superseded_by is None:
            return self.text
        until = format_day(self.superseded_by.since)
        return f"{self.text}\n(until {until}; then: {to_snippet(self.superseded_by.text)})"

    @property
    def uri(self) -> str:
        """The address of the document."""
        return self.document.uri

    @property
    def metadata(self) -> Metadata:
        """The metadata of the document."""
        return self.document.metadata

    @property
    def explanation(self) -> Explanation:
        """Why this passage was returned, as a tree: the score is the sum of its shares."""
        searches = tuple(Explanation(p.share, str(p)) for p in self.placements)
        steps = tuple(Explanation(None, fact.embeddable) for fact in self.path.facts) if self.path else ()
        path = (Explanation(None, f"path: {self.path}", steps),) if self.path else ()
        return Explanation(self.score, "the sum of its shares", searches + path)

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the hit alone as plain values, with the facts of its path.

        explain: also return the explanation, which is None otherwise.
        """
        facts = {fact.id: fact for fact in self.path.facts} if self.path else {}
        return {**self._dump(explain), "facts": [dump_fact(fact) for fact in facts.values()]}

    def _dump(self, explain: bool) -> dict[str, Any]:
        return {
            "score": self.score,
            "passage": dump_passage(self.passage),
            "document": dump_document(self.document),
            "placements": [_dump_placement(placement) for placement in self.placements],
            "path": _dump_path(self.path) if self.path else None,
            "also_in": [dump_document(document) for document in self.also_in],
            "when": [_dump_span(span) for span in self.when],
            "superseded_by": _dump_superseder(self.superseded_by) if self.superseded_by else None,
            "is_planned": self.is_planned,
            "is_newer": self.is_newer,
            "explanation": _dump_explanation(self.explanation) if explain else None,
        }


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """The answer of the graph to a question that asks for a set or a connection, such as "what depends on Quarry?".

    `summary` has the request and how much of the answer is shown: "all 7 facts: “depends on” Quarry". Each of the
    `lines` is a fact with its source, indented by hops, or a path. `is_complete` if the answer has everything that the
    store holds.
    """

    summary: str
    lines: tuple[str, ...] = ()
    is_complete: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, as every surface writes it in JSON."""
        return {"summary": self.summary, "lines": list(self.lines), "is_complete": self.is_complete}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a question, best first, with facts of the graph and the searches that could not run.

    It iterates over its hits, has their number as its length, and is false without hits. `route_reason` says why a
    method was chosen. `skip_reason` says why the graph was skipped; it is empty if the graph was used. `gate` gives the
    outcome in a word. `entities` are the entities that the question names, `facts` connect them to the hits.
    `is_relevant` is whether the best hit likely answers the question, with `relevance_reason` if it does not; None if
    this cannot be judged, for example without vectors. `spans` are the days that the question names, if turns near them
    were preferred. `set_answer` is the answer of the graph if the question asks for a set or a connection, None
    otherwise. `ranking` lists all candidates, also candidates with the same text as another. `missing` lists the
    searches that could not run. `candidates`, `seconds` and `started` are by stage (`started` on the clock of
    `time.perf_counter`), `rows_read` by kind. They describe the search itself, also if the answer comes `from_cache`.
    """

    query: str
    hits: tuple[Hit, ...]
    recipe: str = ""
    route_reason: str = ""
    confidence: float | None = None
    skip_reason: str = ""
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    gate: GateOutcome = "open"
    started: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    rows_read: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    from_cache: bool = field(default=False, compare=False)
    ranking: Ranking = field(default=(), repr=False)
    is_relevant: bool | None = None
    relevance_reason: str = ""
    spans: "tuple[Span, ...]" = ()
    set_answer: SetAnswer | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the result as plain values, as every surface writes it in JSON.

        Each fact is included once, in `facts`; the steps of paths refer to it by id.

        explain: also return the explanations of hits, which are None otherwise.
        """
        return {
            "query": self.query,
            "hits": [hit._dump(explain) for hit in self.hits],
            "recipe": self.recipe,
            "route_reason": self.route_reason,
            "confidence": self.confidence,
            "skip_reason": self.skip_reason,
            "is_relevant": self.is_relevant,
            "relevance_reason": self.relevance_reason,
            "spans": [_dump_span(span) for span in self.spans],
            "set_answer": self.set_answer.to_dict() if self.set_answer else None,
            "entities": [dump_entity(entity) for entity in self.entities],
            "facts": [dump_fact(fact) for fact in self._list_facts()],
            "missing": list(self.missing),
            "candidates": dict(self.candidates),
            "seconds": dict(self.seconds),
        }

    def _list_facts(self) -> Iterable[Fact]:
        """Return `facts`, then the other facts of paths, each once."""
        facts = {fact.id: fact for fact in self.facts}
        for path in (hit.path for hit in self.hits if hit.path):
            for step in path.steps:
                facts.setdefault(step.fact.id, step.fact)
        return facts.values()


def _dump_placement(placement: Placement) -> dict[str, Any]:
    return {
        "search": placement.search,
        "rank": placement.rank,
        "score": placement.score,
        "share": placement.share,
        "query": placement.query,
        "best": placement.best,
    }


def _dump_span(span: "Span") -> dict[str, Any]:
    return {"first": span.first.isoformat(), "last": span.last.isoformat(), "words": span.words}


def _dump_superseder(superseder: Superseder) -> dict[str, Any]:
    return {
        "passage_id": superseder.passage_id,
        "text": superseder.text,
        "at": dump_time(superseder.at),
        "kind": superseder.kind,
        "since": dump_time(superseder.since),
    }


def _dump_path(path: GraphPath) -> dict[str, Any]:
    steps = [
        {"fact_id": step.fact.id, "is_forward": step.is_forward, "kind": step.kind, "words": step.words}
        for step in path.steps
    ]
    return {"start": path.start, "steps": steps, "text": path.text}


def _dump_explanation(explanation: Explanation) -> dict[str, Any]:
    details = [_dump_explanation(detail) for detail in explanation.details]
    return {"value": explanation.value, "description": explanation.description, "details": details}


def to_snippet(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SNIPPET_CHARACTERS else f"{line[:SNIPPET_CHARACTERS].rstrip()} …"


NO_FILTER = Filter()


@dataclass(frozen=True, slots=True)
class FactFilter:
    """The facts that a read returns, selected by status, validity, and the documents that the caller may see.

    `statuses` are compared with the status of the most trusted assertion that the caller may see. `as_of=None`
    accepts facts of any period.
    """

    statuses: Sequence[Status] = LIVE
    as_of: datetime | None = None
    where: Filter = NO_FILTER
