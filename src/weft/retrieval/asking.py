"""What a graph search is given, and what it gives back: the words that the graph stages share."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from weft.config import Recipe
from weft.errors import WeftError
from weft.models import Embedder
from weft.retrieval.fusion import Fused
from weft.retrieval.linking import Link
from weft.store.base import Store
from weft.types import Fact, FactPath, Query, Ranking

T = TypeVar("T")
U = TypeVar("U")


@dataclass(slots=True)
class Trace:
    """What the stages did: how long each took, how many it found, what could not be searched and why."""

    seconds: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    causes: list[Exception] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start

    def run(
        self, name: str, function: Callable[[], T], *, instead: U, of: type[Exception] = WeftError
    ) -> T | U:
        """Run a stage that may fail; say so and give `instead`, if it does.

        A model is the caller's, and may fail `of` anything.
        """
        with self.stage(name):
            try:
                return function()
            except of as error:
                self.missing.append(f"{name}: {error}")
                self.causes.append(error)
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
    """What a graph search makes of it: all candidates in one order, paths to them, facts worth telling."""

    candidates: tuple[Fused, ...]
    paths: Mapping[str, FactPath] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()


class GraphSearch(Protocol):
    """One way to use the graph."""

    def __call__(self, store: Store, asked: Asked, recipe: Recipe) -> Reached:
        """Candidates, best first, the hybrid ones among them."""
        ...
