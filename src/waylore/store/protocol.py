"""The Store protocol: the methods that Waylore needs from a database.

A store is the view of one collection. Every method takes and returns batches of domain types; facts and mentions of
many items come as columns (`types.columns`), which make an object when it is looked up. Every reading method takes a
`Filter` and applies it inside the query: items that the caller may not see are not counted, ranked or cut off. Only
expired documents count until they are forgotten: in the frequencies of words and the numbers of mentions.
Results have a fixed order, and ties are broken by id, so that equal rows give equal answers on every engine. Only
`dense` and `nearest_entities` (which scan bits on SQLite), `list_entities` (of a rare type), `most_used`, `growth`,
`export`, `activate_model`, `find_remains` and `compact` may take time in proportion to the collection.
`waylore.testing.StoreConformance` tests this protocol.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from waylore.store.requests import ReadRequest
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

NO_FINGERPRINTS: Mapping[str, str] = MappingProxyType({})
NO_DIGESTS: Mapping[str, str] = MappingProxyType({})
QUARANTINE = "~quarantine"  # ends the name of the collection that a collection has for documents that were taken back


class Store(Protocol):
    """One collection of a database: writing, searching, reading the graph, fetching by id."""

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
        """Write all documents or none, and return how many were new or changed.

        `checks.admit_documents` sets labels and sources that `author` may write. If the author may not change a
        stored document that would be replaced or removed, or whose file gets a fingerprint, Forbidden is raised. Its
        labels are read inside the transaction. A document that is stored already is replaced, or left
        unchanged if its digest is the same. `model` names the model that made the vectors; None means that there
        are no vectors. ModelMismatch is raised if the collection has another model. The documents named in
        `replacing` are removed in the same transaction. `fingerprints` belong to the files whose documents
        were read. `verb` names the change in the audit log; `release` replaces no document that is stored already.
        """
        ...

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """Return the fingerprint of each file as of its last read.

        A file is missing from the result if one of its documents was removed since.
        """
        ...

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """Return `IndexedDocument.digest` of each of these documents that is stored."""
        ...

    def forget(
        self,
        documents: Sequence[str],
        *,
        author: Author,
        missing: Sequence[str] = (),
        verb: Verb = "forget",
        digests: Mapping[str, str] = NO_DIGESTS,
    ) -> Receipt:
        """Remove documents with everything that no other document supports, and return a receipt.

        Forbidden is raised, and nothing removed, if `author` may not change one of them. `missing` are ids of requested
        documents that do not exist; the receipt lists them. `verb` names the change in the audit log. A document with
        another digest than that of `digests` is not removed.
        """
        ...

    def get_receipt(self, request: str, *, author: Author) -> Receipt | None:
        """Return the receipt of a request; None if there is no record of it that the author may read.

        An author with labels may read the records of its own requests, an author without labels all.

        Within `receipts.record_as(request)` a write stores such a record in its own transaction. If the store
        has a record of the request already, `write` and `forget` change nothing, and `forget` returns it.
        """
        ...

    def audit(self, *, after: int = 0, limit: int = 1_000) -> tuple[AuditEntry, ...]:
        """Return the entries of the audit log after a number, oldest first. -5 is the number before the newest five."""
        ...

    def confirm_removal(self, receipt: Receipt) -> int:
        """Remove the items of a receipt from a search index outside of the store now, if there is one.

        Return how many items that index has not confirmed as removed. `forget` does this itself.
        """
        ...

    def find_remains(self, receipt: Receipt) -> tuple[str, ...]:
        """Return one line for each trace of the receipt's items that is still stored.

        An empty tuple proves that they are gone. Every table and index is searched, and every other place in
        which the engine may leave deleted bytes.
        """
        ...

    def compact(self) -> None:
        """Rewrite the store without unused bytes. Takes as long as copying the whole store."""
        ...

    def count_uses(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count one use for each time that an item is named. The collection's version stays the same.

        It takes no author, because it counts only items that a caller has just read.
        """
        ...

    def most_used(self, *, limit: int, where: Filter = NO_FILTER) -> Ranking:
        """Return the passages that were used most, each with the number of its uses. Reads all counts."""
        ...

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by cosine similarity, best first."""
        ...

    def dense_many(self, vectors: Sequence[Vector], *, top_k: int, where: Filter = NO_FILTER) -> Sequence[Ranking]:
        """Find passages for each of several vectors as `dense` does, in one scan, and the best few of each only."""
        ...

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by BM25, best first. A passage must share a term with the query."""
        ...

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find entities by the cosine similarity of their names, best first."""
        ...

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        """Find entities by name or alias. Names are normalised before they are compared."""
        ...

    def find_entities_by_key(
        self, keys: Sequence[str], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[str, ...]]:
        """Find the ids of entities by the keys of their names (`waylore.names.keys`).

        If more than `max_per_key` entities share a key, more than `max_per_key` of them are returned; which ones is
        not defined.
        """
        ...

    def find_similar_entities(
        self, keys: Mapping[str, Sequence[str]], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[SimilarEntities, ...]]:
        """Find, for each entity, others whose names have one of its keys.

        `keys` maps an entity to the keys that similar names have (`waylore.names.list_matching_keys`). A key
        that more than `max_per_key` others share is not significant and finds none of them.
        """
        ...

    def list_entities(
        self, *, of_type: str = "", after: str = "", limit: int = 1_000, where: Filter = NO_FILTER
    ) -> tuple[Entity, ...]:
        """Return entities by id, starting after `after`: all, or those that a visible document describes with a type.

        Types are compared without regard to the case of Latin letters.
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
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return facts by subject or object, strongest first.

        Each fact is returned as the most trusted assertion that the caller may see states it.
        """
        ...

    def assertions_of_entities(
        self,
        entities: Sequence[str],
        *,
        predicates: Sequence[str],
        newest: int,
        until: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return the newest assertions of each subject and predicate, newest first, by the id of the subject.

        An assertion began at its `valid_from`, else when its passage was said, else when it was recorded; ties are
        broken by the ids of passage and fact. At most `newest` are returned for each subject and predicate, and none
        that began after `until`. Retracted assertions are left out, and so are all of a fact that the most trusted
        visible assertion retracts.
        """
        ...

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
        ...

    def pairs_of_entities(
        self, entities: Sequence[str], *, per_entity: int, passages_per_entity: int, where: Filter = NO_FILTER
    ) -> FactColumns:
        """Return the pairs of entities: first from passages about each entity, then from passages that mention it most.

        Only the first `passages_per_entity` passages are read. A pair has an entity as its subject or object.
        """
        ...

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the mentions of entities: first in passages about the entity, then by count."""
        ...

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
        """Return `passages_of_entities`, and the cosine similarity of each of those passages to a vector.

        Entities whose names have one of `keys` are included, if no more than `max_per_key` entities share that
        key.
        """
        ...

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the entities that passages mention: first the passage's subject, then by count."""
        ...

    # -- fetching; unknown and invisible ids are left out ----------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return documents by id."""
        ...

    def list_documents(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Document, ...]:
        """Return documents whose URI begins with `under`, by URI and id, starting after `after`."""
        ...

    def list_all_documents(self, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels, expired ones too, by id, starting after `after`.

        It is for calls about the whole collection, which only an author without limits may make.
        """
        ...

    def list_expired(self, by: datetime, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels that expired by a time, by id, starting after `after`.

        It is for forgetting them, and `forget` checks the author.
        """
        ...

    def passages(
        self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Return passages by id, with their vectors if `vectors` is true."""
        ...

    def find_passages(self, beginning: str, *, limit: int = 2, where: Filter = NO_FILTER) -> tuple[str, ...]:
        """Return the ids of passages that begin with these hexadecimal digits, in order; none for other characters."""
        ...

    def sources(self, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return the document of each passage, by the id of the passage."""
        ...

    def cosines(self, vector: Vector, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the cosine similarity of passages to a vector. Passages without a vector are left out."""
        ...

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the BM25 score of passages, the same as in `lexical`; 0 for one that shares no term with the query."""
        ...

    def count_terms(self, query: str, *, where: Filter = NO_FILTER) -> TermCounts:
        """Count the caller's passages, and those with each term of the query, as `lexical` does.

        Terms of no passage are left out. Other filters than permissions are not applied.
        """
        ...

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
        """Return those of `passages` that are turns, and their neighbours: the turns before and after of the session.

        Neighbours have the same role, or any if `same_role` is false. Turns that the caller may not see, or that the
        filter leaves out, do not count. The columns also have the terms of the query, and the number of the caller's
        passages with each, as `lexical` counts them.
        """
        ...

    def get_indexed_documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, IndexedDocument]:
        """Return documents with all their parts by id, from one snapshot."""
        ...

    def entities(self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False) -> Mapping[str, Entity]:
        """Return entities by id, described by the documents that the caller may see.

        Their vectors are included if `vectors` is true.
        """
        ...

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> Mapping[str, Fact]:
        """Return facts by id, each as the most trusted assertion that the caller may see states it."""
        ...

    # -- several requests ------------------------------------------------------------------------------

    def read_many(self, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        """Run read requests and return their results in order, on a server in one round trip if possible."""
        ...

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """Return a number that grows with every write, by any process."""
        ...

    def statistics(self) -> Statistics:
        """Return the number of items of each kind, and the embedding model."""
        ...

    def has_facts(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a fact of any status. A filter by metadata is not applied."""
        ...

    def has_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a turn of a conversation. Only permissions are applied."""
        ...

    def has_only_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether all passages that the caller may see are turns of conversations, and there are any.

        Other filters than permissions are not applied.
        """
        ...

    def first_expiry(self, *, where: Filter = NO_FILTER) -> datetime | None:
        """Return when the first document that the caller may see expires or has expired; None if none does.

        Until then, equal questions have equal answers. Other filters than permissions are not applied.
        """
        ...

    def users(self, *, after: str = "", limit: int = 1_000) -> tuple[UserCounts, ...]:
        """Return the users of the collection with the number of their items, by name, starting after `after`.

        Documents without a user are not counted. It takes no filter: only callers who may read everything may see it.
        """
        ...

    def growth(self, *, everyone: bool = False, where: Filter = NO_FILTER) -> tuple[DayCounts, ...]:
        """Count the documents that the caller may see, and their passages, by the day (UTC) of their recording.

        Days without documents are left out. With `everyone` all documents count, also those of users and expired ones;
        only callers who may read everything may see that.
        """
        ...

    def secret(self) -> bytes:
        """Return 32 random bytes of the collection, which are made once and never exported."""
        ...

    def open_quarantine(self) -> "Store":
        """Open the collection for documents that were taken back from this one, and create it if it does not exist.

        Its name is that of this collection and `QUARANTINE`. No other method reads it. The caller closes it.
        """
        ...

    def export(self) -> Iterator[IndexedDocument]:
        """Yield every document with all its parts, by id. Equal knowledge gives an equal stream.

        `write` accepts the documents that `export` yields.
        """
        ...

    def close(self) -> None:
        """Close every connection."""
        ...

    # -- changing the embedding model: stage vectors in any number of calls, then activate the model -----

    def list_unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Return passages, entities and facts that have no staged vector of this model."""
        ...

    def stage_vectors(self, items: Sequence[Embeddable], *, author: Author, model: str) -> None:
        """Store vectors of a model that the collection does not use yet. Searches do not see them.

        Forbidden is raised if `author` is limited, here and in `activate_model`.
        """
        ...

    def set_weights(self, weights: str, *, author: Author) -> None:
        """Store weights of the graph search, as JSON, until another model is activated; an empty text removes them.

        Forbidden is raised if `author` is limited.
        """
        ...

    def activate_model(self, model: str, *, author: Author) -> bool:
        """Make the staged vectors the collection's own. Return False if some items have no staged vector."""
        ...


def read_whole_documents(store: Store, of_users: Mapping[str, Sequence[str]]) -> dict[str, IndexedDocument]:
    """Return documents by id with all their parts. `of_users` has their ids by user, because a filter has one user."""
    read = (store.get_indexed_documents(ids, where=Filter(user=user)) for user, ids in of_users.items())
    return {id_: indexed for found in read for id_, indexed in found.items()}
