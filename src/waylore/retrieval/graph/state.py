"""What a graph search is given, and what it gives back: the words that the graph stages share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from waylore.protocols import Embedder
from waylore.recipes import Recipe
from waylore.retrieval.fusion import Fused
from waylore.retrieval.graph.linking import Link, with_same
from waylore.retrieval.trace import Trace
from waylore.store.reads import Reads
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.search import FactPath, Query, Ranking


@dataclass(frozen=True, slots=True)
class Asked:
    """A question after hybrid search: what it names, what was found, and the moment that counts as now."""

    query: Query
    links: tuple[Link, ...]
    rankings: Mapping[str, Ranking]
    hybrid: tuple[Fused, ...]
    now: datetime
    embedder: Embedder | None = None
    trace: Trace = field(default_factory=Trace)

    @property
    def starts(self) -> dict[str, str]:
        """What the question names: names by identity."""
        return {found.entity.id: found.entity.name for found in self.links}


@dataclass(frozen=True, slots=True)
class Reached:
    """What a graph search makes of it: what is named, all candidates in one order, paths, facts worth telling.

    `shown` are candidates that were read on the way, each with its document.
    """

    links: tuple[Link, ...]
    candidates: tuple[Fused, ...]
    paths: Mapping[str, FactPath] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()
    shown: Mapping[str, tuple[Passage, Document]] = field(default_factory=dict)


class GraphSearch(Protocol):
    """One way to use the graph."""

    def __call__(self, asked: Asked, recipe: Recipe) -> Reads[Reached]:
        """Candidates, best first, the hybrid ones among them."""
        ...


def resolved(asked: Asked, recipe: Recipe) -> Reads[Asked]:
    """The question with what is the same as something that it names."""
    with asked.trace.stage("resolve"):
        links = yield from with_same(asked.query, asked.links, recipe.resolution)
    return replace(asked, links=links)
