"""Match entities by the keys of their names, the same on every engine and across cells.

A store finds entities by key and returns them with the vectors of their names. This module lists the matches and
computes the cosine of each. It does not decide whether two entities are the same.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from waylore.types.knowledge import Entity, SimilarEntities, Vector


def list_keys(keys: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return all keys of all entities, each once."""
    return tuple(dict.fromkeys(key for keys_of_one in keys.values() for key in keys_of_one))


def find_others(
    keys: Mapping[str, Sequence[str]], entities: Mapping[str, Sequence[str]], *, max_per_key: int
) -> dict[str, dict[str, str]]:
    """Return, for each entity, the others that share a key with it, and the first key that they share.

    Keys that more than `max_per_key` others have are skipped.
    """
    found: dict[str, dict[str, str]] = {}
    for entity, own_keys in keys.items():
        for key in own_keys:
            sharing = [id_ for id_ in entities.get(key, ()) if id_ != entity]
            if 0 < len(sharing) <= max_per_key:
                found[entity] = dict.fromkeys(sharing, key) | found.get(entity, {})
    return found


def pair_entities(
    others: Mapping[str, Mapping[str, str]], entities: Mapping[str, Entity]
) -> dict[str, tuple[SimilarEntities, ...]]:
    """Return the matches of known entities with the cosine of their names, by the first entity."""
    pairs = {
        id_: [
            SimilarEntities(entities[id_], entities[other], key, _cosine(entities[id_].vector, entities[other].vector))
            for other, key in keys.items()
            if other in entities
        ]
        for id_, keys in others.items()
        if id_ in entities
    }
    return {id_: tuple(sorted(found, key=lambda pair: pair.other.id)) for id_, found in pairs.items() if found}


def _cosine(one: Vector | None, other: Vector | None) -> float | None:
    if one is None or other is None or len(one) != len(other):
        return None
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other)) or 1.0
    return round(float(one @ other) / lengths, 6)
