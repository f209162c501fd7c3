"""The store in a SQLite file, through apsw.

One connection writes at a time, and any number read (WAL). Each thread has its own connection, and each verb
reads one snapshot. This module has the methods of the Store protocol; `fetch`, `search` and `write` run them,
and `sql/queries.sql` has their SQL. The store does not know how text is embedded.
"""

import shutil
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import apsw

from waylore.errors import ArgumentError
from waylore.store.protocol import NO_DIGESTS, NO_FINGERPRINTS, QUARANTINE
from waylore.store.reads import run_request
from waylore.store.receipts import get_request_id
from waylore.store.requests import ReadRequest
from waylore.store.rows import to_expiry
from waylore.store.sql import load_queries
from waylore.store.sqlite import fetch as reading
from waylore.store.sqlite import file, graph, name_keys, pages
from waylore.store.sqlite import reembed as reembedding
from waylore.store.sqlite import scope as scoping
from waylore.store.sqlite import search as searching
from waylore.store.sqlite import verify as verifying
from waylore.store.sqlite import write as writing
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
from waylore.types.search import NO_FILTER, FactFilter, Filter, Ranking, TermCounts

SQL = load_queries("waylore.store.sqlite")
MEMORY = ":memory:"


class SqliteStore:
    """A collection in a SQLite file.

    A file that may not be written can be read. The path `:memory:` names a new temporary file, which `close`
    deletes. `busy_seconds` is how long a write waits for another process to finish writing.
    """

    def __init__(self, path: str | Path, collection: str = "default", *, busy_seconds: float = 60.0) -> None:
        if not str(path):
            raise ArgumentError("path must name a file, such as memory.waylore, got ''")
        self._delete_temporary: Callable[[], object] | None = None
        self._path = self._create_temporary() if str(path) == MEMORY else str(path)
        self._name = collection
        self._busy_seconds = busy_seconds
        self._threads = threading.local()
        self._connections: dict[threading.Thread, apsw.Connection] = {}
        self._opening = threading.Lock()
        self._is_read_only = file.is_read_only(self._path)
        with file.translate_errors(self._path):
            file.prepare(self._connection(), busy_seconds=busy_seconds)
            self._row = file.ensure_collection(self._connection(), collection)

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
        with self._transaction() as db:
            if request and writing.find_receipt(db, self._row, request):
                return 0
            if replacing:
                writing.forget(db, self._name, replacing, author=author)
            changed = writing.write(db, self._name, documents, author=author, model=model, verb=verb)
            writing.store_fingerprints(db, self._row, fingerprints, author=author)
            if request and changed:
                writing.add_receipt(db, self._row, request, Receipt(), author)
            return changed

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """Return the fingerprint of each file as of its last read."""
        with self._snapshot(NO_FILTER) as (db, scope):
            return reading.fingerprints(db, scope, files)

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """Return `IndexedDocument.digest` of each of these documents that is stored."""
        with self._snapshot(NO_FILTER) as (db, scope):
            return reading.digests(db, scope, documents)

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
        with self._transaction() as db:
            known = writing.find_receipt(db, self._row, request) if request else None
            if known is not None:
                return known
            removed = writing.forget(db, self._name, documents, author=author, verb=verb, digests=digests)
            receipt = replace(removed, missing=tuple(missing))
            if request and receipt.documents:
                receipt = writing.add_receipt(db, self._row, request, receipt, author)
        if receipt.documents:
            with suppress(apsw.Error):  # the documents are removed; `find_remains` reports copies in the log
                pages.checkpoint(self._path, truncate_log=True)
        return receipt

    def get_receipt(self, request: str, *, author: Author) -> Receipt | None:
        """Return the receipt of a request; None if there is no record of it that the author may read."""
        own = author.identity if author.is_limited else None
        with self._snapshot(NO_FILTER) as (db, _):
            return writing.find_receipt(db, self._row, request, author=own)

    def audit(self, *, after: int = 0, limit: int = 1_000) -> tuple[AuditEntry, ...]:
        """Return the entries of the audit log after a number, oldest first."""
        with self._snapshot(NO_FILTER) as (db, _):
            return writing.read_audit(db, self._row, after, limit)

    def confirm_removal(self, receipt: Receipt) -> int:  # noqa: ARG002 (a file has no other index)
        """Return 0: everything is in the file."""
        return 0

    def find_remains(self, receipt: Receipt) -> tuple[str, ...]:
        """Return one line for each trace of the receipt's items. Reads the whole file."""
        with file.translate_errors(self._path), closing(self._open()) as db:
            return verifying.find_remains(db, self._path, self._row, receipt)

    def compact(self) -> None:
        """Rewrite the file without unused bytes. No other connection can write meanwhile.

        A file without checksums gets them if no other connection is open.
        """
        with file.translate_errors(self._path):
            db = self._connection()
            file.check_writable(db)
            if not pages.add_checksums(db, busy_seconds=self._busy_seconds):
                pages.rewrite(db)
                pages.checkpoint(self._path, truncate_log=True)

    def count_uses(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count one use for each time that an item is named; in a read-only file count none.

        The collection's version stays the same.
        """
        if self._is_read_only:
            return
        with self._transaction() as db:
            writing.count_uses(db, self._row, passages=passages, facts=facts, at=at)

    def most_used(self, *, limit: int, where: Filter = NO_FILTER) -> Ranking:
        """Return the passages that were used most, each with the number of its uses."""
        with self._snapshot(where) as (db, scope):
            return reading.most_used(db, scope, limit)

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by cosine similarity, best first."""
        with self._snapshot(where) as (db, scope):
            return searching.dense(db, scope, vector, top_k=top_k)

    def dense_many(self, vectors: Sequence[Vector], *, top_k: int, where: Filter = NO_FILTER) -> Sequence[Ranking]:
        """Find passages for each of several vectors as `dense` does, in one scan."""
        with self._snapshot(where) as (db, scope):
            return searching.dense_many(db, scope, vectors, top_k=top_k)

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by BM25, best first. A passage must share a term with the query."""
        with self._snapshot(where) as (db, scope):
            return searching.lexical(db, scope, query, top_k=top_k)

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find entities by the cosine similarity of their names, best first."""
        with self._snapshot(where) as (db, scope):
            return searching.nearest_entities(db, scope, vector, top_k=top_k)

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        """Find entities by name or alias. Names are normalised before they are compared."""
        with self._snapshot(where) as (db, scope):
            return reading.entities_by_names(db, scope, names)

    def find_entities_by_key(
        self, keys: Sequence[str], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[str, ...]]:
        """Find the ids of entities by the keys of their names (`waylore.names.keys`)."""
        with self._snapshot(where) as (db, scope):
            return name_keys.find_entities_by_key(db, scope, keys, max_per_key)

    def find_similar_entities(
        self, keys: Mapping[str, Sequence[str]], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[SimilarEntities, ...]]:
        """Find, for each entity, others whose names have one of its keys."""
        with self._snapshot(where) as (db, scope):
            return name_keys.find_similar_entities(db, scope, keys, max_per_key)

    def list_entities(
        self,
        *,
        of_type: str = "",
        after: str = "",
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Entity, ...]:
        """Return entities by id, starting after `after`, of a type if one is given."""
        with self._snapshot(where) as (db, scope):
            return reading.list_entities(db, scope, of_type, after, limit)

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
        with self._snapshot(where) as (db, scope):
            facts = FactFilter(statuses, as_of)
            return graph.facts_of_entities(db, scope, facts, entities, per_entity, predicates)

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
        with self._snapshot(where) as (db, scope):
            return graph.assertions_of_entities(db, scope, entities, predicates, newest, until)

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
        with self._snapshot(where) as (db, scope):
            facts = FactFilter(statuses, as_of)
            return graph.facts_of_passages(db, scope, facts, passages, per_passage)

    def pairs_of_entities(
        self, entities: Sequence[str], *, per_entity: int, passages_per_entity: int, where: Filter = NO_FILTER
    ) -> FactColumns:
        """Return the pairs of entities: first from passages about an entity, then from those that mention it most."""
        with self._snapshot(where) as (db, scope):
            return graph.pairs_of_entities(db, scope, entities, per_entity, passages_per_entity)

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the mentions of entities: first in passages about the entity, then by count."""
        with self._snapshot(where) as (db, scope):
            return graph.passages_of_entities(db, scope, entities, per_entity)[0]

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
        with self._snapshot(where) as (db, scope):
            sharing = name_keys.find_entities_by_key(db, scope, keys, max_per_key).values()
            others = (id_ for ids in sharing if len(ids) <= max_per_key for id_ in ids)
            wanted = list(dict.fromkeys([*entities, *others]))
            mentions, passages = graph.passages_of_entities(db, scope, wanted, per_entity)
            return mentions, searching.cosines_of_rows(db, scope, vector, passages)

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the entities that passages mention: first the passage's subject, then by count."""
        with self._snapshot(where) as (db, scope):
            return graph.entities_of_passages(db, scope, passages, per_passage)

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return documents by id."""
        with self._snapshot(where) as (db, scope):
            return reading.documents(db, scope, ids)

    def list_documents(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Document, ...]:
        """Return documents whose URI begins with `under`, by URI and id, starting after `after`."""
        with self._snapshot(where) as (db, scope):
            return reading.list_documents(db, scope, under, after, limit)

    def list_all_documents(self, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels, expired ones too, by id, starting after `after`."""
        with self._snapshot(NO_FILTER) as (db, scope):
            return reading.list_all_documents(db, scope, after, limit)

    def list_expired(self, by: datetime, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels that expired by a time, by id, starting after `after`."""
        with self._snapshot(NO_FILTER) as (db, scope):
            return reading.list_expired(db, scope, by, after, limit)

    def passages(
        self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Return passages by id, with their vectors if `vectors` is true."""
        with self._snapshot(where) as (db, scope):
            return reading.passages(db, scope, ids, vectors=vectors)

    def find_passages(self, beginning: str, *, limit: int = 2, where: Filter = NO_FILTER) -> tuple[str, ...]:
        """Return the ids of passages that begin with these hexadecimal digits, in order."""
        with self._snapshot(where) as (db, scope):
            return reading.find_passages(db, scope, beginning, limit)

    def sources(self, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return the document of each passage, by the id of the passage."""
        with self._snapshot(where) as (db, scope):
            return reading.sources(db, scope, passages)

    def cosines(self, vector: Vector, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the cosine similarity of passages to a vector. Passages without a vector are left out."""
        with self._snapshot(where) as (db, scope):
            return searching.cosines(db, scope, vector, passages)

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the BM25 score of passages, the same as in `lexical`; 0 for one that shares no term with the query."""
        with self._snapshot(where) as (db, scope):
            return searching.word_scores(db, scope, query, passages)

    def count_terms(self, query: str, *, where: Filter = NO_FILTER) -> TermCounts:
        """Count the caller's passages, and those with each term of the query, as `lexical` does."""
        with self._snapshot(where) as (db, scope):
            return searching.count_terms(db, scope, query)

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
        with self._snapshot(where) as (db, scope):
            return searching.turns(db, scope, query, passages, before=before, after=after, same_role=same_role)

    def get_indexed_documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, IndexedDocument]:
        """Return documents with all their parts by id, from one snapshot."""
        with self._snapshot(where) as (db, scope):
            return reading.get_indexed_documents(db, scope, ids)

    def entities(self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False) -> Mapping[str, Entity]:
        """Return entities by id, described by the documents that the caller may see."""
        with self._snapshot(where) as (db, scope):
            return reading.entities(db, scope, ids, vectors=vectors)

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> Mapping[str, Fact]:
        """Return facts by id, each as the most trusted assertion that the caller may see states it."""
        with self._snapshot(where) as (db, scope):
            return graph.facts(db, scope, FactFilter(statuses, as_of), ids)

    # -- several requests ------------------------------------------------------------------------------

    def read_many(self, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        """Run read requests one after another on one snapshot. A local file has no round trips."""
        with self._snapshot(NO_FILTER):
            return [run_request(self, request) for request in requests]

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """Return a number that grows with every write, by any process."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """Return the number of items of each kind, and the embedding model."""
        with file.translate_errors(self._path):
            return scoping.read_collection(self._connection(), self._name).statistics

    def has_facts(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a fact of any status. A filter by metadata is not applied."""
        with self._snapshot(where) as (_, scope):
            return scope.has_facts

    def has_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a turn of a conversation. Only permissions are applied."""
        with self._snapshot(where) as (_, scope):
            return scope.has_turns

    def has_only_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether all passages that the caller may see are turns of conversations, and there are any."""
        with self._snapshot(where) as (_, scope):
            return scope.has_only_turns

    def first_expiry(self, *, where: Filter = NO_FILTER) -> datetime | None:
        """Return when the first document that the caller may see expires or has expired; None if none does."""
        with self._snapshot(where) as (_, scope):
            return to_expiry(scope.first_expiry)

    def users(self, *, after: str = "", limit: int = 1_000) -> tuple[UserCounts, ...]:
        """Return the users of the collection with the number of their items, by name, starting after `after`."""
        with self._snapshot(NO_FILTER) as (db, scope):
            return reading.users(db, scope, after, limit)

    def growth(self, *, everyone: bool = False, where: Filter = NO_FILTER) -> tuple[DayCounts, ...]:
        """Count documents and passages by the day on which they were recorded."""
        with self._snapshot(where) as (db, scope):
            return reading.growth(db, scope, everyone)

    def secret(self) -> bytes:
        """Return 32 random bytes of the collection, which are made once and never exported."""
        with file.translate_errors(self._path):
            return bytes(self._connection().execute(SQL["secret"], {"collection": self._row}).get)

    def open_quarantine(self) -> "SqliteStore":
        """Open the collection for documents that were taken back from this one."""
        return SqliteStore(self._path, self._name + QUARANTINE, busy_seconds=self._busy_seconds)

    def export(self) -> Iterator[IndexedDocument]:
        """Yield every document with all its parts, by id. Equal knowledge gives an equal stream."""
        with file.translate_errors(self._path):
            db = self._open()  # its own snapshot, for as long as the caller iterates
            try:
                with db:
                    yield from reading.export(db, self._row)
            finally:
                db.close()

    def close(self) -> None:
        """Close every connection."""
        with self._opening:
            for db in self._connections.values():
                db.close()
            self._connections.clear()
            self._threads = threading.local()
        if not self._is_read_only:
            with suppress(apsw.Error):  # pages in the log are safe there
                pages.checkpoint(self._path)
        if self._delete_temporary is not None:
            self._delete_temporary()

    # -- changing the embedding model ------------------------------------------------------------------

    def list_unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Return passages, entities and facts that have no staged vector of this model."""
        with self._snapshot(NO_FILTER) as (db, _):
            return reembedding.list_unembedded(db, self._row, model, limit=limit)

    def stage_vectors(self, items: Sequence[Embeddable], *, author: Author, model: str) -> None:
        """Store vectors of a model that the collection does not use yet. Searches do not see them."""
        author.require_all()
        with self._transaction() as db:
            reembedding.stage_vectors(db, self._row, items, model=model)

    def set_weights(self, weights: str, *, author: Author) -> None:
        """Store weights of the graph search, as JSON, until another model is activated; an empty text removes them."""
        author.require_all()
        with self._transaction() as db:
            db.execute(SQL["set_weights"], {"collection": self._row, "weights": weights})
            writing.add_entry(db, self._row, "tune", author, ())

    def activate_model(self, model: str, *, author: Author) -> bool:
        """Make the staged vectors the collection's own. Return False if some items have no staged vector."""
        author.require_all()
        with self._transaction() as db:
            is_active = reembedding.activate_model(db, self._row, model)
            if is_active:
                writing.add_entry(db, self._row, "reembed", author, ())
            return is_active

    # -- connections -----------------------------------------------------------------------------------

    def _connection(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._threads, "db", None)
        stamp = file.read_stamp(self._path) if self._is_read_only else ()
        if db is None or stamp != self._threads.stamp:  # a read-only connection may not notice a writer
            if db is not None:
                db.close()
            db = self._threads.db = self._open()
            self._threads.stamp = stamp
            self._threads.scopes = scoping.ScopeCache(db, self._name)
            with self._opening:
                for ended in [thread for thread in self._connections if not thread.is_alive()]:
                    self._connections.pop(ended).close()
                self._connections[threading.current_thread()] = db
        return db

    def _create_temporary(self) -> str:
        """Create a folder for a temporary file, which is deleted with this object at the latest."""
        folder = mkdtemp(prefix="waylore-")
        self._delete_temporary = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return str(Path(folder) / "memory.waylore")

    def _open(self) -> apsw.Connection:
        return file.connect(self._path, busy_seconds=self._busy_seconds, read_only=self._is_read_only)

    def _snapshot(self, where: Filter) -> AbstractContextManager[tuple[apsw.Connection, scoping.SqliteScope]]:
        """Return a snapshot to read, that of `read_many` if it is running, which also translates errors."""
        db: apsw.Connection | None = getattr(self._threads, "db", None)
        if db is not None and db.in_transaction:
            return nullcontext((db, self._threads.scopes.get(where)))
        return self._begin_snapshot(where)

    @contextmanager
    def _begin_snapshot(self, where: Filter) -> Iterator[tuple[apsw.Connection, scoping.SqliteScope]]:
        with file.translate_errors(self._path), self._connection() as db:
            self._threads.scopes.refresh()
            yield db, self._threads.scopes.get(where)

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with (
            file.translate_errors(self._path),
            file.open_transaction(self._connection(), busy_seconds=self._busy_seconds) as db,
        ):
            yield db
