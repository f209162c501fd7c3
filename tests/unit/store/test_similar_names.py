"""Who shares a key with whom."""

import numpy as np
import pytest

from waylore.store.similar_names import alike, others, wanted
from waylore.types.knowledge import Entity

ASKED = {"a": ["k1", "k2"], "b": ["k2"]}


def test_every_key_is_wanted_once() -> None:
    assert wanted(ASKED) == ("k1", "k2")


def test_others_have_the_first_key_that_they_share_and_nobody_is_his_own_other() -> None:
    having = {"k1": ("a", "b"), "k2": ("a", "b", "c")}
    assert others(ASKED, having, most=2) == {"a": {"b": "k1", "c": "k2"}, "b": {"a": "k2", "c": "k2"}}


def test_a_key_that_too_many_share_finds_none_of_them() -> None:
    having = {"k1": ("b",), "k2": ("a", "b", "c")}
    assert others(ASKED, having, most=1) == {"a": {"b": "k1"}}
    assert others({}, having, most=1) == {}


def test_those_who_cannot_be_seen_are_left_out_and_nearness_is_told_where_it_is_known() -> None:
    vectors = {"a": np.array([1, 0], dtype=np.float32), "b": np.array([2, 2], dtype=np.float32)}
    entities = {id_: Entity(id_, id_, vector=vectors.get(id_)) for id_ in "abd"}
    found = alike({"a": {"d": "k", "c": "k", "b": "k"}}, entities)
    assert [(one.other.id, one.key) for one in found["a"]] == [("b", "k"), ("d", "k")]
    assert found["a"][0].cosine == pytest.approx(0.707107)
    assert found["a"][1].cosine is None
