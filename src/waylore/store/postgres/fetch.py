"""Read the PostgreSQL store: the graph, and items by id. This module does not write.

Narrow rows find the places of facts and mentions: inside them permissions, metadata, status and validity are checked,
and limits are applied. The same statement returns the packs of the found passages, which are decoded together.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from waylore.store import packing
from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.packing import PassagePacks, split_ids
from waylore.store.packs import Column
from waylore.store.postgres.scope import PostgresScope, bind_fact_filter
from waylore.store.postgres.steps import LOWEST_ID, Steps, make_statement, make_statement_by_ids, read_rows
from waylore.store.rows import MAX_DESCRIPTIONS, group_pairs
from waylore.text import normalise
from waylore.types.columns import FactColumns, MentionColumns
from waylore.types.identity import identity
from waylore.types.knowledge import LIVE, Document, Entity, Fact, IndexedDocument, Passage, Status
from waylore.types.results import DayCounts, Statistics, UserCounts
from waylore.types.search import FactFilter, Ranking, Scored

EXPORT_PAGE_DOCUMENTS = 256  # documents per round trip of an export


def entities_by_names(scope: PostgresScope, names: Sequence[str]) -> Steps[Mapping[str, tuple[Entity, ...]]]:
    """Find entities by name or alias."""
    ids = {name: identity("name", normalise(name)) for name in names}
    bound = {**scope.bindings, "cap": MAX_DESCRIPTIONS, "namesakes": columns.MAX_NAMESAKES}
    by_name: dict[str, dict[bytes, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, *profile in (yield from read_rows("profiles_by_names", ids.values(), **bound)):
        by_name[name.hex()][profile[1]].append(profile)
    return {
        name: tuple(sorted(map(columns.to_entity, by_name[key].values()), key=lambda e: e.id))
        for name, key in ids.items()
        if key in by_name
    }


def list_entities(
    scope: PostgresScope,
    *,
    of_type: str = "",
    after: str = "",
    limit: int = 1_000,
) -> Steps[tuple[Entity, ...]]:
    """Return entities by id, of a type if one is given."""
    place = {"type": columns.fold_case(of_type), "after": after or LOWEST_ID, "limit": limit}
    [found] = yield [make_statement("listed_entities", **scope.bindings, **place)]
    known = yield from entities(scope, [id_.hex() for (id_,) in found])
    return tuple(known[id_] for id_ in sorted(known))


def facts_of_entities(
    scope: PostgresScope,
    entities: Sequence[str],
    *,
    per_entity: int,
    predicates: Sequence[str] = (),
    statuses: Sequence[Status] = LIVE,
    as_of: datetime | None = None,
) -> Steps[FactColumns]:
    """Return facts by subject or object, strongest first."""
    bound = {**scope.bindings, **bind_fact_filter(FactFilter(statuses, as_of)), "cap": per_entity}
    if predicates:
        bound["predicates"] = [columns.compute_predicate_key(p) for p in dict.fromkeys(predicates)]
    query = "facts_of_entities_by_predicate" if predicates else "facts_of_entities"
    rows = yield from read_rows(query, entities, **bound)
    source, places, uses = _read_places(rows)
    items = split_ids(b"".join(row[8] for row in rows))
    return packing.group_facts(source, items, np.arange(len(items)), places, per_entity, lambda _: uses)


def assertions_of_entities(
    scope: PostgresScope,
    entities: Sequence[str],
    *,
    predicates: Sequence[str],
    newest: int,
    until: datetime | None = None,
) -> Steps[FactColumns]:
    """Return the newest assertions of subjects and predicates, newest first."""
    series = columns.list_series(entities, predicates)
    bound = {
        **scope.bindings,
        **bind_fact_filter(FactFilter()),
        "series": series,
        "latest": columns.get_latest(until),
        "may_be_retracted": scope.has_unconfirmed,
        "cap": newest,
    }
    [rows] = yield [make_statement("assertions_of_series", **bound) if series else None]
    source, places, uses = _read_places(rows)
    return packing.group_assertions(source, places, newest, lambda _: uses)


def pairs_of_entities(
    scope: PostgresScope, entities: Sequence[str], *, per_entity: int, passages_per_entity: int
) -> Steps[FactColumns]:
    """Return the pairs of entities in the passages that mention each of them most."""
    found = yield from read_rows("pairs_of_entities", entities, **scope.bindings, cap=passages_per_entity)
    rows = {row[4]: row[4:] for row in found if row[8] is not None}
    mentions = group_by_entity(found, passages_per_entity)
    return packing.group_pairs_by_entity(packing.read_passage_packs(list(rows.values())), mentions, per_entity)


def facts_of_passages(
    scope: PostgresScope,
    passages: Sequence[str],
    *,
    per_passage: int,
    statuses: Sequence[Status] = LIVE,
    as_of: datetime | None = None,
) -> Steps[FactColumns]:
    """Return the facts that these passages state, strongest first, unless one more trusted retracts them."""
    only = FactFilter(statuses, as_of)
    may_be_retracted = scope.has_unconfirmed or "confirmed" not in statuses
    bound = {**scope.bindings, **bind_fact_filter(only), "may_be_retracted": may_be_retracted}
    source, places, uses = _read_places((yield from read_rows("facts_of_passages", passages, **bound)))
    stated = np.intersect1d(packing.find_stated(source.packs, only), places)
    of = source.packs.fact_of[stated]
    return packing.group_facts(source, source.ids, of, stated, per_passage, lambda _: uses)


def _read_places(rows: Sequence[Any]) -> tuple[PassagePacks, Column, packing.Uses]:
    """Decode packs. Return them with the places of the found facts, and the uses of these."""
    source = packing.read_passage_packs([row[:6] for row in rows])
    in_pack = [np.frombuffer(row[6] or b"", ">i4") for row in rows]
    if not in_pack:
        return source, np.zeros(0, np.int64), {}
    of = np.repeat(np.arange(len(in_pack)), [len(each) for each in in_pack])
    places = source.packs.find_places(of, np.concatenate(in_pack).astype(np.int64))
    uses = np.frombuffer(b"".join(row[7] or b"" for row in rows), ">i8").reshape(-1, 2)
    is_used = uses[:, 0] > 0
    keys = packing.compute_fact_keys(source.packs.ids[places[is_used]])
    return source, places, dict(zip(keys.tolist(), map(tuple, uses[is_used].tolist()), strict=True))


def passages_of_entities(scope: PostgresScope, entities: Sequence[str], *, per_entity: int) -> Steps[MentionColumns]:
    """Return the mentions of entities: first in passages about the entity, then by count."""
    found = yield from read_rows("mentions_of_entities", entities, **scope.bindings, cap=per_entity)
    return group_by_entity(found, per_entity)


def group_by_entity(found: Sequence[Any], limit: int) -> MentionColumns:
    """Group rows of mentions, which begin with entity, passage, count and `is_own`, by entity."""
    entities, passages, counts, own, *_ = zip(*found, strict=True) if found else ((), (), (), ())
    at, numbers, flags = np.arange(len(found)), np.array(counts, np.int64), np.array(own, np.bool_)
    return packing.group_by_entity(entities, at, b"".join(passages), at, numbers, flags, limit)


def entities_of_passages(scope: PostgresScope, passages: Sequence[str], *, per_passage: int) -> Steps[MentionColumns]:
    """Return the entities that passages mention: first the passage's subject, then by count."""
    found = yield from read_rows("packs_of_passages", passages, **scope.bindings)
    return packing.group_mentions(packing.read_passage_packs(found), per_passage)


