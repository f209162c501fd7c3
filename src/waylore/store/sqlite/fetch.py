"""Reading the SQLite store: the graph, and whatever is asked for by identity. None of it writes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import apsw
import numpy as np

from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import Held, Scope, by_ids, by_rows
from waylore.text import normalise
from waylore.types.knowledge import Contribution, Document, Entity, Fact, Mention, Passage

SQL = load_queries("waylore.store.sqlite")


def entities_by_names(
    db: apsw.Connection, scope: Scope, names: Sequence[str]
) -> Mapping[str, tuple[Entity, ...]]:
    """Entities that have one of these names or aliases."""
    asked = {name: normalise(name) for name in names}
    if not asked:
        return {}
    wanted = apsw.carray(tuple(dict.fromkeys(asked.values())))
    bound = {**scope.bindings, "names": wanted, "cap": columns.NAMESAKES}
    pairs: list[Any] = db.execute(SQL["names"], bound).fetchall()
    found = described(db, scope, [row for _, row in pairs])
    by_name: dict[str, list[Entity]] = defaultdict(list)
    for name, row in pairs:
        if row in found:
            by_name[name].append(found[row])
    return {
        name: tuple(sorted(by_name[key], key=lambda e: e.id)) for name, key in asked.items() if key in by_name
    }


def facts_of_entities(
    db: apsw.Connection,
    scope: Scope,
    held: Held,
    entities: Sequence[str],
    per_entity: int,
    predicates: Sequence[str],
) -> Mapping[str, tuple[Fact, ...]]:
    """Facts with one of these at either end, strongest first."""
    bound = {**scope.bindings, **held.bindings, "cap": per_entity}
    if not predicates:
        return columns.strongest(by_ids(db, "facts_of_entities", entities, **bound), per_entity)
    keys = [columns.predicate_key(p) for p in dict.fromkeys(predicates)]
    bound["predicates"] = apsw.carray(np.array(keys, dtype=np.int64))
    return columns.strongest(by_ids(db, "facts_of_entities_by_predicate", entities, **bound), per_entity)


def facts_of_passages(
    db: apsw.Connection, scope: Scope, held: Held, passages: Sequence[str], per_passage: int
) -> Mapping[str, tuple[Fact, ...]]:
    """Facts that these passages state, strongest first."""
    rows = by_ids(db, "facts_of_passages", passages, **scope.bindings, **held.bindings)
    return columns.strongest(rows, per_passage)


def passages_of_entities(
    db: apsw.Connection, scope: Scope, entities: Sequence[str], per_entity: int
) -> Mapping[str, tuple[Mention, ...]]:
    """Where entities are mentioned: their own passages first, then by how often."""
    rows = by_ids(db, "mentions_of_entities", entities, **scope.bindings, cap=per_entity)
    return columns.mentions_by_entity(rows, per_entity)


def entities_of_passages(
    db: apsw.Connection, scope: Scope, passages: Sequence[str], per_passage: int
) -> Mapping[str, tuple[Mention, ...]]:
    """What passages mention: what they are about first, then by how often."""
    rows = by_ids(db, "mentions_of_passages", passages, **scope.bindings)
    return columns.mentions_by_passage(rows, per_passage)


def described(db: apsw.Connection, scope: Scope, rows: Sequence[int]) -> dict[int, Entity]:
    """Entities by row, each put together from the profiles that the caller may see."""
    profiles = by_rows(db, "profiles", rows, **scope.bindings, cap=columns.VOICES)
    of_row = columns.grouped((profile[0], profile) for profile in profiles)
    return {row: columns.entity(told) for row, told in of_row.items()}


# -- fetching ------------------------------------------------------------------------------------------


def digests(db: apsw.Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, str]:
    """The digest of each document that is there."""
    found = by_ids(db, "digests", ids, collection=scope.collection.row)
    return {id_.hex(): digest.hex() for id_, _, digest in found}


def documents(db: apsw.Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, Document]:
    """Documents by identity."""
    found = map(columns.document, by_ids(db, "documents", ids, **scope.bindings))
    return {d.id: d for d in found}


def sources(db: apsw.Connection, scope: Scope, passages: Sequence[str]) -> Mapping[str, Document]:
    """The documents of passages, by passage."""
    rows = by_ids(db, "sources", passages, **scope.bindings)
    return {row[0].hex(): columns.document(row) for row in rows}


def listed(
    db: apsw.Connection, scope: Scope, under: str, after: tuple[str, str], limit: int
) -> tuple[Document, ...]:
    """Documents by address."""
    uri, id_ = after
    place = {
        "uri": uri,
        "id": bytes.fromhex(id_),
        "under": under,
        "beyond": under + columns.LAST,
        "limit": limit,
    }
    return tuple(map(columns.document, db.execute(SQL["listed"], {**scope.bindings, **place})))


def fingerprints(db: apsw.Connection, scope: Scope, files: Sequence[str]) -> Mapping[str, str]:
    """What files were when they were last read."""
    if not files:
        return {}
    bound = {"collection": scope.collection.row, "uris": apsw.carray(tuple(files))}
    found: list[Any] = db.execute(SQL["fingerprints"], bound).fetchall()
    return dict(found)


def passages(db: apsw.Connection, scope: Scope, ids: Sequence[str], *, vectors: bool) -> Mapping[str, Passage]:
    """Passages by identity."""
    rows = by_ids(db, "passages", ids, **scope.bindings, vectors=vectors)
    return {p.id: p for p in columns.passages(rows)}


def entities(db: apsw.Connection, scope: Scope, ids: Sequence[str], *, vectors: bool) -> Mapping[str, Entity]:
    """Entities by identity."""
    rows = [row for _, row in by_ids(db, "entity_rows", ids, collection=scope.collection.row)]
    found = described(db, scope, rows)
    if not vectors:
        return {entity.id: entity for entity in found.values()}
    blobs = by_rows(db, "entity_vectors", list(found))
    table = codes.unhalved((blob for _, blob in blobs), scope.collection.statistics.dimension or 1)
    vector_of = {row: vector for (row, _), vector in zip(blobs, table, strict=True)}
    return {e.id: replace(e, vector=vector_of.get(row)) for row, e in found.items()}


def facts(db: apsw.Connection, scope: Scope, held: Held, ids: Sequence[str]) -> Mapping[str, Fact]:
    """Facts by identity."""
    rows = by_ids(db, "facts", ids, **scope.bindings, **held.bindings)
    return {f.id: f for f in columns.facts(rows)}


def contributions(db: apsw.Connection, scope: Scope, ids: Sequence[str]) -> Mapping[str, Contribution]:
    """Documents by identity, each with all that it says."""
    rows = by_ids(db, "documents", ids, **scope.bindings)
    return {c.document.id: c for c in map(partial(_contribution, db), rows)}


def export(db: apsw.Connection, collection: int) -> Iterator[Contribution]:
    """Every document with all that it says."""
    return map(partial(_contribution, db), db.execute(SQL["export_documents"], {"collection": collection}))


def _contribution(db: apsw.Connection, row: Sequence[Any]) -> Contribution:
    own = {"document": row[0]}
    return Contribution(
        document=columns.document(row),
        passages=tuple(columns.passages(db.execute(SQL["export_passages"], own).fetchall())),
        entities=tuple(columns.profiles(db.execute(SQL["export_profiles"], own).fetchall())),
        mentions=tuple(map(columns.mention, db.execute(SQL["export_mentions"], own))),
        facts=tuple(columns.facts(db.execute(SQL["export_facts"], own).fetchall())),
    )
