"""Which entities share a key of their names, and how near they are: pure, and the same on every engine.

An engine brings what it found by key, under whatever it tells entities apart by.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from weft.types import Alike, Entity, Vector

Key = TypeVar("Key", bound=Hashable)


def others(
    asked: Mapping[str, Sequence[str]], having: Mapping[str, Mapping[Key, str]], most: int
) -> dict[str, dict[Key, str]]:
    """By the entity that asks, the others with the first of its keys that they have.

    `having` are the identities of those that have a key; more than `most` others are none.
    """
    found: dict[str, dict[Key, str]] = defaultdict(dict)
    for asking, asked_keys in asked.items():
        for key in asked_keys:
            those = [other for other, id_ in having.get(key, {}).items() if id_ != asking]
            if 0 < len(those) <= most:
                found[asking] = dict.fromkeys(those, key) | found[asking]
    return dict(found)


def alike(
    asking: Mapping[str, Key],
    others: Mapping[str, Mapping[Key, str]],
    entities: Mapping[Key, Entity],
    vectors: Mapping[Key, Vector],
) -> dict[str, tuple[Alike, ...]]:
    """Those that the caller may see, with how near they are."""
    found: dict[str, list[Alike]] = defaultdict(list)
    for id_, own in asking.items():
        for other, key in others[id_].items():
            if own in entities and other in entities:
                cosine = _cosine(vectors.get(own), vectors.get(other))
                found[id_].append(Alike(entities[own], entities[other], key, cosine))
    return {id_: tuple(sorted(them, key=lambda a: a.other.id)) for id_, them in found.items()}


def _cosine(one: Vector | None, other: Vector | None) -> float | None:
    if one is None or other is None:
        return None
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other)) or 1.0
    return round(float(one @ other) / lengths, 6)
