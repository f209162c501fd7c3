"""One file, many processes: the store on SQLite, through apsw.

One writer at a time and any number of readers (WAL); each thread has its own connection and each verb one
snapshot. This module is the verbs; `sqlite_reading` and `sqlite_writing` carry them out, and SQL is in
`sql/sqlite`. None of it knows how text is embedded or what is done with what is found.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from waylore.store.protocol import NONE
from waylore.store.reads import run_request
from waylore.store.requests import Ask
from waylore.store.sql import load_queries
from waylore.store.sqlite import fetch as reading
from waylore.store.sqlite import file, name_keys, pages
from waylore.store.sqlite import reembed as reembedding
from waylore.store.sqlite import scope as scoping
from waylore.store.sqlite import search as searching
from waylore.store.sqlite import verify as verifying
from waylore.store.sqlite import write as writing
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

SQL = load_queries("waylore.store.sqlite")


class SqliteStore:
    """A collection in a SQLite file."""

    def __init__(self, path: str | Path, collection: str = "default", *, busy_seconds: float = 60.0) -> None:
        self._path = str(path)
        self._name = collection
        self._busy_seconds = busy_seconds
        self._threads = threading.local()
        self._connections: dict[threading.Thread, apsw.Connection] = {}
        self._opening = threading.Lock()
        with file.wrapped_errors(self._path):
            file.prepare(self._connection(), busy_seconds=busy_seconds)
            self._row = file.ensure_collection(self._connection(), collection)

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
        with self._writing() as db:
            if instead_of:
                writing.forget(db, self._name, instead_of)
            changed = writing.write(db, self._name, contributions, model=model)
            writing.keep_fingerprints(db, self._row, fingerprints)
            return changed

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """What these files were when they were last read; those of which a document went since are left out."""
        with self._reading(EVERYTHING) as (db, scope):
            return reading.fingerprints(db, scope, files)

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """What is there of these documents: `Contribution.digest` by identity."""
        with self._reading(EVERYTHING) as (db, scope):
            return reading.digests(db, scope, documents)

    def forget(self, documents: Sequence[str]) -> Receipt:
        """Remove documents with all that nothing else supports, and say what went."""
        with self._writing() as db:
            receipt = writing.forget(db, self._name, documents)
        if receipt.documents:
            with suppress(apsw.Error):  # it is forgotten, and `remains` tells what the log still holds
                pages.checkpoint(self._path, is_emptying=True)
        return receipt

    def remains(self, receipt: Receipt) -> tuple[str, ...]:
        """What is left of what a receipt says went, a line each; reads the whole file."""
        with file.wrapped_errors(self._path), closing(self._open()) as db:
            return verifying.remains(db, self._path, self._row, receipt)

    def compact(self) -> None:
        """Write the file anew, without any byte that belongs to nothing; no one else can write meanwhile."""
        with file.wrapped_errors(self._path), closing(self._open()) as db:
            db.pragma("temp_store", "file")
            db.execute(SQL["vacuum"])
            pages.checkpoint(self._path, is_emptying=True)

    def touch(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count a use of each, as often as it is named; does not change the collection's version."""
        with self._writing() as db:
            writing.touch(db, self._row, "passage", passages, at)
            writing.touch(db, self._row, "fact", facts, at)

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by cosine, best first."""
        with self._reading(where) as (db, scope):
            return searching.dense(db, scope, vector, top_k=top_k)

    def lexical(self, query: str, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Passages by BM25, best first; only those that share a term with the query."""
        with self._reading(where) as (db, scope):
            return searching.lexical(db, scope, query, top_k=top_k)

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = EVERYTHING) -> Ranking:
        """Entities by the cosine of their names, best first."""
        with self._reading(where) as (db, scope):
            return searching.nearest_entities(db, scope, vector, top_k=top_k)

    def entities_by_names(
        self, names: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Entity, ...]]:
        """Entities that have one of these names or aliases; names are normalised before they are compared."""
        with self._reading(where) as (db, scope):
            return reading.entities_by_names(db, scope, names)

    def keyed(
        self, keys: Sequence[str], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[str, ...]]:
        """Entities whose names have one of these keys, by identity."""
        with self._reading(where) as (db, scope):
            return name_keys.keyed(db, scope, keys, most)

    def alike(
        self, asked: Mapping[str, Sequence[str]], *, most: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Alike, ...]]:
        """For each entity that asks with keys, the others whose names have one of them."""
        with self._reading(where) as (db, scope):
            return name_keys.alike(db, scope, asked, most)

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
        with self._reading(where) as (db, scope):
            held = scoping.Held(statuses, as_of)
            return reading.facts_of_entities(db, scope, held, entities, per_entity, predicates)

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
        with self._reading(where) as (db, scope):
            held = scoping.Held(statuses, as_of)
            return reading.facts_of_passages(db, scope, held, passages, per_passage)

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """Where entities are mentioned: their own passages first, then by how often."""
        with self._reading(where) as (db, scope):
            return reading.passages_of_entities(db, scope, entities, per_entity)

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
        with self._reading(where) as (db, scope):
            sharing = name_keys.keyed(db, scope, keys, most).values()
            others = (id_ for ids in sharing if len(ids) <= most for id_ in ids)
            wanted = list(dict.fromkeys([*entities, *others]))
            mentions = reading.passages_of_entities(db, scope, wanted, per_entity)
            passages = list(dict.fromkeys(m.passage_id for ms in mentions.values() for m in ms))
            return mentions, searching.cosines(db, scope, vector, passages)

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = EVERYTHING
    ) -> Mapping[str, tuple[Mention, ...]]:
        """What passages mention: what they are about first, then by how often."""
        with self._reading(where) as (db, scope):
            return reading.entities_of_passages(db, scope, passages, per_passage)

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """Documents by identity."""
        with self._reading(where) as (db, scope):
            return reading.documents(db, scope, ids)

    def listed(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = EVERYTHING,
    ) -> tuple[Document, ...]:
        """Documents whose address begins with `under`, by address and identity, from `after` on."""
        with self._reading(where) as (db, scope):
            return reading.listed(db, scope, under, after, limit)

    def passages(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Passages by identity, with their vectors if asked for."""
        with self._reading(where) as (db, scope):
            return reading.passages(db, scope, ids, vectors=vectors)

    def sources(self, passages: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Document]:
        """The documents that passages are of, by the identity of the passage."""
        with self._reading(where) as (db, scope):
            return reading.sources(db, scope, passages)

    def cosines(
        self, vector: Vector, passages: Sequence[str], *, where: Filter = EVERYTHING
    ) -> Mapping[str, float]:
        """How near these passages are to a vector; those without a vector are left out."""
        with self._reading(where) as (db, scope):
            return searching.cosines(db, scope, vector, passages)

    def contributions(self, ids: Sequence[str], *, where: Filter = EVERYTHING) -> Mapping[str, Contribution]:
        """Documents by identity, each with all that it says, as of one moment."""
        with self._reading(where) as (db, scope):
            return reading.contributions(db, scope, ids)

    def entities(
        self, ids: Sequence[str], *, where: Filter = EVERYTHING, vectors: bool = False
    ) -> Mapping[str, Entity]:
        """Entities by identity, described by what the caller may see, with their vectors if asked for."""
        with self._reading(where) as (db, scope):
            return reading.entities(db, scope, ids, vectors=vectors)

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> Mapping[str, Fact]:
        """Facts by identity, each as its most trusted visible voice has it."""
        with self._reading(where) as (db, scope):
            return reading.facts(db, scope, scoping.Held(statuses, as_of), ids)

    # -- several at once -------------------------------------------------------------------------------

    def together(self, asks: Sequence[Ask[Any]]) -> Sequence[Any]:
        """Answers to several reading verbs: one after another, for nothing is far away."""
        return [run_request(self, each) for each in asks]

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with every write by anyone."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """How much there is, and the embedding model."""
        with file.wrapped_errors(self._path):
            return scoping.collection(self._connection(), self._name).statistics

    def export(self) -> Iterator[Contribution]:
        """Everything, a document at a time, by identity: the same knowledge gives the same stream."""
        with file.wrapped_errors(self._path):
            db = self._open()  # a snapshot of its own, however long the reader takes
            try:
                with db:
                    yield from reading.export(db, self._row)
            finally:
                db.close()

    def close(self) -> None:
        """Let go of every connection."""
        with self._opening:
            for db in self._connections.values():
                db.close()
            self._connections.clear()
            self._threads = threading.local()
        with suppress(apsw.Error):  # what is in the log is safe there
            pages.checkpoint(self._path)

    # -- another embedding model -----------------------------------------------------------------------

    def unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Passages, entities and facts that have no vector of this model staged yet."""
        with self._reading(EVERYTHING) as (db, _):
            return reembedding.unembedded(db, self._row, model, limit=limit)

    def stage(self, items: Sequence[Embeddable], *, model: str) -> None:
        """Keep vectors of a model that is not the collection's yet; searches do not see them."""
        with self._writing() as db:
            reembedding.stage(db, self._row, items, model=model)

    def adopt(self, model: str) -> bool:
        """Make the staged vectors the collection's own; False if some are still unembedded."""
        with self._writing() as db:
            return reembedding.adopt(db, self._row, model)

    # -- connections -----------------------------------------------------------------------------------

    def _connection(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._threads, "db", None)
        if db is None:
            db = self._threads.db = self._open()
            self._threads.scopes = scoping.Scopes(db, self._name)
            with self._opening:
                for ended in [thread for thread in self._connections if not thread.is_alive()]:
                    self._connections.pop(ended).close()
                self._connections[threading.current_thread()] = db
        return db

    def _open(self) -> apsw.Connection:
        return file.connect(self._path, busy_seconds=self._busy_seconds)

    @contextmanager
    def _reading(self, where: Filter) -> Iterator[tuple[apsw.Connection, scoping.Scope]]:
        with file.wrapped_errors(self._path):
            db = self._connection()
            with db:
                yield db, self._threads.scopes.of(where)

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        with file.wrapped_errors(self._path), file.writing(self._connection()) as db:
            yield db
