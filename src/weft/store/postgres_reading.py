"""Reading the PostgreSQL store: the graph, and whatever is asked for by identity. None of it writes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.store import codes, columns
from weft.store.postgres_scope import Scope, by_ids, run
from weft.store.postgres_server import Connection
from weft.store.queries import queries
from weft.text import normalise
from weft.types import Contribution, Document, Entity, Fact, Mention, Passage, identity

SQL = queries("postgres")
VOICES = 8  # documents of each permission that describe an entity
NAMESAKES = 1_000  # entities of one name that are looked at
LAST = "\U0010ffff"  # sorts after whatever may follow a prefix
FIRST = "0" * 32  # the least identity
PAGE = 256  # documents that an export reads at once


def entities_by_names(db: Connection, scope: Scope, names: Sequence[str]) -> Mapping[str, tuple[Entity, ...]]:
    """Entities that have one of these names or aliases."""
    asked = {name: identity("name", normalise(name)) for name in names}
    pairs = [
        (name.hex(), entity.hex())
        for name, entity in by_ids(db, "names", asked.values(), **scope.bindings, cap=NAMESAKES)
    ]
    found = entities(db, scope, [entity for _, entity in pairs])
    by_name: dict[str, list[Entity]] = defaultdict(list)
    for name, entity in pairs:
        if entity in found:
            by_name[name].append(found[entity])
    return {
        name: tuple(sorted(by_name[key], key=lambda e: e.id)) for name, key in asked.items() if key in by_name
    }


def facts_of_entities(
    db: Connection,
    scope: Scope,
    held: dict[str, Any],
    entities: Sequence[str],
    per_entity: int,
    predicates: Sequence[str],
) -> Mapping[str, tuple[Fact, ...]]:
    """Facts with one of these at either end, strongest first."""
    bound = {**scope.bindings, **held, "cap": per_entity}
    if not predicates:
        return columns.strongest(by_ids(db, "facts_of_entities", entities, **bound), per_entity)
    bound["predicates"] = [columns.predicate_key(p) for p in dict.fromkeys(predicates)]
    return columns.strongest(by_ids(db, "facts_of_entities_by_predicate", entities, **bound), per_entity)


def facts_of_passages(
    db: Connection, scope: Scope, held: dict[str, Any], passages: Sequence[str], per_passage: int
) -> Mapping[str, tuple[Fact, ...]]:
    """Facts that these passages state, strongest first."""
    return columns.strongest(by_ids(db, "facts_of_passages", passages, **scope.bindings, **held), per_passage)


def passages_of_entities(
    db: Connection, scope: Scope, entities: Sequence[str], per_entity: int
) -> Mapping[str, tuple[Mention, ...]]:
    """Where entities are mentioned: their own passages first, then by how often."""
    found: dict[str, list[Mention]] = defaultdict(list)
    rows = by_ids(db, "mentions_of_entities", entities, **scope.bindings, cap=per_entity)
    for mention in map(columns.mention, rows):
        found[mention.entity_id].append(mention)
    return {e: columns.foremost(mentions, per_entity) for e, mentions in found.items()}


def entities_of_passages(
    db: Connection, scope: Scope, passages: Sequence[str], per_passage: int
) -> Mapping[str, tuple[Mention, ...]]:
    """What passages mention: what they are about first, then by how often."""
    found: dict[str, list[Mention]] = defaultdict(list)
    for mention in map(columns.mention, by_ids(db, "mentions_of_passages", passages, **scope.bindings)):
        found[mention.passage_id].append(mention)
    return {p: columns.foremost(mentions, per_passage) for p, mentions in found.items()}


# -- fetching ------------------------------------------------------------------------------------------


def digests(db: Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, str]:
    """The digest of each document that is there."""
    found = by_ids(db, "digests", ids, collection=scope.collection.key)
    return {id_.hex(): digest.hex() for id_, digest, _ in found}


def documents(db: Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, Document]:
    """Documents by identity."""
    found = map(columns.document, by_ids(db, "documents", ids, **scope.bindings))
    return {d.id: d for d in found}


def listed(
    db: Connection, scope: Scope, under: str, after: tuple[str, str], limit: int
) -> tuple[Document, ...]:
    """Documents by address."""
    uri, id_ = after
    place = {"uri": uri, "id": id_ or FIRST, "under": under, "beyond": under + LAST, "limit": limit}
    return tuple(map(columns.document, run(db, "listed", **scope.bindings, **place)))


def fingerprints(db: Connection, scope: Scope, files: Sequence[str]) -> Mapping[str, str]:
    """What files were when they were last read."""
    ids = [identity("file", file) for file in files]
    return dict(by_ids(db, "fingerprints", ids, collection=scope.collection.key))


def passages(db: Connection, scope: Scope, ids: Sequence[str], *, vectors: bool) -> Mapping[str, Passage]:
    """Passages by identity."""
    rows = by_ids(db, "passages", ids, **scope.bindings, vectors=vectors)
    return {p.id: p for p in columns.passages(rows)}


def entities(
    db: Connection, scope: Scope, ids: Sequence[str], *, vectors: bool = False
) -> Mapping[str, Entity]:
    """Entities by identity, each put together from the profiles that the caller may see."""
    grouped: dict[bytes, list[Any]] = defaultdict(list)
    for row in by_ids(db, "profiles", ids, **scope.bindings, cap=VOICES):
        grouped[row[0]].append(row)
    found = {id_.hex(): columns.entity(profiles) for id_, profiles in grouped.items()}
    if not vectors:
        return found
    blobs = by_ids(db, "entity_vectors", list(found), collection=scope.collection.key)
    table = codes.unhalved((blob for _, blob in blobs), scope.collection.statistics.dimension or 1)
    vector_of = {id_.hex(): vector for (id_, _), vector in zip(blobs, table, strict=True)}
    return {id_: replace(entity, vector=vector_of.get(id_)) for id_, entity in found.items()}


def facts(db: Connection, scope: Scope, held: dict[str, Any], ids: Sequence[str]) -> Mapping[str, Fact]:
    """Facts by identity."""
    return {f.id: f for f in columns.facts(by_ids(db, "facts", ids, **scope.bindings, **held))}


def contributions(db: Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, Contribution]:
    """Documents by identity, each with all that it says."""
    rows = by_ids(db, "documents", ids, **scope.bindings)
    return {c.document.id: c for c in _contributions(db, scope.collection.key, rows)}


def export(db: Connection, collection: int) -> Iterator[Contribution]:
    """Every document with all that it says."""
    after = FIRST
    while rows := run(db, "export_documents", collection=collection, after=after, limit=PAGE).fetchall():
        yield from _contributions(db, collection, rows)
        after = rows[-1][0].hex()


def _contributions(db: Connection, collection: int, rows: Sequence[Any]) -> list[Contribution]:
    documents = [columns.document(row) for row in rows]
    own = {"collection": collection, "ids": [d.id for d in documents]}
    asked = (  # all of them before the first is fetched: they share a round trip
        run(db, "export_passages", **own),
        run(db, "export_profiles", **own),
        run(db, "export_mentions", **own),
        run(db, "export_facts", **own),
    )
    told, described, mentioned, stated = (found.fetchall() for found in asked)
    passages = _grouped((p.document_id, p) for p in columns.passages(told))
    document_of = {p.id: document for document, those in passages.items() for p in those}
    described_by = [row[0].hex() for row in described]
    entities = _grouped(zip(described_by, columns.profiles(described), strict=True))
    mentions = _grouped((document_of[m.passage_id], m) for m in map(columns.mention, mentioned))
    facts = _grouped((document_of[f.passage_id], f) for f in columns.facts(stated))
    return [
        Contribution(d, *(tuple(part.get(d.id, ())) for part in (passages, entities, mentions, facts)))
        for d in documents
    ]


def _grouped(pairs: Any) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        grouped[key].append(value)
    return grouped
