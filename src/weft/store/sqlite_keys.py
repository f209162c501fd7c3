"""Keys of names in the SQLite store: an index by which entities whose names look alike find each other.

Kept for each permission, as names are, so that a spelling that the caller may not see finds nothing. Pairs are
not kept: they are found when asked for, so neither the order of writing nor another model changes them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import apsw

from weft.naming import keys
from weft.store import codes, likeness
from weft.store.queries import queries
from weft.store.sqlite_reading import described
from weft.store.sqlite_scope import Scope, by_ids, by_rows
from weft.types import Alike, Vector

SQL = queries("sqlite")
Named: TypeAlias = tuple[str, int, int]  # what a document calls an entity, its permission, the entity's row


def add_keys(db: apsw.Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    db.executemany(SQL["add_key"], _rows(into, named))


def remove_keys(db: apsw.Connection, of: int, named: Iterable[Named]) -> None:
    """Take away what documents that go had brought."""
    rows = _rows(of, named)
    db.executemany(SQL["remove_key"], rows)
    db.executemany(SQL["delete_unused_key"], rows)


def fill_keys(db: apsw.Connection) -> None:
    """Index every name of a file that was made before there were keys."""

    def name_keys(*name: Any) -> str:
        return json.dumps(keys(*name))

    db.create_scalar_function("name_keys", name_keys, 1, deterministic=True)
    db.execute(SQL["fill_keys"])


def alike(
    db: apsw.Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> Mapping[str, tuple[Alike, ...]]:
    """For each entity that asks with keys, the others that have one of them."""
    others = _others(db, scope, asked, most)
    rows = {id_.hex(): row for id_, row in by_ids(db, "entity_rows", list(others), **_of(scope))}
    every = [*rows.values(), *(row for found in others.values() for row in found)]
    entities, vectors = described(db, scope, every), _vectors(db, scope, every)
    return likeness.alike(rows, others, entities, vectors)


def _rows(of: int, named: Iterable[Named]) -> list[tuple[int, str, int, int]]:
    return [(of, key, access, entity) for name, access, entity in named for key in keys(name)]


def _of(scope: Scope) -> dict[str, Any]:
    return {"collection": scope.collection.row}


def _others(
    db: apsw.Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> dict[str, dict[int, str]]:
    """By the entity that asks, the rows of others with the first of its keys that they have."""
    wanted = tuple(dict.fromkeys(key for asked_keys in asked.values() for key in asked_keys))
    if not wanted:
        return {}
    bound = {**scope.bindings, "keys": apsw.carray(wanted), "cap": most + 2}
    having: dict[str, dict[int, str]] = defaultdict(dict)
    for key, row, id_ in db.execute(SQL["entities_by_keys"], bound):
        having[key][row] = id_.hex()
    return likeness.others(asked, having, most)


def _vectors(db: apsw.Connection, scope: Scope, rows: Sequence[int]) -> dict[int, Vector]:
    dimension = scope.collection.statistics.dimension
    found = by_rows(db, "entity_vectors", rows) if dimension else []
    table = codes.unhalved((blob for _, blob in found), dimension or 1)
    return {row: vector for (row, _), vector in zip(found, table, strict=True)}
