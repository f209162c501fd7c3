"""Keys of names in the PostgreSQL store: an index by which entities whose names look alike find each other.

Kept for each permission, as names are, so that a spelling that the caller may not see finds nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from weft.naming import keys
from weft.store import likeness
from weft.store.postgres_reading import entities
from weft.store.postgres_scope import Scope, by_ids, delete, many
from weft.store.postgres_server import Connection
from weft.types import Alike, identity

Named: TypeAlias = tuple[str, int, str]  # what a document calls an entity, its permission, the entity


def add_keys(db: Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    many(db, "add_key", into, _rows(named))


def remove_keys(db: Connection, of: int, named: Iterable[Named]) -> None:
    """Take away what documents that go had brought."""
    rows = [(key, access, entity, -count) for key, access, entity, count in _rows(named)]
    many(db, "add_key", of, rows)
    delete(db, "delete_unused_key", of, [key for key, *_ in rows])


def keyed(db: Connection, scope: Scope, keys: Sequence[str], most: int) -> Mapping[str, tuple[str, ...]]:
    """Entities by the keys of their names; of a key that more than `most` have, more than `most`."""
    wanted = {identity("key", key): key for key in keys}
    found: dict[str, set[str]] = defaultdict(set)
    for key, entity in by_ids(db, "entities_by_keys", wanted, **scope.bindings, cap=most + 1):
        found[wanted[key.hex()]].add(entity.hex())
    return {key: tuple(sorted(ids)) for key, ids in found.items()}


def alike(
    db: Connection, scope: Scope, asked: Mapping[str, Sequence[str]], most: int
) -> Mapping[str, tuple[Alike, ...]]:
    """For each entity that asks with keys, the others that have one of them."""
    having = keyed(db, scope, likeness.wanted(asked), most + 1)
    others = likeness.others(asked, having, most=most)
    every = [*others, *(id_ for found in others.values() for id_ in found)]
    return likeness.alike(others, entities(db, scope, every, vectors=True))


def _rows(named: Iterable[Named]) -> list[tuple[str, int, str, int]]:
    counts = Counter(
        (identity("key", key), access, entity) for name, access, entity in named for key in keys(name)
    )
    return [(*row, count) for row, count in sorted(counts.items())]
