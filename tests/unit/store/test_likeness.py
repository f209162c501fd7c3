"""Who shares a key with whom."""

import numpy as np
import pytest

from weft.store.likeness import alike, others
from weft.types import Entity

ASKED = {"a": ["k1", "k2"], "b": ["k2"]}


def test_others_have_the_first_key_that_they_share_and_nobody_is_his_own_other() -> None:
    having = {"k1": {1: "a", 2: "b"}, "k2": {1: "a", 2: "b", 3: "c"}}
    assert others(ASKED, having, 2) == {"a": {2: "k1", 3: "k2"}, "b": {1: "k2", 3: "k2"}}


def test_a_key_that_too_many_share_finds_none_of_them() -> None:
    having = {"k1": {2: "b"}, "k2": {1: "a", 2: "b", 3: "c"}}
    assert others(ASKED, having, 1) == {"a": {2: "k1"}}
    assert others({}, having, 1) == {}


def test_those_who_cannot_be_seen_are_left_out_and_nearness_is_told_where_it_is_known() -> None:
    entities = {n: Entity(id_, id_) for n, id_ in ((1, "a"), (2, "b"), (4, "d"))}
    vectors = {1: np.array([1, 0], dtype=np.float32), 2: np.array([2, 2], dtype=np.float32)}
    found = alike({"a": 1}, {"a": {4: "k", 3: "k", 2: "k"}}, entities, vectors)
    assert [(one.other.id, one.key) for one in found["a"]] == [("b", "k"), ("d", "k")]
    assert found["a"][0].cosine == pytest.approx(0.707107)
    assert found["a"][1].cosine is None
