"""Index the keys of names in the SQLite store, to find entities with similar names.

Keys are stored for each permission, as names are, so that a spelling that the caller may not see finds no entity.
Matches are not stored but found by each read, so neither the order of writes nor the model changes them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import apsw

from waylore.deadline import check_each
from waylore.names import keys
from waylore.store import similar_names
from waylore.store.sql import load_queries
from waylore.store.sqlite.fetch import entities
from waylore.store.sqlite.scope import SqliteScope
from waylore.types.knowledge import SimilarEntities

SQL = load_queries("waylore.store.sqlite")
Named: TypeAlias = tuple[
    str, int, int
]  # a name that a document gives to an entity, the permission, the row of the entity


def add_keys(db: apsw.Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    db.executemany(SQL["add_key"], _make_rows(into, named))


def remove_keys(db: apsw.Connection, of: int, named: Iterable[Named]) -> None:
    """Remove the keys of names that removed documents gave to entities."""
    rows = _make_rows(of, named)
    db.executemany(SQL["remove_key"], rows)
    db.executemany(SQL["delete_unused_key"], rows)


def fill_keys(db: apsw.Connection) -> None:
    """Index every name of a file that was created before keys existed."""

    def name_keys(*name: Any) -> str:
        return json.dumps(keys(*name))

    db.create_scalar_function("name_keys", name_keys, 1, deterministic=True)
    db.execute(SQL["fill_keys"])


def find_entities_by_key(
    db: apsw.Connection, scope: SqliteScope, keys: Sequence[str], max_per_key: int
) -> Mapping[str, tuple[str, ...]]:
    """Find the ids of entities by the keys of their names.

    If more than `max_per_key` entities share a key, more than `max_per_key` of them are returned.
    """
    if not keys:
        return {}
    bound = {**scope.bindings, "keys": apsw.carray(tuple(dict.fromkeys(keys))), "cap": max_per_key + 1}
    found: dict[str, set[str]] = defaultdict(set)
    for key, id_ in db.execute(SQL["entities_by_keys"], bound):
        found[key].add(id_.hex())
    return {key: tuple(sorted(ids)) for key, ids in found.items()}


def find_similar_entities(
    db: apsw.Connection, scope: SqliteScope, keys: Mapping[str, Sequence[str]], max_per_key: int
) -> Mapping[str, tuple[SimilarEntities, ...]]:
    """Find, for each entity, others whose names have one of its keys."""
    by_key = find_entities_by_key(db, scope, similar_names.list_keys(keys), max_per_key + 1)
    others = similar_names.find_others(keys, by_key, max_per_key=max_per_key)
    every = [*others, *(id_ for found in others.values() for id_ in found)]
    return similar_names.pair_entities(others, entities(db, scope, every, vectors=True))


def _make_rows(of: int, named: Iterable[Named]) -> list[tuple[int, str, int, int]]:
    return [(of, key, access, entity) for name, access, entity in check_each(named) for key in keys(name)]