# -- fetching ------------------------------------------------------------------------------------------


def statistics(scope: PostgresScope) -> Steps[Statistics]:
    """Return the statistics of the scope. The version is read too, which proves that they are current."""
    yield [make_statement("version", collection=scope.collection.key)]
    return scope.collection.statistics


def has_facts(scope: PostgresScope) -> Steps[bool]:
    """Return whether the caller may see a fact. The version is read too, which proves that it is current."""
    yield [make_statement("version", collection=scope.collection.key)]
    return scope.has_facts


def has_turns(scope: PostgresScope) -> Steps[bool]:
    """Return whether the caller may see a turn. The version is read too."""
    yield [make_statement("version", collection=scope.collection.key)]
    return scope.has_turns


def has_only_turns(scope: PostgresScope) -> Steps[bool]:
    """Return whether all passages that the caller may see are turns. The version is read too."""
    yield [make_statement("version", collection=scope.collection.key)]
    return scope.has_only_turns


def first_expiry(scope: PostgresScope) -> Steps[datetime | None]:
    """Return when the first document expires that the caller may see. The version is read too."""
    yield [make_statement("version", collection=scope.collection.key)]
    return columns.to_expiry(scope.first_expiry)


def digests(scope: PostgresScope, ids: Sequence[str]) -> Steps[Mapping[str, str]]:
    """Return the digest of each stored document."""
    found = yield from read_rows("digests", ids, collection=scope.collection.key)
    return {id_.hex(): digest.hex() for id_, digest, *_ in found}


