"""Reading the PostgreSQL store: the graph, and whatever is asked for by identity. None of it writes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.postgres.scope import Scope, held
from waylore.store.postgres.steps import Steps, of_ids, rows, statement
from waylore.store.rows import VOICES, grouped
from waylore.text import normalise
from waylore.types.identity import identity
from waylore.types.knowledge import LIVE, Contribution, Document, Entity, Fact, Mention, Passage, Status
from waylore.types.results import Statistics

FIRST = "0" * 32  # the least identity
PAGE = 256  # documents that an export reads at once


def entities_by_names(scope: Scope, names: Sequence[str]) -> Steps[Mapping[str, tuple[Entity, ...]]]:
    """Entities that have one of these names or aliases."""
    asked = {name: identity("name", normalise(name)) for name in names}
    bound = {**scope.bindings, "cap": VOICES, "namesakes": columns.NAMESAKES}
    by_name: dict[str, dict[bytes, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, *profile in (yield from rows("profiles_by_names", asked.values(), **bound)):
        by_name[name.hex()][profile[1]].append(profile)
    return {
        name: tuple(sorted(map(columns.entity, by_name[key].values()), key=lambda e: e.id))
        for name, key in asked.items()
        if key in by_name
    }


def facts_of_entities(
    scope: Scope,
    entities: Sequence[str],
    *,
    per_entity: int,
    predicates: Sequence[str] = (),
    statuses: Sequence[Status] = LIVE,
    as_of: datetime | None = None,
) -> Steps[Mapping[str, tuple[Fact, ...]]]:
    """Facts with one of these at either end, strongest first."""
    bound = {**scope.bindings, **held(statuses, as_of), "cap": per_entity}
    if predicates:
        bound["predicates"] = [columns.predicate_key(p) for p in dict.fromkeys(predicates)]
    query = "facts_of_entities_by_predicate" if predicates else "facts_of_entities"
    return columns.strongest((yield from rows(query, entities, **bound)), per_entity)


def facts_of_passages(
    scope: Scope,
    passages: Sequence[str],
    *,
    per_passage: int,
    statuses: Sequence[Status] = LIVE,
    as_of: datetime | None = None,
) -> Steps[Mapping[str, tuple[Fact, ...]]]:
    """Facts that these passages state, strongest first."""
    bound = {**scope.bindings, **held(statuses, as_of)}
    return columns.strongest((yield from rows("facts_of_passages", passages, **bound)), per_passage)


def passages_of_entities(
    scope: Scope, entities: Sequence[str], *, per_entity: int
) -> Steps[Mapping[str, tuple[Mention, ...]]]:
    """Where entities are mentioned: their own passages first, then by how often."""
    found = yield from rows("mentions_of_entities", entities, **scope.bindings, cap=per_entity)
    return columns.mentions_by_entity(found, per_entity)


def entities_of_passages(
    scope: Scope, passages: Sequence[str], *, per_passage: int
) -> Steps[Mapping[str, tuple[Mention, ...]]]:
    """What passages mention: what they are about first, then by how often."""
    found = yield from rows("mentions_of_passages", passages, **scope.bindings)
    return columns.mentions_by_passage(found, per_passage)


# -- fetching ------------------------------------------------------------------------------------------


def statistics(scope: Scope) -> Steps[Statistics]:
    """How much there is, as the scope knows already; that it is up to date is found out by asking."""
    yield [statement("version", collection=scope.collection.key)]
    return scope.collection.statistics


def digests(scope: Scope, ids: Sequence[str]) -> Steps[Mapping[str, str]]:
    """The digest of each document that is there."""
    found = yield from rows("digests", ids, collection=scope.collection.key)
    return {id_.hex(): digest.hex() for id_, digest, _ in found}


def documents(scope: Scope, ids: Sequence[str]) -> Steps[Mapping[str, Document]]:
    """Documents by identity."""
    found = yield from rows("documents", ids, **scope.bindings)
    return {d.id: d for d in map(columns.document, found)}


def sources(scope: Scope, passages: Sequence[str]) -> Steps[Mapping[str, Document]]:
    """The documents of passages, by passage."""
    found = yield from rows("sources", passages, **scope.bindings)
    return {row[0].hex(): columns.document(row) for row in found}


def listed(
    scope: Scope, *, under: str = "", after: tuple[str, str] = ("", ""), limit: int = 1_000
) -> Steps[tuple[Document, ...]]:
    """Documents by address."""
    uri, id_ = after
    place = {"uri": uri, "id": id_ or FIRST, "under": under, "beyond": under + columns.LAST, "limit": limit}
    [found] = yield [statement("listed", **scope.bindings, **place)]
    return tuple(map(columns.document, found))


def fingerprints(scope: Scope, files: Sequence[str]) -> Steps[Mapping[str, str]]:
    """What files were when they were last read."""
    ids = [identity("file", file) for file in files]
    return dict((yield from rows("fingerprints", ids, collection=scope.collection.key)))


def passages(scope: Scope, ids: Sequence[str], *, vectors: bool = False) -> Steps[Mapping[str, Passage]]:
    """Passages by identity."""
    found = yield from rows("passages", ids, **scope.bindings, vectors=vectors)
    return {p.id: p for p in columns.passages(found)}


def entities(scope: Scope, ids: Sequence[str], *, vectors: bool = False) -> Steps[Mapping[str, Entity]]:
    """Entities by identity, each put together from the profiles that the caller may see."""
    described, blobs = yield [
        of_ids("profiles", ids, **scope.bindings, cap=VOICES),
        of_ids("entity_vectors", ids if vectors else (), collection=scope.collection.key),
    ]
    return with_vectors(scope, described, blobs)


def with_vectors(scope: Scope, described: Sequence[Any], blobs: Sequence[Any]) -> dict[str, Entity]:
    """Entities from their profiles and vectors."""
    profiles_of = grouped((row[0].hex(), row) for row in described)
    found = {id_: columns.entity(profiles) for id_, profiles in profiles_of.items()}
    table = codes.unhalved((blob for _, blob in blobs), scope.collection.statistics.dimension or 1)
    vector_of = {id_.hex(): vector for (id_, _), vector in zip(blobs, table, strict=True)}
    return {id_: replace(e, vector=vector_of[id_]) if id_ in vector_of else e for id_, e in found.items()}


def facts(
    scope: Scope, ids: Sequence[str], *, statuses: Sequence[Status] = LIVE, as_of: datetime | None = None
) -> Steps[Mapping[str, Fact]]:
    """Facts by identity."""
    found = yield from rows("facts", ids, **scope.bindings, **held(statuses, as_of))
    return {f.id: f for f in columns.facts(found)}


def contributions(scope: Scope, ids: Sequence[str]) -> Steps[Mapping[str, Contribution]]:
    """Documents by identity, each with all that it says."""
    found = yield from rows("documents", ids, **scope.bindings)
    told = yield from _contributions(scope.collection.key, found)
    return {c.document.id: c for c in told}


def exported(collection: int, after: str) -> Steps[list[Contribution]]:
    """The next documents of an export, with all that they say."""
    [found] = yield [statement("export_documents", collection=collection, after=after, limit=PAGE)]
    return (yield from _contributions(collection, found))


def _contributions(collection: int, found: Sequence[Any]) -> Steps[list[Contribution]]:
    documents = [columns.document(row) for row in found]
    asked = ("export_passages", "export_profiles", "export_mentions", "export_facts")
    ids = [d.id for d in documents]
    told, described, mentioned, stated = yield [of_ids(query, ids, collection=collection) for query in asked]
    passages = grouped((p.document_id, p) for p in columns.passages(told))
    document_of = {p.id: document for document, those in passages.items() for p in those}
    described_by = [row[0].hex() for row in described]
    entities = grouped(zip(described_by, columns.profiles(described), strict=True))
    mentions = grouped((document_of[m.passage_id], m) for m in map(columns.mention, mentioned))
    facts = grouped((document_of[f.passage_id], f) for f in columns.facts(stated))
    return [
        Contribution(
            d,
            tuple(passages.get(d.id, ())),
            tuple(entities.get(d.id, ())),
            tuple(mentions.get(d.id, ())),
            tuple(facts.get(d.id, ())),
        )
        for d in documents
    ]
