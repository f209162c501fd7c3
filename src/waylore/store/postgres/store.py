"""The store on a PostgreSQL server, with pgvector, through psycopg.

A collection is a set of rows that no transaction of another collection can see. Writers of a collection queue,
and no other connection waits for them. This module has the methods of the Store protocol.
`reader` runs the reading methods, several in one round trip, `write` runs the writing methods, and `sql/queries.sql`
has their SQL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
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
from waylore.store.postgres.candidates.connect import IndexConnections
from waylore.store.postgres.candidates.feeder import Feeder
from waylore.store.postgres.connections import Connection, translate_errors, watch_connection
from waylore.store.postgres.reader import Reader
from waylore.store.postgres.scope import run
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.protocol import NO_DIGESTS, NO_FINGERPRINTS, QUARANTINE, Store
from waylore.store.reads import drive
from waylore.store.receipts import get_request_id
from waylore.store.requests import ReadRequest, make_request
from waylore.types.audit import AuditEntry, Verb
from waylore.types.author import Author
from waylore.types.columns import FactColumns, MentionColumns, TurnColumns
from waylore.types.knowledge import (
    LIVE,
    Document,
    Embeddable,
    Entity,
    Fact,
    IndexedDocument,
    Passage,
    SimilarEntities,
    Status,
    Vector,
)
from waylore.types.results import DayCounts, Receipt, Statistics, UserCounts
from waylore.types.search import NO_FILTER, Filter, Ranking, TermCounts

Answer = TypeVar("Answer")


class PostgresStore:
    """A collection on a PostgreSQL server.

    `url` is a URL of libpq: `postgresql://user@host/database`. All stores with the same URL share `connections`
    connections. If none is free, a call waits up to `wait_seconds`.
    """

    def __init__(
        self, url: str, collection: str = "default", *, connections: int = 16, wait_seconds: float = 30.0
    ) -> None:
        self._url = url
        self._name = collection
        self._key = scoping.compute_key(collection)
        self._indexed: set[str] = set()
        self._building: Thread | None = None
        self._is_closed = False
        with translate_errors(url):
            self._server = server.borrow_server(url, connections=connections, wait_seconds=wait_seconds)
            try:
                self._indexes = IndexConnections()
                self._reader = Reader(self._server, self._key, collection, self._indexes.search)
                self._feeder = Feeder(self._server, self._key, collection, self._indexes)
                self._ensure_collection()
            except BaseException:
                server.release_server(self._server)
                raise

    # -- writing ---------------------------------------------------------------------------------------

    def write(
        self,
        documents: Sequence[IndexedDocument],
        *,
        author: Author,
        model: str | None,
        fingerprints: Mapping[str, str] = NO_FINGERPRINTS,
        replacing: Sequence[str] = (),
        verb: Verb = "write",
    ) -> int:
        """Write all documents or none, and return how many were new or changed."""
        request = get_request_id()
        with self._transaction() as (db, before):
            if request and writing.find_receipt(db, self._key, request):
                return 0
            if replacing:
                writing.forget(db, before, replacing, author=author)
            into = self._collection(db) if replacing else before
            changed = writing.write(db, into, documents, author=author, model=model, verb=verb)
            writing.store_fingerprints(db, self._key, fingerprints, author=author)
            if request and changed:
                writing.add_receipt(db, self._key, request, Receipt(), author)
        if changed:
            self._build_indexes(before, documents)
        return changed

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """Return the fingerprint of each file as of its last read."""
        return self._answer(make_request(Store.fingerprints, files))

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """Return `IndexedDocument.digest` of each of these documents that is stored."""
        return self._answer(make_request(Store.digests, documents))

    def forget(
        self,
        documents: Sequence[str],
        *,
        author: Author,
        missing: Sequence[str] = (),
        verb: Verb = "forget",
        digests: Mapping[str, str] = NO_DIGESTS,
    ) -> Receipt:
        """Remove documents with everything that no other document supports, and return a receipt."""
        request = get_request_id()
        with self._transaction() as (db, of):
            receipt = writing.find_receipt(db, self._key, request) if request else None
            if receipt is None:
                removed = writing.forget(db, of, documents, author=author, verb=verb, digests=digests)
                receipt = replace(removed, missing=tuple(missing))
                if request and receipt.documents:
                    receipt = writing.add_receipt(db, self._key, request, receipt, author)
        if of.index is None or not receipt.documents:
            return receipt
        return replace(receipt, unconfirmed=self.confirm_removal(receipt))

    def get_receipt(self, request: str, *, author: Author) -> Receipt | None:
        """Return the receipt of a request; None if there is no record of it that the author may read."""
        own = author.identity if author.is_limited else None
        known = self._read_snapshot(lambda db: writing.find_receipt(db, self._key, request, author=own))
        return known and replace(known, unconfirmed=self._feeder.count_unconfirmed(known))

    def audit(self, *, after: int = 0, limit: int = 1_000) -> tuple[AuditEntry, ...]:
        """Return the entries of the audit log after a number, oldest first."""
        return self._read_snapshot(lambda db: writing.read_audit(db, self._key, after, limit))

    def confirm_removal(self, receipt: Receipt) -> int:
        """Remove the items of a receipt from the index now, if there is one. Return how many it has not confirmed."""
        unconfirmed = self._feeder.confirm(receipt)
        self._feeder.start()  # for entities that lost a description
        return unconfirmed

    def find_remains(self, receipt: Receipt) -> tuple[str, ...]:
        """Return one line for each trace of the receipt's items. Reads the whole collection, and asks its index."""
        stored = self._read_snapshot(lambda db: verifying.find_remains(db, self._collection(db), receipt))
        return *stored, *self._feeder.find_remains(receipt)

    def compact(self) -> None:
        """Rewrite all tables without unused bytes. Only their owner may; other connections wait meanwhile."""
        with translate_errors(self._url), closing(self._server.connect_session()) as db:
            verifying.compact(db)

    def count_uses(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count one use for each time that an item is named. The collection's version stays the same."""
        with (
            translate_errors(self._url),
            server.open_transaction(self._server, self._key, lock="lock_shared") as db,
        ):
            writing.count_uses(db, self._key, "passage", passages, at)
            writing.count_uses(db, self._key, "fact", facts, at)

    def most_used(self, *, limit: int, where: Filter = NO_FILTER) -> Ranking:
        """Return the passages that were used most, each with the number of its uses."""
        return self._answer(make_request(Store.most_used, limit=limit, where=where))

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by cosine similarity, best first."""
        return self._answer(make_request(Store.dense, vector, top_k=top_k, where=where))

    def dense_many(self, vectors: Sequence[Vector], *, top_k: int, where: Filter = NO_FILTER) -> Sequence[Ranking]:
        """Find passages for each of several vectors as `dense` does, in one round trip."""
        return self._answer(make_request(Store.dense_many, vectors, top_k=top_k, where=where))

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by BM25, best first. A passage must share a term with the query."""
        return self._answer(make_request(Store.lexical, query, top_k=top_k, where=where))

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find entities by the cosine similarity of their names, best first."""
        return self._answer(make_request(Store.nearest_entities, vector, top_k=top_k, where=where))

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        """Find entities by name or alias. Names are normalised before they are compared."""
        return self._answer(make_request(Store.entities_by_names, names, where=where))

    def find_similar_entities(
        self, keys: Mapping[str, Sequence[str]], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[SimilarEntities, ...]]:
        """Find, for each entity, others whose names have one of its keys."""
        return self._answer(make_request(Store.find_similar_entities, keys, max_per_key=max_per_key, where=where))

    def find_entities_by_key(
        self, keys: Sequence[str], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[str, ...]]:
        """Find the ids of entities by the keys of their names (`waylore.names.keys`)."""
        return self._answer(make_request(Store.find_entities_by_key, keys, max_per_key=max_per_key, where=where))

    def list_entities(
        self,
        *,
        of_type: str = "",
        after: str = "",
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Entity, ...]:
        """Return entities by id, starting after `after`, of a type if one is given."""
        return self._answer(make_request(Store.list_entities, of_type=of_type, after=after, limit=limit, where=where))

    # -- the graph -------------------------------------------------------------------------------------

    def facts_of_entities(
        self,
        entities: Sequence[str],
        *,
        per_entity: int,
        predicates: Sequence[str] = (),
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return facts by subject or object, strongest first."""
        return self._answer(
            make_request(
                Store.facts_of_entities,
                entities,
                per_entity=per_entity,
                predicates=predicates,
                statuses=statuses,
                as_of=as_of,
                where=where,
            )
        )

    def assertions_of_entities(
        self,
        entities: Sequence[str],
        *,
        predicates: Sequence[str],
        newest: int,
        until: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return the newest assertions of each subject and predicate, newest first."""
        return self._answer(
            make_request(
                Store.assertions_of_entities,
                entities,
                predicates=predicates,
                newest=newest,
                until=until,
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
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return the facts and pairs that these passages state, strongest first, each as its passage states it."""
        return self._answer(
            make_request(
                Store.facts_of_passages,
                passages,
                per_passage=per_passage,
                statuses=statuses,
                as_of=as_of,
                where=where,
            )
        )

    def pairs_of_entities(
        self, entities: Sequence[str], *, per_entity: int, passages_per_entity: int, where: Filter = NO_FILTER
    ) -> FactColumns:
        """Return the pairs of entities: first from passages about an entity, then from those that mention it most."""
        limits = {"per_entity": per_entity, "passages_per_entity": passages_per_entity}
        return self._answer(make_request(Store.pairs_of_entities, entities, **limits, where=where))

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the mentions of entities: first in passages about the entity, then by count."""
        return self._answer(make_request(Store.passages_of_entities, entities, per_entity=per_entity, where=where))

    def nearby(
        self,
        vector: Vector,
        entities: Sequence[str],
        *,
        per_entity: int,
        keys: Sequence[str] = (),
        max_per_key: int = 0,
        where: Filter = NO_FILTER,
    ) -> tuple[MentionColumns, Mapping[str, float]]:
        """Return `passages_of_entities`, and the cosine similarity of each of those passages to a vector."""
        return self._answer(
            make_request(
                Store.nearby,
                vector,
                entities,
                per_entity=per_entity,
                keys=keys,
                max_per_key=max_per_key,
                where=where,
            )
        )

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the entities that passages mention: first the passage's subject, then by count."""
        return self._answer(make_request(Store.entities_of_passages, passages, per_passage=per_passage, where=where))

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return documents by id."""
        return self._answer(make_request(Store.documents, ids, where=where))

    def list_documents(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Document, ...]:
        """Return documents whose URI begins with `under`, by URI and id, starting after `after`."""
        return self._answer(make_request(Store.list_documents, under=under, after=after, limit=limit, where=where))

    def list_all_documents(self, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels, expired ones too, by id, starting after `after`."""
        return self._answer(make_request(Store.list_all_documents, after=after, limit=limit))

    def list_expired(self, by: datetime, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels that expired by a time, by id, starting after `after`."""
        return self._answer(make_request(Store.list_expired, by, after=after, limit=limit))

    def passages(
        self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Return passages by id, with their vectors if `vectors` is true."""
        return self._answer(make_request(Store.passages, ids, where=where, vectors=vectors))

    def find_passages(self, beginning: str, *, limit: int = 2, where: Filter = NO_FILTER) -> tuple[str, ...]:
        """Return the ids of passages that begin with these hexadecimal digits, in order."""
        return self._answer(make_request(Store.find_passages, beginning, limit=limit, where=where))

    def sources(self, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return the document of each passage, by the id of the passage."""
        return self._answer(make_request(Store.sources, passages, where=where))

    def cosines(self, vector: Vector, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the cosine similarity of passages to a vector. Passages without a vector are left out."""
        return self._answer(make_request(Store.cosines, vector, passages, where=where))

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the BM25 score of passages, the same as in `lexical`; 0 for one that shares no term with the query."""
        return self._answer(make_request(Store.word_scores, query, passages, where=where))

    def count_terms(self, query: str, *, where: Filter = NO_FILTER) -> TermCounts:
        """Count the caller's passages, and those with each term of the query, as `lexical` does."""
        return self._answer(make_request(Store.count_terms, query, where=where))

    def turns(
        self,
        query: str,
        passages: Sequence[str],
        *,
        before: int,
        after: int,
        same_role: bool = True,
        where: Filter = NO_FILTER,
    ) -> TurnColumns:
        """Return turns with their neighbours of the session and role, and the counts of the terms of a query."""
        return self._answer(
            make_request(Store.turns, query, passages, before=before, after=after, same_role=same_role, where=where)
        )

    def get_indexed_documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, IndexedDocument]:
        """Return documents with all their parts by id, from one snapshot."""
        return self._answer(make_request(Store.get_indexed_documents, ids, where=where))

    def entities(self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False) -> Mapping[str, Entity]:
        """Return entities by id, described by the documents that the caller may see."""
        return self._answer(make_request(Store.entities, ids, where=where, vectors=vectors))

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> Mapping[str, Fact]:
        """Return facts by id, each as the most trusted assertion that the caller may see states it."""
        return self._answer(make_request(Store.facts, ids, statuses=statuses, as_of=as_of, where=where))

    # -- several requests ------------------------------------------------------------------------------

    def read_many(self, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        """Run read requests against one version of the collection, in as few round trips as one needs."""
        return self._retry_if_lost(lambda: self._reader.answer(requests))

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """Return a number that grows with every write, by any process."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """Return the number of items of each kind, and the embedding model."""
        return self._answer(make_request(Store.statistics))

    def has_facts(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a fact of any status. A filter by metadata is not applied."""
        return self._answer(make_request(Store.has_facts, where=where))

    def has_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a turn of a conversation. Only permissions are applied."""
        return self._answer(make_request(Store.has_turns, where=where))

    def has_only_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether all passages that the caller may see are turns of conversations, and there are any."""
        return self._answer(make_request(Store.has_only_turns, where=where))

    def first_expiry(self, *, where: Filter = NO_FILTER) -> datetime | None:
        """Return when the first document that the caller may see expires or has expired; None if none does."""
        return self._answer(make_request(Store.first_expiry, where=where))

    def users(self, *, after: str = "", limit: int = 1_000) -> tuple[UserCounts, ...]:
        """Return the users of the collection with the number of their items, by name, starting after `after`."""
        return self._answer(make_request(Store.users, after=after, limit=limit))

    def growth(self, *, everyone: bool = False, where: Filter = NO_FILTER) -> tuple[DayCounts, ...]:
        """Count documents and passages by the day on which they were recorded."""
        return self._answer(make_request(Store.growth, everyone=everyone, where=where))

    def secret(self) -> bytes:
        """Return 32 random bytes of the collection, which are made once and never exported."""
        [(secret,)] = self._read_snapshot(lambda db: run(db, "secret", collection=self._key).fetchall())
        return bytes(secret)

    def open_quarantine(self) -> "PostgresStore":
        """Open the collection for documents that were taken back from this one."""
        return PostgresStore(self._url, self._name + QUARANTINE)

    def export(self) -> Iterator[IndexedDocument]:
        """Yield every document with all its parts, by id. Equal knowledge gives an equal stream."""
        with translate_errors(self._url), closing(self._server.connect()) as db:
            # It has its own connection and snapshot, for as long as the caller iterates.
            with watch_connection(db):
                self._server.begin(db, "begin_reading", self._key)
                own = self._collection(db).own_vectors
            after = LOWEST_ID
            while page := drive(reading.read_export_page(self._key, own, after), partial(server.fetch_watched, db)):
                yield from page
                after = page[-1].document.id

    def close(self) -> None:
        """Close every connection."""
        if not self._is_closed:
            self._is_closed = True
            self._feeder.close()
            self._indexes.close()
            server.release_server(self._server)

    # -- changing the embedding model ------------------------------------------------------------------

    def list_unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Return passages, entities and facts that have no staged vector of this model."""
        return self._read_snapshot(lambda db: reembedding.list_unembedded(db, self._key, model, limit=limit))

    def stage_vectors(self, items: Sequence[Embeddable], *, author: Author, model: str) -> None:
        """Store vectors of a model that the collection does not use yet. Searches do not see them."""
        author.require_all()
        with self._transaction() as (db, _):
            reembedding.stage_vectors(db, self._key, items, model=model)

    def set_weights(self, weights: str, *, author: Author) -> None:
        """Store weights of the graph search, as JSON, until another model is activated; an empty text removes them."""
        author.require_all()
        with self._transaction() as (db, _):
            run(db, "set_weights", collection=self._key, weights=weights)
            writing.add_entry(db, self._key, "tune", author, ())

    def activate_model(self, model: str, *, author: Author) -> bool:
        """Make the staged vectors the collection's own. Return False if some items have no staged vector."""
        author.require_all()
        with self._transaction() as (db, of):
            is_active = reembedding.activate_model(db, of, model)
            if is_active:
                run(db, "restart_index", collection=self._key, lowest=LOWEST_ID)
                writing.add_entry(db, self._key, "reembed", author, ())
        if is_active:
            self._build_indexes(of, ())
        return is_active

    # -- transactions ----------------------------------------------------------------------------------

    def _answer(self, request: ReadRequest[Answer]) -> Answer:
        [answer] = self.read_many([request])
        result: Answer = answer
        return result

    def _read_snapshot(self, read: Callable[[Connection], Answer]) -> Answer:
        """Run a function on a connection with one snapshot that is held until it returns."""

        def read_once() -> Answer:
            with server.open_snapshot(self._server, self._key) as db:
                return read(db)

        return self._retry_if_lost(read_once)

    def _retry_if_lost(self, read: Callable[[], Answer]) -> Answer:
        """Run a read and return its result. If the connection was lost, run it once again on another one."""
        with translate_errors(self._url):
            return server.retry_if_lost(self._server, read)

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Connection, scoping.PostgresCollection]]:
        with translate_errors(self._url), server.open_transaction(self._server, self._key) as db:
            yield db, self._collection(db)

    def _collection(self, db: Connection) -> scoping.PostgresCollection:
        return scoping.read_collection(db, self._key, self._name)

    def _ensure_collection(self) -> None:
        with server.open_transaction(self._server, self._key, lock="lock_shared") as db:
            run(db, "ensure_collection", collection=self._key, name=self._name)
            known = self._collection(db)
        self._build_indexes(known, ())

    # -- indexes of vectors ----------------------------------------------------------------------------

    def _build_indexes(self, of: scoping.PostgresCollection, written: Sequence[IndexedDocument]) -> None:
        """Feed the index on a Qdrant cluster, or start building one here if the collection has become too large."""
        if of.index:
            self._feeder.start()
            return
        before = of.statistics
        passages = before.passages + sum(len(c.passages) for c in written)
        entities = before.entities + sum(len(c.entities) for c in written)
        is_small = passages <= searching.MAX_EXACT_PASSAGES and entities <= searching.MAX_EXACT_ENTITIES
        if is_small or (self._building and self._building.is_alive()):
            return
        known = self.statistics()
        wanted = indexing.list_wanted(known).keys()
        if not wanted <= self._indexed:
            self._indexed |= wanted
            self._building = indexing.start_building(self._server, self._key, known)