def documents(scope: PostgresScope, ids: Sequence[str]) -> Steps[Mapping[str, Document]]:
    """Return documents by id."""
    found = yield from read_rows("documents", ids, **scope.bindings)
    return {d.id: d for d in map(columns.to_document, found)}


def sources(scope: PostgresScope, passages: Sequence[str]) -> Steps[Mapping[str, Document]]:
    """Return the document of each passage."""
    found = yield from read_rows("sources", passages, **scope.bindings)
    return {row[0].hex(): columns.to_document(row) for row in found}


def list_documents(
    scope: PostgresScope, *, under: str = "", after: tuple[str, str] = ("", ""), limit: int = 1_000
) -> Steps[tuple[Document, ...]]:
    """Return documents in the order of their URIs."""
    uri, id_ = after
    place = {
        "uri": uri,
        "id": id_ or LOWEST_ID,
        "under": under,
        "beyond": under + columns.HIGHEST_CHARACTER,
        "limit": limit,
    }
    [found] = yield [make_statement("listed", **scope.bindings, **place)]
    return tuple(map(columns.to_document, found))


def list_all_documents(scope: PostgresScope, *, after: str = "", limit: int = 1_000) -> Steps[tuple[Document, ...]]:
    """Return documents of all users and labels, by id."""
    place = {"after": after or LOWEST_ID, "limit": limit}
    [found] = yield [make_statement("export_documents", collection=scope.collection.key, **place)]
    return tuple(map(columns.to_document, found))


def list_expired(
    scope: PostgresScope, by: datetime, *, after: str = "", limit: int = 1_000
) -> Steps[tuple[Document, ...]]:
    """Return documents that expired by a time, by id."""
    place = {"by": columns.to_microseconds(by), "after": after or LOWEST_ID, "limit": limit}
    [found] = yield [make_statement("expired_documents", collection=scope.collection.key, **place)]
    return tuple(map(columns.to_document, found))


def users(scope: PostgresScope, *, after: str = "", limit: int = 1_000) -> Steps[tuple[UserCounts, ...]]:
    """Return the users of a collection, by name."""
    [found] = yield [make_statement("users", collection=scope.collection.key, after=after, limit=limit)]
    return tuple(UserCounts(*row) for row in found)


def most_used(scope: PostgresScope, *, limit: int) -> Steps[Ranking]:
    """Return the passages that were used most."""
    [found] = yield [make_statement("most_used", **scope.bindings, limit=limit)]
    return tuple(Scored(id_.hex(), float(uses)) for id_, uses in found)


def growth(scope: PostgresScope, *, everyone: bool = False) -> Steps[tuple[DayCounts, ...]]:
    """Count documents and passages by the day on which they were recorded."""
    [found] = yield [make_statement("growth", **scope.bindings, everyone=everyone)]
    return tuple(map(columns.to_day_counts, found))


def fingerprints(scope: PostgresScope, files: Sequence[str]) -> Steps[Mapping[str, str]]:
    """Return the fingerprints of files as of their last read."""
    ids = [identity("file", file) for file in files]
    return dict((yield from read_rows("fingerprints", ids, collection=scope.collection.key)))


def passages(scope: PostgresScope, ids: Sequence[str], *, vectors: bool = False) -> Steps[Mapping[str, Passage]]:
    """Return passages by id."""
    found = yield from read_rows("passages", ids, **scope.bindings, vectors=vectors)
    return {p.id: p for p in columns.to_passages(found)}


