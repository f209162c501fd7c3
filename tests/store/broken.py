"""Stores that are broken on purpose, each with a defect that real stores have had."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store.protocol import NO_DIGESTS, NO_FINGERPRINTS
from waylore.store.sqlite.store import SqliteStore
from waylore.types.audit import Verb
from waylore.types.author import OWNER, Author
from waylore.types.columns import FactColumns, TurnColumns, to_fact_columns
from waylore.types.knowledge import LIVE, Document, Entity, IndexedDocument, SimilarEntities, Status, Vector
from waylore.types.results import Receipt
from waylore.types.search import NO_FILTER, Filter, Ranking, Scored, TermCounts


class AfterwardsFilteringStore(SqliteStore):
    """Takes the best of all passages, then drops those that the caller may not see."""

    def dense(self, vector: Vector, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        found = super().dense(vector, top_k=top_k)
        seen = self.passages([s.id for s in found], where=where)
        return tuple(s for s in found if s.id in seen)

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        found = super().lexical(query, top_k=top_k)
        seen = self.passages([s.id for s in found], where=where)
        return tuple(s for s in found if s.id in seen)


class IncompleteForgettingStore(SqliteStore):
    """Removes the passages of a document and returns a receipt, but keeps its entities and facts."""

    def forget(
        self,
        documents: Sequence[str],
        *,
        author: Author,
        missing: Sequence[str] = (),
        verb: Verb = "forget",
        digests: Mapping[str, str] = NO_DIGESTS,
    ) -> Receipt:
        before = {c.document.id: c for c in self.export()}
        receipt = super().forget(documents, author=author, missing=missing, verb=verb, digests=digests)
        for id_ in receipt.documents:
            was = before[id_]
            blanked = tuple(replace(p, text="", title="") for p in was.passages)
            self.write([replace(was, passages=blanked)], author=OWNER, model=self.statistics().model)
        return receipt


class HiddenAssertionStore(SqliteStore):
    """Checks that a fact is visible, then returns the most trusted assertion even if it is hidden."""

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
        found = super().facts_of_entities(
            entities,
            per_entity=per_entity,
            predicates=predicates,
            statuses=statuses,
            as_of=as_of,
            where=where,
        )
        facts = self.facts([f.id for fs in found.values() for f in fs], statuses=statuses, as_of=as_of)
        return to_fact_columns({e: [facts[f.id] for f in fs] for e, fs in found.items()})


class StrongestAssertionsStore(SqliteStore):
    """Returns the strongest facts of a subject, each once, in place of its newest assertions."""

    def assertions_of_entities(
        self,
        entities: Sequence[str],
        *,
        predicates: Sequence[str],
        newest: int,
        until: datetime | None = None,
        where: Filter = NO_FILTER,
    ) -> FactColumns:
        return super().facts_of_entities(entities, per_entity=newest, predicates=predicates, as_of=until, where=where)


class PartialWritingStore(SqliteStore):
    """Writes one document after another, so that a bad one leaves the ones before it."""

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
        written = 0
        for half in [[d] for d in documents] or [[]]:
            written += super().write(
                half, author=author, model=model, fingerprints=fingerprints, replacing=replacing, verb=verb
            )
        return written


class UnstableTiesStore(SqliteStore):
    """Breaks ties in another order than by id."""

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        found = super().lexical(query, top_k=10 * top_k, where=where)
        return tuple(sorted(found, key=lambda s: (-s.score, s.id[::-1])))[:top_k]


class HiddenNamesStore(SqliteStore):
    """Finds similar names without applying the filter."""

    def find_similar_entities(
        self, keys: Mapping[str, Sequence[str]], *, max_per_key: int, where: Filter = NO_FILTER
    ) -> Mapping[str, tuple[SimilarEntities, ...]]:
        return super().find_similar_entities(keys, max_per_key=max_per_key)


class HiddenScoresStore(SqliteStore):
    """Scores the passages that it is given without applying the filter."""

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        return super().word_scores(query, passages)


class ScaledScoresStore(SqliteStore):
    """Scales the scores of the given passages to the best of them, so that they differ from those of a search."""

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        found = super().word_scores(query, passages, where=where)
        best = max(found.values(), default=0.0) or 1.0
        return {id_: round(score / best, 6) for id_, score in found.items()}


class UncheckedStore(SqliteStore):
    """Reports that no traces are left, without searching for any."""

    def find_remains(self, receipt: Receipt) -> tuple[str, ...]:
        return ()


class AuthorlessStore(SqliteStore):
    """Writes for everybody, because it expects that its callers have checked the labels."""

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
        return super().write(
            documents, author=OWNER, model=model, fingerprints=fingerprints, replacing=replacing, verb=verb
        )


class SharedLabelStore(SqliteStore):
    """Lets an author forget every document that it sees: a public one, and one that shares a label with it."""

    def forget(
        self,
        documents: Sequence[str],
        *,
        author: Author,
        missing: Sequence[str] = (),
        verb: Verb = "forget",
        digests: Mapping[str, str] = NO_DIGESTS,
    ) -> Receipt:
        visible = list(self.documents(documents, where=author.narrow(NO_FILTER)))
        return super().forget(visible, author=OWNER, missing=missing, verb=verb, digests=digests)


class TrustingStore(SqliteStore):
    """Stores every source that a writer names."""

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
        trusted = replace(author, max_source="user_edit")
        return super().write(
            documents, author=trusted, model=model, fingerprints=fingerprints, replacing=replacing, verb=verb
        )


class HiddenCountsStore(SqliteStore):
    """Filters passages, but scores them by the frequencies of words in all documents."""

    def lexical(self, query: str, *, top_k: int, where: Filter = NO_FILTER) -> Ranking:
        found = super().lexical(query, top_k=10 * top_k, where=where)
        scores = super().word_scores(query, [s.id for s in found])
        ranked = sorted(((-score, id_) for id_, score in scores.items()))
        return tuple(Scored(id_, -score) for score, id_ in ranked[:top_k])

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, float]:
        return super().word_scores(query, list(self.passages(passages, where=where)))


class HiddenTermsStore(SqliteStore):
    """Counts the words of all documents for every caller."""

    def count_terms(self, query: str, *, where: Filter = NO_FILTER) -> TermCounts:
        return super().count_terms(query)


class HiddenMentionsStore(SqliteStore):
    """Describes entities by visible documents, but counts the passages of all documents that mention them."""

    def entities(self, ids: Sequence[str], *, where: Filter = NO_FILTER, vectors: bool = False) -> Mapping[str, Entity]:
        everything = super().entities(ids)
        found = super().entities(ids, where=where, vectors=vectors)
        return {id_: replace(entity, passages=everything[id_].passages) for id_, entity in found.items()}


class HiddenFactsStore(SqliteStore):
    """Tells a caller that there are facts, although it may see none of them."""

    def has_facts(self, *, where: Filter = NO_FILTER) -> bool:
        return super().has_facts()


class HiddenPairsStore(SqliteStore):
    """Reads the pairs of all passages, also of those that the caller may not see."""

    def pairs_of_entities(
        self, entities: Sequence[str], *, per_entity: int, passages_per_entity: int, where: Filter = NO_FILTER
    ) -> FactColumns:
        return super().pairs_of_entities(entities, per_entity=per_entity, passages_per_entity=passages_per_entity)


class MixedUsersStore(SqliteStore):
    """Finds entities by name for every user."""

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        everyone = {document.document.user for document in self.export()}
        found: dict[str, tuple[Entity, ...]] = {}
        for user in sorted(everyone | {where.user}):
            found |= super().entities_by_names(names, where=replace(where, user=user))
        return found


class UntimedListStore(SqliteStore):
    """Lists the documents of all times."""

    def list_documents(
        self,
        *,
        under: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1_000,
        where: Filter = NO_FILTER,
    ) -> tuple[Document, ...]:
        untimed = replace(where, since=None, until=None)
        return super().list_documents(under=under, after=after, limit=limit, where=untimed)


class HiddenEntitiesStore(SqliteStore):
    """Takes the first of all entities, then drops those that the caller may not see."""

    def list_entities(
        self, *, of_type: str = "", after: str = "", limit: int = 1_000, where: Filter = NO_FILTER
    ) -> tuple[Entity, ...]:
        first = super().list_entities(of_type=of_type, after=after, limit=limit)
        seen = self.entities([entity.id for entity in first], where=where)
        return tuple(entity for entity in first if entity.id in seen)


class HiddenMatchesStore(SqliteStore):
    """Takes the first passages whose ids begin so, then drops those that the caller may not see."""

    def find_passages(self, beginning: str, *, limit: int = 2, where: Filter = NO_FILTER) -> tuple[str, ...]:
        first = super().find_passages(beginning, limit=limit)
        seen = self.passages(first, where=where)
        return tuple(id_ for id_ in first if id_ in seen)


class HiddenTurnsStore(SqliteStore):
    """Counts turns with labels that the caller lacks as neighbours."""

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
        visible = replace(where, labels=None)
        return super().turns(query, passages, before=before, after=after, same_role=same_role, where=visible)


class UnexpiringStore(SqliteStore):
    """Hides expired passages, but not the entities that only expired documents describe."""

    def entities_by_names(self, names: Sequence[str], *, where: Filter = NO_FILTER) -> Mapping[str, tuple[Entity, ...]]:
        return super().entities_by_names(names, where=replace(where, now=None, as_of=None))
