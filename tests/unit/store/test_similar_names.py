"""Pairs of entities whose names share a key."""

import numpy as np
import pytest

from waylore.store.similar_names import find_others, list_keys, pair_entities
from waylore.types.knowledge import Entity

KEYS = {"a": ["k1", "k2"], "b": ["k2"]}


def test_list_keys_returns_each_key_once() -> None:
    assert list_keys(KEYS) == ("k1", "k2")


def test_pairs_use_first_shared_key_and_exclude_self() -> None:
    entities_of = {"k1": ("a", "b"), "k2": ("a", "b", "c")}
    assert find_others(KEYS, entities_of, max_per_key=2) == {
        "a": {"b": "k1", "c": "k2"},
        "b": {"a": "k2", "c": "k2"},
    }


def test_key_that_too_many_share_finds_none() -> None:
    entities_of = {"k1": ("b",), "k2": ("a", "b", "c")}
    assert find_others(KEYS, entities_of, max_per_key=1) == {"a": {"b": "k1"}}
    assert find_others({}, entities_of, max_per_key=1) == {}


def test_pairs_skip_unknown_entities_and_allow_missing_vectors() -> None:
    vectors = {"a": np.array([1, 0], dtype=np.float32), "b": np.array([2, 2], dtype=np.float32)}
    entities = {id_: Entity(id_, id_, vector=vectors.get(id_)) for id_ in "abd"}
    found = pair_entities({"a": {"d": "k", "c": "k", "b": "k"}}, entities)
    assert [(one.other.id, one.key) for one in found["a"]] == [("b", "k"), ("d", "k")]
    assert found["a"][0].cosine == pytest.approx(0.707107)
    assert found["a"][1].cosine is None
