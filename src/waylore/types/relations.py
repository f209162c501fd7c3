"""Answers about the graph: related facts as a tree, connections of two things, and lists of entities.

Each answer says how much of the stored data it shows. If several things share a name, the answer lists these things.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from waylore.dates import format_day
from waylore.types.knowledge import SAME, Entity
from waylore.types.plain import dump_document, dump_entity, dump_time
from waylore.types.search import Step
from waylore.types.views import Assertion, AssertionEnd

Direction = Literal["both", "in", "out"]


@dataclass(frozen=True, slots=True)
class Extent:
    """How many items were found and how many are shown. The total is a minimum if it is not exact."""

    shown: int = 0
    total: int = 0
    is_exact: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether every stored and visible item is shown."""
        return self.is_exact and self.shown == self.total

    def __str__(self) -> str:
        if self.is_complete:
            return f"all {self.total:,}"
        return f"{self.shown:,} of {'' if self.is_exact else 'at least '}{self.total:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return the extent as plain values, as every surface writes it in JSON."""
        return {"complete": self.is_complete, "shown": self.shown, "total": self.total, "is_exact": self.is_exact}


@dataclass(frozen=True, slots=True)
class PredicateCount:
    """A predicate in the words of its authors, and the number of facts that have it.

    `is_inverse` if it states the requested relation from object to subject: `is owned by` for `owns`.
    """

    predicate: str
    facts: int
    is_inverse: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the count as plain values, as every surface writes it in JSON."""
        return {"predicate": self.predicate, "facts": self.facts, "is_inverse": self.is_inverse}


@dataclass(frozen=True, slots=True)
class RelatedFact:
    """A fact of an entity as a passage states it, the entity at its other end (None for a plain value), and its end.

    `end` is the fact that superseded it, and the time. `branches` are the facts of the other entity, one hop further.
    """

    assertion: Assertion
    is_forward: bool
    entity: Entity | None = None
    end: AssertionEnd | None = None
    branches: tuple["RelatedFact", ...] = ()

    def __str__(self) -> str:
        return str(Step(self.assertion.fact, self.is_forward))

    @property
    def period(self) -> tuple[str, ...]:
        """The period in which the fact holds, as far as it is stated: `since 2024-01-02`."""
        fact = self.assertion.fact
        days = (("since", fact.valid_from), ("until", fact.valid_to))
        return tuple(f"{word} {format_day(day)}" for word, day in days if day)

    @property
    def kind(self) -> str:
        """`typed` if the fact has a predicate, `same` if it says that two names mean one thing, else `quoted`."""
        fact = self.assertion.fact
        return ("same" if fact.predicate == SAME else "typed") if fact.is_typed else "quoted"

    def to_dict(self) -> dict[str, Any]:
        """Return the fact as plain values, as every surface writes it in JSON."""
        fact = self.assertion.fact
        return {
            "subject": fact.subject,
            "predicate": fact.predicate,
            "object": fact.object,
            "kind": self.kind,
            "is_forward": self.is_forward,
            "entity": dump_entity(self.entity) if self.entity else None,
            "quote": self.assertion.quote,
            "since": dump_time(fact.valid_from),
            "until": dump_time(fact.valid_to),
            "stated": dump_time(fact.at),
            "source": fact.source,
            "confidence": fact.confidence,
            "status": fact.status,
            "fact": fact.id,
            "passage": fact.passage_id,
            "document": dump_document(self.assertion.document),
            "end": self.end.to_dict() if self.end else None,
            "branches": [branch.to_dict() for branch in self.branches],
        }


@dataclass(frozen=True, slots=True)
class Related:
    """The facts of a thing as a tree by hops. `entities` has the thing under all its names; empty if nothing is found.

    If several things have the name, there are no facts, and `candidates` has the things: ask again with the id of one.
    If no entity has the name, `similar` has entities whose names contain its words, the most mentioned first.
    `predicates` match the requested ones, `unmatched` are the other predicates of facts around the thing.
    """

    name: str
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Entity, ...] = ()
    facts: tuple[RelatedFact, ...] = ()
    extent: Extent = Extent()
    predicates: tuple[PredicateCount, ...] = ()
    unmatched: tuple[PredicateCount, ...] = ()
    similar: tuple[Entity, ...] = ()

    def __iter__(self) -> Iterator[RelatedFact]:
        """Yield every fact of the tree, each before its branches."""
        pending = [*reversed(self.facts)]
        while pending:
            fact = pending.pop()
            pending += reversed(fact.branches)
            yield fact

    @property
    def complete(self) -> bool:
        """Whether the tree has every stored and visible fact."""
        return self.extent.is_complete

    @property
    def shown(self) -> int:
        """The number of facts in the tree."""
        return self.extent.shown

    @property
    def total(self) -> int:
        """The number of facts found; a minimum if `extent.is_exact` is false."""
        return self.extent.total

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, as every surface writes it in JSON."""
        return {
            "name": self.name,
            "entities": [dump_entity(entity) for entity in self.entities],
            "candidates": [dump_entity(entity) for entity in self.candidates],
            "similar": [dump_entity(entity) for entity in self.similar],
            **self.extent.to_dict(),
            "facts": [fact.to_dict() for fact in self.facts],
            "predicates": [each.to_dict() for each in self.predicates],
            "unmatched": [each.to_dict() for each in self.unmatched],
        }


