"""Keys of names in the PostgreSQL store: an index by which entities whose names look alike find each other.

Kept for each permission, as names are, so that a spelling that the caller may not see finds nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from weft.naming import keys
from weft.store import codes, likeness
from weft.store.postgres_reading import entities
from weft.store.postgres_scope import Scope, by_ids, delete, many
from weft.store.postgres_server import Connection
from weft.types import Alike, Vector, identity

Named: TypeAlias = tuple[str, int, str]  # what a document calls an entity, its permission, the entity


def add_keys(db: Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    many(db, "add_key", into, _rows(named))


def remove_keys(db: Connection, of: int, named: Iterable[Named]) -> None:
    """Take away what documents that go had brought."""
    rows = [(key, access, entity, -count) for key, access, entity, count in _rows(named)]
    many(db, "add_key", of, rows)
    delete(db, "delete_unused_key", of, [key for key, *_ in rows])


def alike(
    db: Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> Mapping[str, tuple[Alike, ...]]:
    """For each entity that asks with keys, the others that have one of them."""
    others = likeness.others(asked, _having(db, scope, asked, most), most)
    asking = {id_: id_ for id_ in others}
    every = [*asking, *(other for found in others.values() for other in found)]
    found = entities(db, scope, every)
    return likeness.alike(asking, others, found, _vectors(db, scope, list(found)))


def _rows(named: Iterable[Named]) -> list[tuple[str, int, str, int]]:
    counts = Counter(
        (identity("key", key), access, entity) for name, access, entity in named for key in keys(name)
    )
    return [(*row, count) for row, count in sorted(counts.items())]


def _having(
    db: Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> dict[str, dict[str, str]]:
    """The entities that have each key."""
    wanted = {identity("key", key): key for asked_keys in asked.values() for key in asked_keys}
    having: dict[str, dict[str, str]] = defaultdict(dict)
    for key, entity in by_ids(db, "entities_by_keys", wanted, **scope.bindings, cap=most + 2):
        having[wanted[key.hex()]][entity.hex()] = entity.hex()
    return having


def _vectors(db: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Vector]:
    found = by_ids(db, "entity_vectors", ids, collection=scope.collection.key)
    table = codes.unhalved((blob for _, blob in found), scope.collection.statistics.dimension or 1)
    return {id_.hex(): vector for (id_, _), vector in zip(found, table, strict=True)}
