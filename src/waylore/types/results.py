"""Results of calls other than a search: ids of added documents, merges, receipts and statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Self

from waylore.text import normalise
from waylore.types.knowledge import SAME, Entity, Fact
from waylore.types.plain import dump_entity, dump_fact


class AddedId(str):
    """The id of an added document. `left_out` counts the secrets of each kind that were left out of it."""

    left_out: Mapping[str, int]

    def __new__(cls, id_: str, left_out: Mapping[str, int]) -> Self:
        """Make the id of a document from its digits."""
        made = super().__new__(cls, id_)
        made.left_out = left_out
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, int]]:  # type: ignore[override]
        """Return the arguments of `__new__`, for copies."""
        return str(self), self.left_out


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up how many secrets of each kind were left out."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def describe_left_out(left_out: Mapping[str, int]) -> str:
    """Describe the omitted secrets, such as `1 × aws key, 2 × password`; empty if there were none."""
    return ", ".join(f"{number:,} × {kind}" for kind, number in left_out.items())


@dataclass(frozen=True, slots=True)
class Merge:
    """Two entities that are treated as one, or as similar, with the fact that is the evidence.

    `fact.passage_id` is the passage that states it. It is empty if only the names are similar.
    """

    entity: Entity
    other: Entity
    fact: Fact

    @property
    def is_same(self) -> bool:
        """True if the two are treated as one; otherwise their names are similar."""
        return normalise(self.fact.predicate) == normalise(SAME)

    def to_dict(self) -> dict[str, Any]:
        """Return the merge as plain values, as every surface writes it in JSON."""
        return {
            "entity": dump_entity(self.entity),
            "other": dump_entity(self.other),
            "fact": dump_fact(self.fact),
            "is_same": self.is_same,
        }

    def __str__(self) -> str:
        return f"{self.entity.name} —{self.fact.predicate}→ {self.other.name}: {self.fact.embeddable}"


@dataclass(frozen=True, slots=True)
class RememberReport:
    """The turns of a call by the ids of their documents: counts of new, known and split ones.

    `facts` are the facts of the new turns. `left_out` counts the omitted secrets of each kind.
    """

    documents: tuple[str, ...] = ()
    new: int = 0
    known: int = 0
    cut: int = 0
    facts: tuple[Fact, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "RememberReport") -> "RememberReport":
        return RememberReport(
            self.documents + other.documents,
            self.new + other.new,
            self.known + other.known,
            self.cut + other.cut,
            self.facts + other.facts,
            add_counts([self.left_out, other.left_out]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, as every surface writes it in JSON."""
        return {
            "documents": list(self.documents),
            "new": self.new,
            "known": self.known,
            "cut": self.cut,
            "facts": [dump_fact(fact) for fact in self.facts],
            "left_out": dict(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """The removals of `forget`: the ids of documents and of everything that no other document supports.

    `missing` are the given ids and addresses without a document. `id` is empty if the receipt is not stored.
    `unconfirmed` counts the items whose removal a search index outside of the store has not confirmed yet.
    """

    documents: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    id: str = ""
    unconfirmed: int = 0


@dataclass(frozen=True, slots=True)
class UserCounts:
    """A user of a collection, and how many documents and passages it has."""

    user: str
    documents: int
    passages: int


@dataclass(frozen=True, slots=True)
class DayCounts:
    """A day, and how many documents and passages were written on it."""

    day: date
    documents: int
    passages: int

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, as every surface writes them in JSON."""
        return {"day": self.day.isoformat(), "documents": self.documents, "passages": self.passages}


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a collection, and the embedding model that it was made with.

    `weights` are the weights of the graph search fitted to the collection, as JSON; empty for the weights of the
    package.
    """

    documents: int
    passages: int
    entities: int
    facts: int
    mentions: int
    model: str | None
    dimension: int | None
    version: int
    weights: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics without their details as plain values, as every surface writes them in JSON."""
        return {
            "documents": self.documents,
            "passages": self.passages,
            "entities": self.entities,
            "facts": self.facts,
            "mentions": self.mentions,
            "model": self.model,
            "dimension": self.dimension,
            "version": self.version,
        }