@dataclass(frozen=True, slots=True)
class ConnectingPath:
    """A path between two entities: each step is a fact, a statement that names both ends, or two names of one thing."""

    start: Entity
    steps: tuple[RelatedFact, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.start.name, *map(str, self.steps)])

    @property
    def hops(self) -> int:
        """The number of steps, without steps between two names of one thing."""
        return sum(step.kind != "same" for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain values, as every surface writes it in JSON."""
        steps = [step.to_dict() for step in self.steps]
        return {"start": dump_entity(self.start), "hops": self.hops, "text": str(self), "steps": steps}


@dataclass(frozen=True, slots=True)
class Connection:
    """The shortest paths between two things, best first, and the numbers of entities and facts that were read.

    `exhaustive` if no bound stopped the search: without a path there is none within `max_hops`. If a name has several
    things, they are in `candidates` by name; a name without an entity is in `unknown`. In both cases nothing was
    searched.
    """

    names: tuple[str, str]
    max_hops: int
    paths: tuple[ConnectingPath, ...] = ()
    candidates: tuple[tuple[str, tuple[Entity, ...]], ...] = ()
    unknown: tuple[str, ...] = ()
    entities: int = 0
    facts: int = 0
    exhaustive: bool = True

    def __str__(self) -> str:
        if self.unknown or self.candidates:
            missing = [f"no entity is called {name}" for name in self.unknown]
            return "; ".join([*missing, *(f"{len(of)} things are called {name}" for name, of in self.candidates)])
        looked = f"{self.entities:,} entities and {self.facts:,} facts were read"
        if self.paths:
            return f"{self.paths[0].hops} hops; {looked}"
        scope = "and there are no others" if self.exhaustive else "and a bound left out others, so a path may exist"
        return f"no path within {self.max_hops} hops; {looked}, {scope}"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, as every surface writes it in JSON."""
        return {
            "names": list(self.names),
            "max_hops": self.max_hops,
            "paths": [path.to_dict() for path in self.paths],
            "candidates": {name: [dump_entity(each) for each in of] for name, of in self.candidates},
            "unknown": list(self.unknown),
            "entities": self.entities,
            "facts": self.facts,
            "exhaustive": self.exhaustive,
            "text": str(self),
        }


@dataclass(frozen=True, slots=True)
class EntityList:
    """Entities that match, in pages. `after` is the cursor of the next page, empty on the last page.

    The extent counts all pages. `candidates` has the things that share the name of the requested object.
    """

    entities: tuple[Entity, ...] = ()
    extent: Extent = Extent()
    after: str = ""
    candidates: tuple[Entity, ...] = ()
    predicates: tuple[PredicateCount, ...] = ()
    unmatched: tuple[PredicateCount, ...] = ()

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    @property
    def complete(self) -> bool:
        """Whether the page has every stored and visible entity that matches."""
        return self.extent.is_complete

    @property
    def shown(self) -> int:
        """The number of entities of the page."""
        return self.extent.shown

    @property
    def total(self) -> int:
        """The number of entities that match; a minimum if `extent.is_exact` is false."""
        return self.extent.total

    def to_dict(self) -> dict[str, Any]:
        """Return the list as plain values, as every surface writes it in JSON."""
        return {
            "entities": [dump_entity(entity) for entity in self.entities],
            **self.extent.to_dict(),
            "after": self.after,
            "candidates": [dump_entity(entity) for entity in self.candidates],
            "predicates": [each.to_dict() for each in self.predicates],
            "unmatched": [each.to_dict() for each in self.unmatched],
        }
