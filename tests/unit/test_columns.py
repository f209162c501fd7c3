"""Columns are the same as the objects that they are made of, however they are joined and chosen."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.samples import make_fact
from waylore.types.columns import (
    FactColumns,
    MentionColumns,
    join_facts,
    join_mentions,
    to_fact_columns,
    to_mention_columns,
    unique_facts,
)
from waylore.types.knowledge import Fact, Mention, Vector

facts = st.builds(make_fact, st.sampled_from("ABC"), st.sampled_from("pq"), st.sampled_from("ABC"))
mentions = st.builds(Mention, st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 9), st.booleans())
fact_groups = st.dictionaries(st.sampled_from("abc"), st.lists(facts, min_size=1).map(tuple))
mention_groups = st.dictionaries(st.sampled_from("abc"), st.lists(mentions, min_size=1).map(tuple))


@given(fact_groups)
def test_facts_are_a_mapping_of_what_was_given(groups: dict[str, tuple[Fact, ...]]) -> None:
    columns = to_fact_columns(groups)
    assert dict(columns) == groups
    assert list(columns) == list(groups)
    assert columns.size == sum(map(len, groups.values()))
    assert columns.ids == tuple(fact.id for of_one in groups.values() for fact in of_one)


@given(st.lists(fact_groups, max_size=3))
def test_joined_facts_follow_each_other(parts: list[dict[str, tuple[Fact, ...]]]) -> None:
    joined = join_facts([to_fact_columns(part) for part in parts])
    given_facts = [fact for part in parts for of_one in part.values() for fact in of_one]
    assert [joined.make(place) for place in range(joined.size)] == given_facts
    kept = {fact.id: fact for fact in given_facts}
    once = unique_facts([to_fact_columns(part) for part in parts])
    assert [once.make(place) for place in range(once.size)] == list(kept.values())


@given(fact_groups)
def test_taken_facts_have_the_given_order(groups: dict[str, tuple[Fact, ...]]) -> None:
    columns = to_fact_columns(groups)
    places = list(range(columns.size))[::-2]
    taken = columns.take(places)
    assert [taken.make(place) for place in range(taken.size)] == [columns.make(place) for place in places]
    assert taken.weights.tolist() == [columns.make(place).weight for place in places]


@given(st.lists(mention_groups, min_size=1, max_size=3))
def test_mentions_are_what_was_given(parts: list[dict[str, tuple[Mention, ...]]]) -> None:
    joined = join_mentions([to_mention_columns(part) for part in parts])
    assert [joined.make(place) for place in range(joined.size)] == [
        mention for part in parts for of_one in part.values() for mention in of_one
    ]
    assert dict(to_mention_columns(parts[0])) == parts[0]


class Source:
    """Facts that are made when they are looked up."""

    def make_fact(self, place: int, vector: Vector | None) -> Fact:
        return make_fact("Ada", "knows", f"{place} {vector}")

    def get_names(self, place: int) -> tuple[str, str]:
        return "Ada", str(place)


def test_vector_belongs_to_its_fact_and_may_be_missing() -> None:
    ada, kiel = make_fact("Ada", "knows", "Byron"), make_fact("Kiel", "has", "boats")
    embedded = FactColumns(
        ("a",),
        (ada.id,),
        (ada.subject_id,),
        (ada.object_id,),
        weights=np.array([5.0]),
        confidences=np.array([1.0]),
        sources=np.array([1]),
        statuses=np.array([1]),
        recorded_at=np.array([0]),
        vectors=np.array([[0.6, 0.8]], np.float32),
        has_vector=np.array([True]),
        is_typed=np.array([True]),
        rows=((Source(), 7),),
    )
    joined = join_facts([to_fact_columns({"k": [kiel]}), embedded])
    assert joined.has_vector.tolist() == [False, True]
    assert joined.vectors.tolist() == [[0.0, 0.0], np.array([0.6, 0.8], np.float32).tolist()]
    assert [joined.make(place).object for place in (0, 1)] == ["boats", "7 [0.6 0.8]"]
    assert joined.take([1]).make(0).object == "7 [0.6 0.8]"
    assert [joined.get_names(place) for place in (0, 1)] == [("Kiel", "boats"), ("Ada", "7")]


def test_no_rows_are_an_empty_mapping() -> None:
    assert (dict(FactColumns()), dict(MentionColumns()), join_facts([]).size) == ({}, {}, 0)
