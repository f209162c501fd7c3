"""Index the keys of names in the PostgreSQL store, to find entities with similar names.

Keys are stored for each permission, as names are, so that a spelling that the caller may not see finds no entity.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from waylore.deadline import check_each
from waylore.names import keys
from waylore.store import similar_names
from waylore.store.postgres import fetch as reading
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import PostgresScope, run_many, run_without_rows
from waylore.store.postgres.steps import Steps, filter_ids, read_rows, to_array
from waylore.store.rows import MAX_DESCRIPTIONS, group_pairs
from waylore.types.identity import identity
from waylore.types.knowledge import SimilarEntities

Named: TypeAlias = tuple[
    str, int, str
]  # a name that a document gives to an entity, the permission, the id of the entity


def add_keys(db: Connection, into: int, named: Iterable[Named]) -> None:
    """Index the names that documents give to entities."""
    run_many(db, "add_key", into, _make_rows(named))


def remove_keys(db: Connection, of: int, named: Iterable[Named]) -> None:
    """Remove the keys of names that removed documents gave to entities."""
    rows = [(key, access, entity, -count) for key, access, entity, count in _make_rows(named)]
    run_many(db, "add_key", of, rows)
    run_without_rows(db, "delete_unused_key", of, [key for key, *_ in rows])


def find_entities_by_key(
    scope: PostgresScope, keys: Sequence[str], *, max_per_key: int
) -> Steps[Mapping[str, tuple[str, ...]]]:
    """Find the ids of entities by the keys of their names.

    If more than `max_per_key` entities share a key, more than `max_per_key` of them are returned.
    """
    wanted = {identity("key", key): key for key in keys}
    return _group_entities(
        wanted, (yield from read_rows("entities_by_keys", wanted, **scope.bindings, cap=max_per_key + 1))
    )


def find_similar_entities(
    scope: PostgresScope, keys: Mapping[str, Sequence[str]], *, max_per_key: int
) -> Steps[Mapping[str, tuple[SimilarEntities, ...]]]:
    """Find, for each entity, others whose names have one of its keys."""
    wanted = {identity("key", key): key for key in similar_names.list_keys(keys)}
    bound = {
        **scope.bindings,
        "cap": max_per_key + 2,
        "asking": to_array(filter_ids(keys)),
        "voices": MAX_DESCRIPTIONS,
    }
    found = yield from read_rows("profiles_by_keys", wanted, **bound)
    by_key = _group_entities(wanted, {(key, entity) for entity, *_, own_keys in found for key in own_keys or ()})
    vectors = {row[0]: row[8] for row in found if row[8] is not None}
    entities = reading.build_entities([row[:8] for row in found], list(vectors.items()))
    return similar_names.pair_entities(similar_names.find_others(keys, by_key, max_per_key=max_per_key), entities)


def _group_entities(wanted: Mapping[str, str], pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    found = group_pairs((wanted[key.hex()], entity.hex()) for key, entity in pairs)
    return {key: tuple(sorted(set(ids))) for key, ids in found.items()}


def _make_rows(named: Iterable[Named]) -> list[tuple[str, int, str, int]]:
    counts = Counter(
        (identity("key", key), access, entity) for name, access, entity in check_each(named) for key in keys(name)
    )
    return [(*row, count) for row, count in sorted(counts.items())]
