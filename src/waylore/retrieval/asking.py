"""What a graph search is given, and what it gives back: the words that the graph stages share."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from waylore.config import Recipe
from waylore.errors import WayloreError
from waylore.models import Embedder
from waylore.retrieval.fusion import Fused
from waylore.retrieval.linking import Link, with_same
from waylore.store.reads import Reads
from waylore.types import Document, Fact, FactPath, Passage, Query, Ranking

T = TypeVar("T")
U = TypeVar("U")


@dataclass(slots=True)
class Trace:
    """What the stages did: when each began, how long it took, how many it found, what failed and why."""

    began: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    causes: list[Exception] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        self.began[name] = start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start

    def reads(self, name: str, stage: Reads[T], *, instead: U) -> Reads[T | U]:
        """A stage that may fail; says so and gives `instead`, if it does. Who goes together shares his time."""
        with self.stage(name):
            try:
                return (yield from stage)
            except WayloreError as error:
                self.missing.append(f"{name}: {error}")
                self.causes.append(error)
                return instead

    def asks(self, name: str, model: Callable[[], T], *, instead: U, lost: str = "") -> T | U:
        """The same of a model: it is the caller's, and may fail of anything; `lost` is what fails with it."""
        with self.stage(name):
            try:
                return model()
            except Exception as error:  # noqa: BLE001 (see above)
                self.missing.append(f"{lost or name}: {error}")
                return instead


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
