"""Keys of names in the PostgreSQL store: an index by which entities whose names look alike find each other.

Kept for each permission, as names are, so that a spelling that the caller may not see finds nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from waylore.names import keys
from waylore.store import similar_names
from waylore.store.postgres import fetch as reading
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import Scope, delete, many
from waylore.store.postgres.steps import Steps, array, known, rows
from waylore.store.rows import VOICES, grouped
from waylore.types.identity import identity
from waylore.types.knowledge import Alike

Named: TypeAlias = tuple[str, int, str]  # what a document calls an entity, its permission, the entity


def add_keys(db: Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    many(db, "add_key", into, _rows(named))


def remove_keys(db: Connection, of: int, named: Iterable[Named]) -> None:
    """Take away what documents that go had brought."""
    rows = [(key, access, entity, -count) for key, access, entity, count in _rows(named)]
    many(db, "add_key", of, rows)
    delete(db, "delete_unused_key", of, [key for key, *_ in rows])


def keyed(scope: Scope, keys: Sequence[str], *, most: int) -> Steps[Mapping[str, tuple[str, ...]]]:
    """Entities by the keys of their names; of a key that more than `most` have, more than `most`."""
    wanted = {identity("key", key): key for key in keys}
    return _having(wanted, (yield from rows("entities_by_keys", wanted, **scope.bindings, cap=most + 1)))


def alike(
    scope: Scope, asked: Mapping[str, Sequence[str]], *, most: int
) -> Steps[Mapping[str, tuple[Alike, ...]]]:
    """For each entity that asks with keys, the others that have one of them."""
    wanted = {identity("key", key): key for key in similar_names.wanted(asked)}
    bound = {**scope.bindings, "cap": most + 2, "asking": array(known(asked)), "voices": VOICES}
    found = yield from rows("profiles_by_keys", wanted, **bound)
    having = _having(wanted, {(key, entity) for entity, *_, keys in found for key in keys or ()})
    vectors = {row[0]: row[8] for row in found if row[8] is not None}
    entities = reading.with_vectors(scope, [row[:8] for row in found], list(vectors.items()))
    return similar_names.alike(similar_names.others(asked, having, most=most), entities)


def _having(wanted: Mapping[str, str], pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    found = grouped((wanted[key.hex()], entity.hex()) for key, entity in pairs)
    return {key: tuple(sorted(set(ids))) for key, ids in found.items()}


def _rows(named: Iterable[Named]) -> list[tuple[str, int, str, int]]:
    counts = Counter(
        (identity("key", key), access, entity) for name, access, entity in named for key in keys(name)
    )
    return [(*row, count) for row, count in sorted(counts.items())]
