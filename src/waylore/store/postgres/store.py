"""A PostgreSQL server, many tenants: the store on PostgreSQL with pgvector, through psycopg.

A collection is a set of rows that no transaction of another one can see; those who write to it queue, and
nobody else waits for them. This module is the verbs; `postgres_asking` answers those that read, several in one
round trip, `postgres_writing` carries out those that write, and SQL is in `sql/postgres`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from waylore.store.postgres import fetch as reading
from waylore.store.postgres import reembed as reembedding
from waylore.store.postgres import scope as scoping
from waylore.store.postgres import search as searching
from waylore.store.postgres import server
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres import verify as verifying
from waylore.store.postgres import write as writing
from waylore.store.postgres.connections import Connection, wrapped_errors
from waylore.store.postgres.reader import Reader
from waylore.store.postgres.scope import run
from waylore.store.protocol import NONE, Store
from waylore.store.reads import driven
from waylore.store.requests import Ask, ask
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

Answer = TypeVar("Answer")


class PostgresStore:
    """A collection on a PostgreSQL server.

    `url` is what libpq takes: `postgresql://user@host/database`. All stores of one address share its
    `connections`; who finds none free waits `wait_seconds`.
    """

    def __init__(
        self, url: str, collection: str = "default", *, connections: int = 16, wait_seconds: float = 30.0
    ) -> None:
        self._url = url
        self._name = collection
        self._key = scoping.key_of(collection)
        self._indexed: set[str] = set()
        self._building: Thread | None = None
        self._is_closed = False
        with wrapped_errors(url):
            self._server = server.lend(url, connections=connections, wait_seconds=wait_seconds)
            try:
                self._reader = Reader(self._server, self._key, collection)
                self._ensure_collection()
            except BaseException:
                server.give_back(self._server)
                raise

    # -- writing ---------------------------------------------------------------------------------------

    def write(
        self,
        contributions: Sequence[Contribution],
        *,
        model: str | None,
        fingerprints: Mapping[str, str] = NONE,
        instead_of: Sequence[str] = (),
    ) -> int:
        """Write all of the contributions or none; return how many were new or changed."""
        with self._writing() as (db, before):
            if instead_of:
                writing.forget(db, before, instead_of)
            into = self._collection(db) if instead_of else before
            changed = writing.write(db, into, contributions, model=model)
            writing.keep_fingerprints(db, self._key, fingerprints)
        if changed:
            self._index(before.statistics, contributions)
        return changed

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """What these files were when they were last read; those of which a document went since are left out."""
        return self._answer(ask(Store.fingerprints, files))

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """What is there of these documents: `Contribution.digest` by identity."""
        return self._answer(ask(Store.digests, documents))

    def forget(self, documents: Sequence[str]) -> Receipt:
        """Remove documents with all that nothing else supports, and say what went."""
        with self._writing() as (db, of):
            return writing.forget(db, of, documents)

    def remains(self, receipt: Receipt) -> tuple[str, ...]:
        """What is left of what a receipt says went, a line each; reads the whole collection."""
        return self._alone(lambda db: verifying.remains(db, self._key, receipt))

    def compact(self) -> None:
        """Write all tables anew; no one else can read or write one meanwhile. For their owner alone."""
        with wrapped_errors(self._url), closing(self._server.connect()) as db:
            verifying.compact(db)

    def touch(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count a use of each, as often as it is named; does not change the collection's version."""
        with wrapped_errors(self._url), server.writing(self._server, self._key, lock="lock_shared") as db:
            writing.touch(db, self._key, "passage", passages, at)
            writing.touch(db, self._key, "fact", facts, at)

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by cosine, best first."""
        return self._answer(ask(Store.dense, vector, top_k=top_k, where=where))

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by BM25, best first; only those that share a term with the query."""
        return self._answer(ask(Store.lexical, query, top_k=top_k, where=where))

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Entities by the cosine of their names, best first."""
        return self._answer(ask(Store.nearest_entities, vector, top_k=top_k, where=where))

    def entities_by_names(
        self, names: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Entity, ...]]:
        """Entities that have one of these names or aliases; names are normalised before they are compared."""
        return self._answer(ask(Store.entities_by_names, names, where=where))

    def alike(
        self, asked: Mapping[str, Sequence[str]], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Alike, ...]]:
        """For each entity that asks with keys, the others whose names have one of them."""
        return self._answer(ask(Store.alike, asked, most=most, where=where))

    def keyed(
        self, keys: Sequence[str], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[str, ...]]:
        """Entities whose names have one of these keys, by identity."""
        return self._answer(ask(Store.keyed, keys, most=most, where=where))

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
        return self._answer(
            ask(
                Store.facts_of_entities,
                entities,
                per_entity=per_entity,
                predicates=predicates,
                statuses=statuses,
                as_of=as_of,
                where=where,
            )
        )

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
        return self._answer(
            ask(
                Store.facts_of_passages,
                passages,
                per_passage=per_passage,
                statuses=statuses,
                as_of=as_of,
                where=where,
            )
        )

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """Where entities are mentioned: their own passages first, then by how often."""
        return self._answer(ask(Store.passages_of_entities, entities, per_entity=per_entity, where=where))

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
        """What `passages_of_entities` says, and how near each of those passages is to a vector."""
        return self._answer(
            ask(
                Store.nearby,
                vector,
                entities,
                per_entity=per_entity,
                keys=keys,
                most=most,
                where=where,
            )
        )

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """What passages mention: what they are about first, then by how often."""
        return self._answer(ask(Store.entities_of_passages, passages, per_passage=per_passage, where=where))

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """Documents by identity."""
        return self._answer(ask(Store.documents, ids, where=where))

    def listed(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = EVERYTHING,
    ) -> tuple[Document, ...]:
        """Documents whose address begins with `under`, by address and identity, from `after` on."""
        return self._answer(ask(Store.listed, under=under, after=after, limit=limit, where=where))

    def passages(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Passages by identity, with their vectors if asked for."""
        return self._answer(ask(Store.passages, ids, where=where, vectors=vectors))

    def sources(self, passages: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """The documents that passages are of, by the identity of the passage."""
        return self._answer(ask(Store.sources, passages, where=where))

    def cosines(
        self, vector: Vector, passages: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, float]:
        """How near these passages are to a vector; those without a vector are left out."""
        return self._answer(ask(Store.cosines, vector, passages, where=where))

    def contributions(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Contribution]:
        """Documents by identity, each with all that it says, as of one moment."""
        return self._answer(ask(Store.contributions, ids, where=where))

    def entities(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Entity]:
        """Entities by identity, described by what the caller may see, with their vectors if asked for."""
        return self._answer(ask(Store.entities, ids, where=where, vectors=vectors))

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, Fact]:
        """Facts by identity, each as its most trusted visible voice has it."""
        return self._answer(ask(Store.facts, ids, statuses=statuses, as_of=as_of, where=where))

    # -- several at once -------------------------------------------------------------------------------

    def together(self, asks: Sequence[Ask[Any]]) -> Sequence[Any]:
        """Answers to several reading verbs, of one version of the collection, in as few round trips as one."""
        return self._retried(lambda: self._reader.answers(asks))

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with every write by anyone."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """How much there is, and the embedding model."""
        return self._answer(ask(Store.statistics))

    def export(self) -> Iterator[Contribution]:
        """Everything, a document at a time, by identity: the same knowledge gives the same stream."""
        with wrapped_errors(self._url), closing(self._server.connect()) as db:
            self._server.begin(db, "begin_reading", self._key)  # a snapshot of its own, however long it takes
            after = reading.FIRST
            while page := driven(reading.exported(self._key, after), partial(server.fetched, db)):
                yield from page
                after = page[-1].document.id

    def close(self) -> None:
        """Let go of every connection."""
        if not self._is_closed:
            self._is_closed = True
            server.give_back(self._server)

    # -- another embedding model -----------------------------------------------------------------------

    def unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Passages, entities and facts that have no vector of this model staged yet."""
        return self._alone(lambda db: reembedding.unembedded(db, self._key, model, limit=limit))

    def stage(self, items: Sequence[Embeddable], *, model: str) -> None:
        """Keep vectors of a model that is not the collection's yet; searches do not see them."""
        with self._writing() as (db, _):
            reembedding.stage(db, self._key, items, model=model)

    def adopt(self, model: str) -> bool:
        """Make the staged vectors the collection's own; False if some are still unembedded."""
        with self._writing() as (db, of):
            is_adopted = reembedding.adopt(db, self._key, model)
        if is_adopted:
            self._index(of.statistics, ())
        return is_adopted

    # -- transactions ----------------------------------------------------------------------------------

    def _answer(self, asked: Ask[Answer]) -> Answer:
        [answer] = self.together([asked])
        told: Answer = answer
        return told

    def _alone(self, read: Callable[[Connection], Answer]) -> Answer:
        """What is read from one snapshot that is held as long as it takes."""

        def reading() -> Answer:
            with server.reading(self._server, self._key) as db:
                return read(db)

        return self._retried(reading)

    def _retried(self, read: Callable[[], Answer]) -> Answer:
        """An answer; once more on another connection, if the first was lost."""
        with wrapped_errors(self._url):
            return server.once_more(self._server, read)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, scoping.Collection]]:
        with wrapped_errors(self._url), server.writing(self._server, self._key) as db:
            yield db, self._collection(db)

    def _collection(self, db: Connection) -> scoping.Collection:
        return scoping.collection(db, self._key, self._name)

    def _ensure_collection(self) -> None:
        with server.writing(self._server, self._key, lock="lock_shared") as db:
            run(db, "ensure_collection", collection=self._key, name=self._name)
            known = self._collection(db).statistics
        self._index(known, ())

    # -- indexes of vectors ----------------------------------------------------------------------------

    def _index(self, before: Statistics, written: Sequence[Contribution]) -> None:
        """Let an index be built, if the collection became too large to do without."""
        passages = before.passages + sum(len(c.passages) for c in written)
        entities = before.entities + sum(len(c.entities) for c in written)
        is_small = passages <= searching.EXACT and entities <= searching.EXACT_NAMES
        if is_small or (self._building and self._building.is_alive()):
            return
        known = self.statistics()
        wanted = indexing.wanted(self._key, known).keys()
        if not wanted <= self._indexed:
            self._indexed |= wanted
            self._building = indexing.build_aside(self._server, self._key, known)
