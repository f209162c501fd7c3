"""Which entities ask for each other by keys of their names: the same on every engine, and across cells.

A store says which entities have a key, and gives entities with the vectors of their names; what follows from
that is here. What a likeness amounts to is judged elsewhere.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from waylore.types.knowledge import Alike, Entity, Vector


def wanted(asked: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """All keys that are asked with, each once."""
    return tuple(dict.fromkeys(key for keys in asked.values() for key in keys))


def others(
    asked: Mapping[str, Sequence[str]], having: Mapping[str, Sequence[str]], *, most: int
) -> dict[str, dict[str, str]]:
    """By the entity that asks, the others with the first of its keys that they have; not of one of too many."""
    found: dict[str, dict[str, str]] = {}
    for asking, keys in asked.items():
        for key in keys:
            having_it = [id_ for id_ in having.get(key, ()) if id_ != asking]
            if 0 < len(having_it) <= most:
                found[asking] = dict.fromkeys(having_it, key) | found.get(asking, {})
    return found


def alike(
    others: Mapping[str, Mapping[str, str]], entities: Mapping[str, Entity]
) -> dict[str, tuple[Alike, ...]]:
    """Pairs of entities that are there, with the cosine of their names, by the one that asks."""
    found = {
        id_: [
            Alike(entities[id_], entities[other], key, _cosine(entities[id_].vector, entities[other].vector))
            for other, key in keys.items()
            if other in entities
        ]
        for id_, keys in others.items()
        if id_ in entities
    }
    return {id_: tuple(sorted(pairs, key=lambda a: a.other.id)) for id_, pairs in found.items() if pairs}


def _cosine(one: Vector | None, other: Vector | None) -> float | None:
    if one is None or other is None or len(one) != len(other):
        return None
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other)) or 1.0
    return round(float(one @ other) / lengths, 6)
