"""Fetch items of the SQLite store by name and by id. This module does not write."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import apsw

from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.sql import load_queries
from waylore.store.sqlite.graph import read_parts
from waylore.store.sqlite.scope import SqliteScope, run_by_ids, run_by_rows
from waylore.text import normalise
from waylore.types.knowledge import Document, Entity, IndexedDocument, Passage
from waylore.types.results import DayCounts, UserCounts
from waylore.types.search import Ranking, Scored

SQL = load_queries("waylore.store.sqlite")


def entities_by_names(
    db: apsw.Connection, scope: SqliteScope, names: Sequence[str]
) -> Mapping[str, tuple[Entity, ...]]:
    """Find entities by name or alias."""
    keys = {name: normalise(name) for name in names}
    if not keys:
        return {}
    array = apsw.carray(tuple(dict.fromkeys(keys.values())))
    bound = {**scope.bindings, "names": array, "cap": columns.MAX_NAMESAKES}
    pairs: list[Any] = db.execute(SQL["names"], bound).fetchall()
    found = describe_entities(db, scope, [row for _, row in pairs])
    by_name: dict[str, list[Entity]] = defaultdict(list)
    for name, row in pairs:
        if row in found:
            by_name[name].append(found[row])
    return {name: tuple(sorted(by_name[key], key=lambda e: e.id)) for name, key in keys.items() if key in by_name}


def list_entities(db: apsw.Connection, scope: SqliteScope, of_type: str, after: str, limit: int) -> tuple[Entity, ...]:
    """Return entities by id, of a type if one is given."""
    place = {"type": columns.fold_case(of_type), "after": bytes.fromhex(after), "limit": limit}
    rows: list[Any] = db.execute(SQL["listed_entities"], {**scope.bindings, **place}).fetchall()
    found = describe_entities(db, scope, [row for (row,) in rows])
    return tuple(sorted(found.values(), key=lambda entity: entity.id))


def describe_entities(db: apsw.Connection, scope: SqliteScope, rows: Sequence[int]) -> dict[int, Entity]:
    """Return entities by row, each from the descriptions that the caller may see."""
    profiles = run_by_rows(db, "profiles", rows, **scope.bindings, cap=columns.MAX_DESCRIPTIONS)
    of_row = columns.group_pairs((profile[0], profile) for profile in profiles)
    found = {row: columns.to_entity(rows_of_one) for row, rows_of_one in of_row.items()}
    if not scope.is_limited:
        return found
    counts = dict(run_by_rows(db, "visible_entity_counts", list(found), **scope.bindings))
    return {row: replace(entity, passages=counts.get(row, 0)) for row, entity in found.items()}


# -- fetching ------------------------------------------------------------------------------------------


def digests(db: apsw.Connection, scope: SqliteScope, ids: Sequence[str]) -> Mapping[str, str]:
    """Return the digest of each stored document."""
    found = run_by_ids(db, "digests", ids, collection=scope.collection.row)
    return {id_.hex(): digest.hex() for id_, _, digest, *_ in found}


def documents(db: apsw.Connection, scope: SqliteScope, ids: Sequence[str]) -> Mapping[str, Document]:
    """Return documents by id."""
    found = map(columns.to_document, run_by_ids(db, "documents", ids, **scope.bindings))
    return {d.id: d for d in found}


def sources(db: apsw.Connection, scope: SqliteScope, passages: Sequence[str]) -> Mapping[str, Document]:
    """Return the document of each passage."""
    rows = run_by_ids(db, "sources", passages, **scope.bindings)
    return {row[0].hex(): columns.to_document(row) for row in rows}


def list_documents(
    db: apsw.Connection, scope: SqliteScope, under: str, after: tuple[str, str], limit: int
) -> tuple[Document, ...]:
    """Return documents in the order of their URIs."""
    uri, id_ = after
    place = {
        "uri": uri,
        "id": bytes.fromhex(id_),
        "under": under,
        "beyond": under + columns.HIGHEST_CHARACTER,
        "limit": limit,
    }
    return tuple(map(columns.to_document, db.execute(SQL["listed"], {**scope.bindings, **place})))


def list_all_documents(db: apsw.Connection, scope: SqliteScope, after: str, limit: int) -> tuple[Document, ...]:
    """Return documents of all users and labels, by id."""
    bound = {"collection": scope.collection.row, "after": bytes.fromhex(after), "limit": limit}
    return tuple(map(columns.to_document, db.execute(SQL["export_documents"], bound)))


def list_expired(db: apsw.Connection, scope: SqliteScope, by: datetime, after: str, limit: int) -> tuple[Document, ...]:
    """Return documents that expired by a time, by id."""
    bound = {"collection": scope.collection.row, "by": columns.to_microseconds(by), "after": bytes.fromhex(after)}
    return tuple(map(columns.to_document, db.execute(SQL["expired_documents"], {**bound, "limit": limit})))


def users(db: apsw.Connection, scope: SqliteScope, after: str, limit: int) -> tuple[UserCounts, ...]:
    """Return the users of a collection, by name."""
    bound = {"collection": scope.collection.row, "after": after, "limit": limit}
    return tuple(UserCounts(*row) for row in db.execute(SQL["users"], bound))


def most_used(db: apsw.Connection, scope: SqliteScope, limit: int) -> Ranking:
    """Return the passages that were used most."""
    found = db.execute(SQL["most_used"], {**scope.bindings, "limit": limit})
    return tuple(Scored(id_.hex(), float(uses)) for id_, uses in found)


def growth(db: apsw.Connection, scope: SqliteScope, everyone: bool) -> tuple[DayCounts, ...]:
    """Count documents and passages by the day on which they were recorded."""
    found = db.execute(SQL["growth"], {**scope.bindings, "everyone": everyone})
    return tuple(map(columns.to_day_counts, found))


def fingerprints(db: apsw.Connection, scope: SqliteScope, files: Sequence[str]) -> Mapping[str, str]:
    """Return the fingerprints of files as of their last read."""
    if not files:
        return {}
    bound = {"collection": scope.collection.row, "uris": apsw.carray(tuple(files))}
    found: list[Any] = db.execute(SQL["fingerprints"], bound).fetchall()
    return dict(found)


def passages(db: apsw.Connection, scope: SqliteScope, ids: Sequence[str], *, vectors: bool) -> Mapping[str, Passage]:
    """Return passages by id."""
    rows = run_by_ids(db, "passages", ids, **scope.bindings, vectors=vectors)
    return {p.id: p for p in columns.to_passages(rows)}


def find_passages(db: apsw.Connection, scope: SqliteScope, beginning: str, limit: int) -> tuple[str, ...]:
    """Return the ids of passages that begin with these digits."""
    ends = columns.span_ids(beginning)
    if not ends:
        return ()
    bound = {**scope.bindings, "first": bytes.fromhex(ends[0]), "last": bytes.fromhex(ends[1]), "limit": limit}
    rows: list[Any] = db.execute(SQL["passages_between"], bound).fetchall()
    return tuple(id_.hex() for (id_,) in rows)


def entities(db: apsw.Connection, scope: SqliteScope, ids: Sequence[str], *, vectors: bool) -> Mapping[str, Entity]:
    """Return entities by id."""
    rows = [row for _, row in run_by_ids(db, "entity_rows", ids, collection=scope.collection.row)]
    found = describe_entities(db, scope, rows)
    if not vectors:
        return {entity.id: entity for entity in found.values()}
    blobs = run_by_rows(db, "entity_vectors", list(found))
    table = codes.from_int8([blob for _, blob in blobs])
    vector_of = {row: vector for (row, _), vector in zip(blobs, table, strict=True)}
    return {e.id: replace(e, vector=vector_of.get(row)) for row, e in found.items()}


def get_indexed_documents(db: apsw.Connection, scope: SqliteScope, ids: Sequence[str]) -> Mapping[str, IndexedDocument]:
    """Return documents with all their parts by id."""
    rows = run_by_ids(db, "documents", ids, **scope.bindings)
    return {c.document.id: c for c in map(partial(read_document, db), rows)}


def export(db: apsw.Connection, collection: int) -> Iterator[IndexedDocument]:
    """Yield every document with all its parts."""
    bound = {"collection": collection, "after": b"", "limit": -1}
    return map(partial(read_document, db), db.execute(SQL["export_documents"], bound))


def read_document(db: apsw.Connection, row: Sequence[Any]) -> IndexedDocument:
    """Return a document with all its parts, from a row of the query `documents`."""
    own = {"document": row[0]}
    mentions, stated = read_parts(db, row[0])
    return IndexedDocument(
        document=columns.to_document(row),
        passages=tuple(columns.to_passages(db.execute(SQL["export_passages"], own).fetchall())),
        entities=tuple(columns.to_descriptions(db.execute(SQL["export_profiles"], own).fetchall())),
        mentions=tuple(mentions),
        facts=tuple(fact for fact in stated if fact.is_typed),
        pairs=tuple(fact for fact in stated if not fact.is_typed),
    )
