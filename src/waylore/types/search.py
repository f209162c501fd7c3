"""The words of Waylore as frozen dataclasses, and the identities that content gives them.

A document, passage, entity or fact has the same 128-bit identity wherever and however often it is
added: that is what makes adding twice the same as adding once, and what lets a walk go on in another
cell. Nothing here reads or writes anything. `docs/glossary.md` says what each word means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from waylore.types.knowledge import (
    Document,
    Entity,
    Fact,
    Metadata,
    Passage,
    Vector,
)

Gate = Literal["open", "unused", "empty", "unnamed", "unsure", "failed"]  # what became of the graph, and why


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


EVERYTHING = Filter()