def find_passages(scope: PostgresScope, beginning: str, *, limit: int = 2) -> Steps[tuple[str, ...]]:
    """Return the ids of passages that begin with these digits."""
    ends = columns.span_ids(beginning)
    if not ends:
        return ()
    [found] = yield [make_statement("passages_between", **scope.bindings, first=ends[0], last=ends[1], limit=limit)]
    return tuple(id_.hex() for (id_,) in found)


def entities(scope: PostgresScope, ids: Sequence[str], *, vectors: bool = False) -> Steps[Mapping[str, Entity]]:
    """Return entities by id, each from the descriptions that the caller may see."""
    described, blobs = yield [
        make_statement_by_ids("profiles", ids, **scope.bindings, cap=MAX_DESCRIPTIONS),
        make_statement_by_ids("entity_vectors", ids if vectors else (), **scope.bindings),
    ]
    return build_entities(described, blobs)


def build_entities(described: Sequence[Any], blobs: Sequence[Any]) -> dict[str, Entity]:
    """Build entities from the rows of their descriptions and vectors."""
    profiles_of = group_pairs((row[0].hex(), row) for row in described)
    found = {id_: columns.to_entity(profiles) for id_, profiles in profiles_of.items()}
    table = codes.from_int8([blob for _, blob in blobs])
    vector_of = {id_.hex(): vector for (id_, _), vector in zip(blobs, table, strict=True)}
    return {id_: replace(e, vector=vector_of[id_]) if id_ in vector_of else e for id_, e in found.items()}


def facts(
    scope: PostgresScope,
    ids: Sequence[str],
    *,
    statuses: Sequence[Status] = LIVE,
    as_of: datetime | None = None,
) -> Steps[Mapping[str, Fact]]:
    """Return facts by id."""
    found = yield from read_rows("facts", ids, **scope.bindings, **bind_fact_filter(FactFilter(statuses, as_of)))
    if not found:
        return {}
    source, places, uses = _read_places(found)
    read = packing.make_columns(source, source.ids, places, lambda _: uses)
    return {id_: read.make(place) for place, id_ in enumerate(read.ids)}


def get_indexed_documents(scope: PostgresScope, ids: Sequence[str]) -> Steps[Mapping[str, IndexedDocument]]:
    """Return documents with all their parts by id."""
    found = yield from read_rows("documents", ids, **scope.bindings)
    documents = yield from _read_parts(scope.collection.key, scope.collection.own_vectors, found)
    return {d.document.id: d for d in documents}


def read_export_page(collection: int, own_vectors: str, after: str) -> Steps[list[IndexedDocument]]:
    """Return the next documents of an export, with all their parts."""
    [found] = yield [
        make_statement("export_documents", collection=collection, after=after, limit=EXPORT_PAGE_DOCUMENTS)
    ]
    return (yield from _read_parts(collection, own_vectors, found))


def _read_parts(collection: int, own_vectors: str, found: Sequence[Any]) -> Steps[list[IndexedDocument]]:
    documents = [columns.to_document(row) for row in found]
    queries = ("export_passages", "export_profiles", "export_packs")
    ids = [d.id for d in documents]
    of_passages, of_entities, packed = yield [
        make_statement_by_ids(query, ids, collection=collection, own_vectors=own_vectors) for query in queries
    ]
    passages = group_pairs((p.document_id, p) for p in columns.to_passages(of_passages))
    document_of = {p.id: document for document, those in passages.items() for p in those}
    owners = [row[0].hex() for row in of_entities]
    entities = group_pairs(zip(owners, columns.to_descriptions(of_entities), strict=True))
    source = packing.read_passage_packs(packed)
    mentions = group_pairs((document_of[m.passage_id], m) for m in packing.list_mentions(source))
    stated = group_pairs((document_of[f.passage_id], f) for f in packing.list_facts(source))
    return [
        IndexedDocument(
            d,
            tuple(passages.get(d.id, ())),
            tuple(entities.get(d.id, ())),
            tuple(mentions.get(d.id, ())),
            tuple(fact for fact in stated.get(d.id, ()) if fact.is_typed),
            tuple(fact for fact in stated.get(d.id, ()) if not fact.is_typed),
        )
        for d in documents
    ]
