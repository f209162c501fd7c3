"""Keys of names in the SQLite store: an index by which entities whose names look alike find each other.

Kept for each permission, as names are, so that a spelling that the caller may not see finds nothing. Pairs are
not kept: they are found when asked for, so neither the order of writing nor another model changes them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import apsw

from waylore.names import keys
from waylore.store import similar_names
from waylore.store.sql import load_queries
from waylore.store.sqlite.fetch import entities
from waylore.store.sqlite.scope import Scope
from waylore.types.knowledge import Alike

SQL = load_queries("waylore.store.sqlite")
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


def keyed(db: apsw.Connection, scope: Scope, keys: Sequence[str], most: int) -> Mapping[str, tuple[str, ...]]:
    """Entities by the keys of their names; of a key that more than `most` have, more than `most`."""
    if not keys:
        return {}
    bound = {**scope.bindings, "keys": apsw.carray(tuple(dict.fromkeys(keys))), "cap": most + 1}
    found: dict[str, set[str]] = defaultdict(set)
    for key, id_ in db.execute(SQL["entities_by_keys"], bound):
        found[key].add(id_.hex())
    return {key: tuple(sorted(ids)) for key, ids in found.items()}


def alike(
    db: apsw.Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> Mapping[str, tuple[Alike, ...]]:
    """For each entity that asks with keys, the others that have one of them."""
    having = keyed(db, scope, similar_names.wanted(asked), most + 1)
    others = similar_names.others(asked, having, most=most)
    every = [*others, *(id_ for found in others.values() for id_ in found)]
    return similar_names.alike(others, entities(db, scope, every, vectors=True))


def _rows(of: int, named: Iterable[Named]) -> list[tuple[int, str, int, int]]:
    return [(of, key, access, entity) for name, access, entity in named for key in keys(name)]
