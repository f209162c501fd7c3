"""The Store protocol over several stores: one collection in any cell, or several collections searched as one.

Reading methods read every collection at once and merge the answers (`merge.py`). Ids are the same in every
cell, so a walk through the graph continues from one cell to another. Writing methods write one collection: the
only one, or the one marked with `+`. This module maps the methods of the protocol to reads and writes;
`members.py` runs them. It knows only the Store protocol and the catalogue, no databases and no files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from waylore.cells.catalogue.protocol import CollectionPlacement
from waylore.cells.facts import read_assertions, read_facts, read_facts_of_entities, read_facts_of_passages
from waylore.cells.members import Federation, Members, StoreCall
from waylore.cells.merge import (
    add_term_counts,
    merge_by_id,
    merge_documents,
    merge_entities,
    merge_exports,
    merge_growth,
    merge_ids,
    merge_mentions,
    merge_nearby,
    merge_pairs,
    merge_rankings,
    merge_receipts,
    merge_statistics,
    merge_users,
    take_best,
    take_first,
)
from waylore.errors import ConfigError, NotFound
from waylore.store import similar_names
from waylore.store.partial import partial_answers
from waylore.store.protocol import NO_DIGESTS, NO_FINGERPRINTS, QUARANTINE, Store
from waylore.store.reads import run_request
from waylore.store.requests import ReadRequest, make_request
from waylore.types.audit import AuditEntry, Verb
from waylore.types.author import Author
from waylore.types.columns import FactColumns, MentionColumns, TurnColumns, merge_turns
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

T = TypeVar("T")
ALL, SEPARATOR, WRITE_MARK = "*", ",", "+"  # marks in the names of collections that are opened together


def open_federated(
    federation: Federation, collections: str, *, on_close: Callable[[], None] = lambda: None
) -> "FederatedStore":
    """Open one collection, or several as one store. A single or marked collection is created if it is new.

    collections: a name, several names (`team,library`), or `*` for all. `+team,*` reads all and writes team.
    on_close: called after the store was closed.
    """
    names = [name.strip() for name in collections.split(SEPARATOR)]
    is_one = len(names) == 1 and names != [ALL]
    written = [name.removeprefix(WRITE_MARK) for name in names if is_one or name.startswith(WRITE_MARK)]
    if len(written) > 1:
        raise ConfigError(
            f"{' and '.join(written)} are marked for writing, but only one collection can be written; "
            f"mark one of them with {WRITE_MARK}"
        )
    for name in written:
        federation.place(name)
    named = sorted({name.removeprefix(WRITE_MARK) for name in names} - {ALL})
    unknown = set(named) - federation.catalogue.find_placements(named).keys()
    if unknown:
        raise NotFound(f"no collection {', '.join(sorted(unknown))}; open it alone to create it")
    members = Members(federation, None if ALL in names else named, "".join(written))
    return FederatedStore(members, on_close)


class FederatedStore:
    """Collections in cells, as one store."""

    def __init__(self, members: Members, on_close: Callable[[], None] = lambda: None) -> None:
        self._members = members
        self._on_close = on_close

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
        """Write all documents or none. Return how many were new or changed."""
        return self._members.write(
            lambda s: s.write(
                documents, author=author, model=model, fingerprints=fingerprints, replacing=replacing, verb=verb
            ),
            combine=max,
            undo=lambda store: store.forget([c.document.id for c in documents], author=author),
        )

    def fingerprints(self, files: Sequence[str]) -> Mapping[str, str]:
        """Return the fingerprint of each file at its last read, from the written collection if it exists."""
        return self._read(lambda _, s: s.fingerprints(files), take_first, only=self._members.written)

    def digests(self, documents: Sequence[str]) -> Mapping[str, str]:
        """Return the digest of each stored document, from the written collection if there is one."""
        return self._read(lambda _, s: s.digests(documents), take_first, only=self._members.written)

    def forget(
        self,
        documents: Sequence[str],
        *,
        author: Author,
        missing: Sequence[str] = (),
        verb: Verb = "forget",
        digests: Mapping[str, str] = NO_DIGESTS,
    ) -> Receipt:
        """Remove documents with everything that no other document supports. Return a receipt."""
        return self._members.write(
            lambda s: s.forget(documents, author=author, missing=missing, verb=verb, digests=digests),
            combine=merge_receipts,
        )

    def get_receipt(self, request: str, *, author: Author) -> Receipt | None:
        """Return the receipt of a request, from the written collection. A move does not copy receipts."""
        return self._members.write(lambda s: s.get_receipt(request, author=author), combine=_take_last)

    def audit(self, *, after: int = 0, limit: int = 1_000) -> tuple[AuditEntry, ...]:
        """Return the audit log of the written collection. A move does not copy it."""
        return self._members.write(lambda s: s.audit(after=after, limit=limit), combine=_take_last)

    def confirm_removal(self, receipt: Receipt) -> int:
        """Remove the items of a receipt from the search index of the written collection. Return how many remain."""
        return self._members.write(lambda s: s.confirm_removal(receipt), combine=_take_last)

    def find_remains(self, receipt: Receipt) -> tuple[str, ...]:
        """Return one line for each trace of the receipt's items that is still stored."""
        return self._members.write(lambda s: s.find_remains(receipt), combine=_take_last)

    def compact(self) -> None:
        """Rewrite the written collection's store without unused bytes."""
        self._members.write(lambda s: s.compact(), combine=_take_last)

    def count_uses(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        """Count a use of each item in every collection that has it. Cells that do not answer are skipped."""
        with partial_answers():
            self._members.read_all(lambda _, s: s.count_uses(passages=passages, facts=facts, at=at), attempts=1)

    def most_used(self, *, limit: int, where: Filter = NO_FILTER) -> Ranking:
        """Return the passages that were used most, each with the number of its uses."""
        return self._rank(lambda _, s: s.most_used(limit=limit, where=where), limit)

    # -- searching -------------------------------------------------------------------------------------

    def dense(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by cosine similarity, best first."""
        return self._rank(lambda _, s: s.dense(vector, top_k=top_k, where=where), top_k)

    def dense_many(self, vectors: Sequence[Vector], *, top_k: int, where: Filter = NO_FILTER) -> Sequence[Ranking]:
        """Find passages for each of several vectors, like `dense`."""
        merge = partial(merge_rankings, top_k=top_k)
        return self._read(
            lambda _, s: s.dense_many(vectors, top_k=top_k, where=where),
            lambda answers: [merge(of_one) for of_one in zip(*answers, strict=True)],
        )

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find passages by BM25, best first, each scored by the statistics of its own collection."""
        return self._rank(lambda _, s: s.lexical(query, top_k=top_k, where=where), top_k)

    def nearest_entities(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        """Find entities by the cosine similarity of their names, best first."""
        return self._rank(lambda _, s: s.nearest_entities(vector, top_k=top_k, where=where), top_k)

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        """Find entities by name or alias. Names are normalised before they are compared."""
        if self._members.is_one:
            return self._members.read_all(lambda _, s: s.entities_by_names(names, where=where))[0]
        # A document may name an entity that only a document of another collection describes. So names are
        # searched with the permissions of the caller only, and the other filters apply to the merged entities.
        permitted = replace(where, metadata={}, agent="", session="")
        answers = self._members.read_all(lambda _, s: s.entities_by_names(names, where=permitted))
        by_name = merge_ids([{name: [e.id for e in es] for name, es in a.items()} for a in answers])
        visible = self.entities(list({id_ for ids in by_name.values() for id_ in ids}), where=where)
        named = {name: tuple(visible[id_] for id_ in ids if id_ in visible) for name, ids in by_name.items()}
        return {name: entities for name, entities in named.items() if entities}

    def find_entities_by_key(
        self, keys: Sequence[str], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[str, ...]]:
        """Find the ids of entities by the keys of their names."""
        return self._read(lambda _, s: s.find_entities_by_key(keys, max_per_key=max_per_key, where=where), merge_ids)

    def find_similar_entities(
        self, keys: Mapping[str, Sequence[str]], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[SimilarEntities, ...]]:
        """Find, for each entity, others of any collection whose names have one of its keys."""
        if not keys:
            return {}
        having = self.find_entities_by_key(similar_names.list_keys(keys), max_per_key=max_per_key + 1, where=where)
        others = similar_names.find_others(keys, having, max_per_key=max_per_key)
        ids = [*others, *(id_ for other in others.values() for id_ in other)]
        if not ids:
            return {}
        return similar_names.pair_entities(others, self.entities(ids, where=where, vectors=True))

    def list_entities(
        self,
        *,
        of_type: str = "",
        after: str = "",
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Entity, ...]:
        """Return entities by id, starting after `after`, of a type if one is given."""
        answers = self._members.read_all(
            lambda _, s: s.list_entities(of_type=of_type, after=after, limit=limit, where=where)
        )
        if self._members.is_one:
            return answers[0]
        first = sorted({entity.id for answer in answers for entity in answer})[:limit]
        known = self.entities(first, where=where)
        return tuple(known[id_] for id_ in first if id_ in known)

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
        """Return facts by subject or object, strongest first, each from its most trusted assertion."""
        fact_filter = FactFilter(statuses, as_of, where)
        return read_facts_of_entities(self._members, entities, per_entity, predicates, fact_filter)

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
        return read_assertions(self._members, entities, predicates, newest, until, where)

    def facts_of_passages(
        self,
        passages: Sequence[str],
        *,
        per_passage: int,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        """Return the facts and pairs of passages, strongest first, each as its passage states it."""
        fact_filter = FactFilter(statuses, as_of, where)
        return read_facts_of_passages(self._members, passages, per_passage, fact_filter)

    def pairs_of_entities(
        self, entities: Sequence[str], *, per_entity: int, passages_per_entity: int, where: Filter = NO_FILTER
    ) -> FactColumns:
        """Return the pairs of entities: first from passages about each, then from passages that mention it most."""
        limits = {"per_entity": per_entity, "passages_per_entity": passages_per_entity}

        def merge(answers: Sequence[FactColumns]) -> FactColumns:
            mentions = self.passages_of_entities(entities, per_entity=passages_per_entity, where=where)
            return merge_pairs(answers, mentions, limit=per_entity)

        return self._read(lambda _, s: s.pairs_of_entities(entities, **limits, where=where), merge)

    def passages_of_entities(
        self, entities: Sequence[str], *, per_entity: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the mentions of entities: first in passages about the entity, then by count."""
        return self._read(
            lambda _, s: s.passages_of_entities(entities, per_entity=per_entity, where=where),
            lambda answers: merge_mentions(answers, limit=per_entity, ids=entities),
        )

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
        """Return the result of `passages_of_entities`, and the similarity of those passages to a vector."""
        request = make_request(
            Store.nearby,
            vector,
            entities,
            per_entity=per_entity,
            keys=keys,
            max_per_key=max_per_key,
            where=where,
        )
        answers = self._members.read_all(lambda _, s: run_request(s, request))
        return answers[0] if self._members.is_one else merge_nearby(answers, limit=per_entity)

    def entities_of_passages(
        self, passages: Sequence[str], *, per_passage: int, where: Filter = NO_FILTER
    ) -> MentionColumns:
        """Return the entities that passages mention: first the passage's subject, then by count."""
        return self._read(
            lambda _, s: s.entities_of_passages(passages, per_passage=per_passage, where=where),
            lambda answers: merge_mentions(answers, limit=per_passage, ids=passages),
        )

    # -- fetching --------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return documents by id."""
        return self._read(lambda _, s: s.documents(ids, where=where), take_first)

    def list_documents(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Document, ...]:
        """Return documents whose URI begins with `under`, by URI and id, starting after `after`."""
        return self._read(
            lambda _, s: s.list_documents(under=under, after=after, limit=limit, where=where),
            partial(merge_documents, limit=limit),
        )

    def list_all_documents(self, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels, expired ones too, by id, starting after `after`."""
        return self._read(
            lambda _, s: s.list_all_documents(after=after, limit=limit),
            partial(merge_by_id, limit=limit),
            only=self._members.written,
        )

    def list_expired(self, by: datetime, *, after: str = "", limit: int = 1_000) -> tuple[Document, ...]:
        """Return documents of all users and labels that expired by a time, by id, starting after `after`."""
        return self._read(
            lambda _, s: s.list_expired(by, after=after, limit=limit),
            partial(merge_by_id, limit=limit),
            only=self._members.written,
        )

    def passages(
        self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False
    ) -> Mapping[str, Passage]:
        """Return passages by id, with their vectors if `vectors` is true."""
        return self._read(lambda _, s: s.passages(ids, where=where, vectors=vectors), take_first)

    def find_passages(self, beginning: str, *, limit: int = 2, where: Filter = NO_FILTER) -> tuple[str, ...]:
        """Return the ids of passages that begin with these hexadecimal digits, in order."""
        answers = self._members.read_all(lambda _, s: s.find_passages(beginning, limit=limit, where=where))
        return tuple(sorted({id_ for answer in answers for id_ in answer})[:limit])

    def sources(self, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, Document]:
        """Return the document of each passage, by the id of the passage."""
        return self._read(lambda _, s: s.sources(passages, where=where), take_first)

    def cosines(self, vector: Vector, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the cosine similarity of passages to a vector. Passages without a vector are left out."""
        return self._read(lambda _, s: s.cosines(vector, passages, where=where), take_first)

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        """Return the BM25 score of passages as in `lexical`; 0 for a passage without a term of the query."""
        return self._read(lambda _, s: s.word_scores(query, passages, where=where), take_best)

    def count_terms(self, query: str, *, where: Filter = NO_FILTER) -> TermCounts:
        """Count the visible passages, and the visible passages with each term of the query, as `lexical` does."""
        return self._read(lambda _, s: s.count_terms(query, where=where), add_term_counts)

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
        return self._read(
            lambda _, s: s.turns(query, passages, before=before, after=after, same_role=same_role, where=where),
            merge_turns,
        )

    def get_indexed_documents(self, ids: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, IndexedDocument]:
        """Return documents with all their parts by id."""
        return self._read(lambda _, s: s.get_indexed_documents(ids, where=where), take_first)

    def entities(self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False) -> Mapping[str, Entity]:
        """Return entities by id, described by the documents that the caller may see."""
        return self._read(lambda _, s: s.entities(ids, where=where, vectors=vectors), merge_entities)

    def facts(
        self,
        ids: Sequence[str],
        *,
        statuses: Sequence[Status] = LIVE,
        as_of: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> Mapping[str, Fact]:
        """Return facts by id, each from its most trusted visible assertion."""
        return read_facts(self._members, ids, FactFilter(statuses, as_of, where))

    # -- several requests ------------------------------------------------------------------------------

    def read_many(self, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        """Run several read requests: together on a single collection, else one after another."""
        if not self._members.is_one:
            return [run_request(self, each) for each in requests]
        answers = self._members.read_all(lambda p, s: [_add_base(p, answer) for answer in s.read_many(requests)])
        return answers[0]

    # -- the collection --------------------------------------------------------------------------------

    def version(self) -> int:
        """Return a number that grows with every write, by any process, and with every move."""
        return self.statistics().version

    def statistics(self) -> Statistics:
        """Return the number of items of each kind, and the embedding model.

        If collections have different models, `model` names all of them, so no embedder fits.
        """
        return self._read(lambda placement, s: _add_base(placement, s.statistics()), merge_statistics)

    def has_facts(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a fact of any collection."""
        return self._read(lambda _, s: s.has_facts(where=where), any)

    def has_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether the caller may see a turn of any collection."""
        return self._read(lambda _, s: s.has_turns(where=where), any)

    def has_only_turns(self, *, where: Filter = NO_FILTER) -> bool:
        """Return whether there are visible passages and all of them, in each collection, are turns."""
        return self._read(lambda _, s: s.has_only_turns(where=where), all)

    def first_expiry(self, *, where: Filter = NO_FILTER) -> datetime | None:
        """Return when the first document that the caller may see expires or has expired; None if none does."""
        return self._read(lambda _, s: s.first_expiry(where=where), _take_earliest)

    def users(self, *, after: str = "", limit: int = 1_000) -> tuple[UserCounts, ...]:
        """Return the users of the collection with the number of their items, by name, starting after `after`."""
        return self._read(lambda _, s: s.users(after=after, limit=limit), partial(merge_users, limit=limit))

    def growth(self, *, everyone: bool = False, where: Filter = NO_FILTER) -> tuple[DayCounts, ...]:
        """Count documents and passages by the day on which they were recorded."""
        return self._read(lambda _, s: s.growth(everyone=everyone, where=where), merge_growth)

    def secret(self) -> bytes:
        """Return 32 random bytes of the collection in its cell, or of one of several collections."""
        return self._read(lambda _, s: s.secret(), _take_smallest)

    def open_quarantine(self) -> "FederatedStore":
        """Open the quarantine of the written collection. It may be in another cell."""
        return open_federated(self._members.federation, self._members.require_written() + QUARANTINE)

    def export(self) -> Iterator[IndexedDocument]:
        """Yield every document with all its parts, by id. A document of several collections is yielded once."""
        yield from merge_exports([store.export() for store in self._members.open_all()])

    def close(self) -> None:
        """Close every connection."""
        self._members.close()
        self._on_close()

    # -- changing the embedding model ------------------------------------------------------------------

    def list_unembedded(self, model: str, *, limit: int) -> tuple[Embeddable, ...]:
        """Return passages, entities and facts that have no staged vector of this model."""
        return self._members.write(lambda s: s.list_unembedded(model, limit=limit), combine=_take_last)

    def stage_vectors(self, items: Sequence[Embeddable], *, author: Author, model: str) -> None:
        """Store vectors of a model that the collection does not use yet. A move does not copy them."""
        self._members.write(lambda s: s.stage_vectors(items, author=author, model=model), combine=_take_last)

    def set_weights(self, weights: str, *, author: Author) -> None:
        """Store weights of the graph search, as JSON, until another model is activated; an empty text removes them."""
        self._members.write(lambda s: s.set_weights(weights, author=author), combine=_take_last)

    def activate_model(self, model: str, *, author: Author) -> bool:
        """Make the staged vectors the collection's own. Return False if some items have no staged vector."""
        return self._members.write(lambda s: s.activate_model(model, author=author), combine=_take_last)

    # -- reading ---------------------------------------------------------------------------------------

    def _read(self, call: StoreCall[T], merge: Callable[[Sequence[T]], T], *, only: str = "") -> T:
        """Return the answer of the only collection, or merge the answers of several."""
        answers = self._members.read_all(call, only=only)
        return answers[0] if self._members.is_one else merge(answers)

    def _rank(self, call: StoreCall[Ranking], top_k: int) -> Ranking:
        return self._read(call, partial(merge_rankings, top_k=top_k))


def _take_earliest(moments: Sequence[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment), default=None)


def _take_smallest(secrets: Sequence[bytes]) -> bytes:
    return min(secrets)


def _add_base(placement: CollectionPlacement, answer: T) -> T:
    """Add the placement's base to the version in statistics, so that versions grow across moves."""
    if not isinstance(answer, Statistics):
        return answer
    return replace(answer, version=placement.base + answer.version)


def _take_last(_: T, last: T) -> T:
    return last
