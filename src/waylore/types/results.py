"""The words of Waylore as frozen dataclasses, and the identities that content gives them.

A document, passage, entity or fact has the same 128-bit identity wherever and however often it is
added: that is what makes adding twice the same as adding once, and what lets a walk go on in another
cell. Nothing here reads or writes anything. `docs/glossary.md` says what each word means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waylore.text import normalise
from waylore.types.knowledge import SAME, Entity, Fact
from waylore.types.search import Step


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
