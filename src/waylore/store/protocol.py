"""The Store protocol: what Waylore asks of a database, all of it in batches and in domain types.

A store is the view of one collection. Every reading verb takes a `Filter` and applies it inside the query:
what the caller may not see is not counted, ranked or cut off. Results come in a fixed order, ties broken by
identity, so that the same rows give the same answer on every engine. No verb but `dense` and
`nearest_entities` (a scan of bits on SQLite), `export`, `adopt`, `remains` and `compact` may cost in proportion
to the collection.
`waylore.testing.StoreConformance` is this protocol as tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from waylore.store.requests import Ask
from waylore.types.knowledge import (
    LIVE,
    Alike,
    Contribution,
    Document,
    Embeddable,
    Entity,
    Fact,
    Mention,
    Passage,
    Status,
    Vector,
)
from waylore.types.results import Receipt, Statistics
from waylore.types.search import EVERYTHING, Filter, Ranking

NONE: Mapping[str, str] = MappingProxyType({})


class Store(Protocol):
    """One collection: everything Waylore knows of it, and how it is found."""

    # -- writing ---------------------------------------------------------------------------------------

    def write(
        self,
        contributions: Sequence[Contribution],
        *,
        model: str | None,
        fingerprints: Mapping[str, str] = NONE,
        instead_of: Sequence[str] = (),
    ) -> int:
        """Write all of the contributions or none; return how many were new or changed.

        A document that is there already is replaced, or left alone if it says the same. `model` names
        what made the vectors; None means that there are none. Another model than the collection's is
        refused with ModelMismatch. Documents that these come `instead_of` go in the same moment.
        `fingerprints` are of files that documents were read from.
        """
        ...

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """What these files were when they were last read; those of which a document went since are left out."""
        ...

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """What is there of these documents: `Contribution.digest` by identity."""
        ...

    def forget(self, documents: Sequence[str]) -> Receipt:
        """Remove documents with all that nothing else supports, and say what went."""
        ...

    def remains(self, receipt: Receipt) -> tuple[str, ...]:
        """What is left of what a receipt says went, a line each; nothing left is the proof that it is gone.

        Searches every table and index, and whatever else the engine may keep deleted bytes in.
        """
        ...

    def compact(self) -> None:
        """Write everything anew, so that nothing is kept but what is there; as dear as the whole of it."""
        ...

    def touch(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count a use of each, as often as it is named; does not change the collection's version."""
        ...

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by cosine, best first."""
        ...

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by BM25, best first; only those that share a term with the query."""
        ...

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Entities by the cosine of their names, best first."""
        ...

    def entities_by_names(
        self, names: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Entity, ...]]:
        """Entities that have one of these names or aliases; names are normalised before they are compared."""
        ...

    def keyed(
        self, keys: Sequence[str], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[str, ...]]:
        """Entities whose names have one of these keys (`naming.keys`), by identity.

        Of a key that more than `most` have, more than `most` are given; which ones, is not said.
        """
        ...

    def alike(
        self, asked: Mapping[str, Sequence[str]], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Alike, ...]]:
        """For each entity that asks with keys (`naming.mirrored`), the others whose names have one of them.

        A key that more than `most` others have tells nothing, and finds none of them.
        """
        ...

    # -- the graph -------------------------------------------------------------------------------------

    def facts_of_entities(
        self,
        entities: Sequence[str],
        *,
        per_entity: int,
        predicates: Sequence[str] = (),
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, tuple[Fact, ...]]:
        """Facts with one of these at either end, strongest first, as the most trusted visible voice has it."""
        ...

    def facts_of_passages(
        self,
        passages: Sequence[str],
        *,
        per_passage: int,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, tuple[Fact, ...]]:
        """Facts that these passages state, strongest first, each as the passage itself states it."""
        ...

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """Where entities are mentioned: their own passages first, then by how often."""
        ...

    def nearby(
        self,
        vector: Vector,
        entities: Sequence[str],
        *,
        per_entity: int,
        keys: Sequence[str] = (),
        most: int = 0,
        where: Filter = EVERYTHING,
    ) -> tuple[Mapping[str, tuple[Mention, ...]], Mapping[str, float]]:
        """What `passages_of_entities` says, and how near each of those passages is to a vector.

        Also of entities whose names have one of these keys, if no more than `most` share it.
        """
        ...

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """What passages mention: what they are about first, then by how often."""
        ...

    # -- fetching; what is not there or not visible is left out ----------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """Documents by identity."""
        ...

    def listed(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = EVERYTHING,
    ) -> tuple[Document, ...]:
        """Documents whose address begins with `under`, by address and identity, from `after` on."""
        ...

    def passages(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Passages by identity, with their vectors if asked for."""
        ...

    def sources(self, passages: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """The documents that passages are of, by the identity of the passage."""
        ...

    def cosines(
        self, vector: Vector, passages: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, float]:
        """How near these passages are to a vector; those without a vector are left out."""
        ...

    def contributions(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Contribution]:
        """Documents by identity, each with all that it says, as of one moment."""
        ...

    def entities(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Entity]:
        """Entities by identity, described by what the caller may see, with their vectors if asked for."""
        ...

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, Fact]:
        """Facts by identity, each as its most trusted visible voice has it."""
        ...

    # -- several at once -------------------------------------------------------------------------------

    def together(self, asks: Sequence[Ask[Any]]) -> Sequence[Any]:
        """Answers to several reading verbs, in order; on a server, in one round trip where that can be."""
        ...

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with every write by anyone."""
        ...

    def statistics(self) -> Statistics:
        """How much there is, and the embedding model."""
        ...

    def export(self) -> Iterator[Contribution]:
        """Everything, a document at a time, by identity: the same knowledge gives the same stream.

        What `export` yields, `write` takes.
        """
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...

    # -- another embedding model: stage its vectors, in any number of sittings, then adopt them ---------

    def unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Passages, entities and facts that have no vector of this model staged yet."""
        ...

    def stage(self, items: Sequence[Embeddable], *, model: str) -> None:
        """Keep vectors of a model that is not the collection's yet; searches do not see them."""
        ...

    def adopt(self, model: str) -> bool:
        """Make the staged vectors the collection's own; False if some are still unembedded."""
        ...
