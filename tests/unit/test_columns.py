"""Columns are the same as the objects that they are made of, however they are joined and chosen."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.samples import make_fact
from waylore.types.columns import (
    FactColumns,
    FactOrigin,
    MentionColumns,
    TurnColumns,
    join_facts,
    join_mentions,
    merge_turns,
    to_fact_columns,
    to_mention_columns,
    unique_facts,
)
from waylore.types.knowledge import Fact, Mention

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


class Source(FactOrigin):
    """Facts that are made when they are looked up."""

    def make_fact(self, row: int) -> Fact:
        return make_fact("Ada", "knows", f"{7 + row} {self.vectors[row]}")

    def get_words(self, row: int) -> tuple[str, str, str]:
        return "Ada", "knows", str(7 + row)


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
        has_vector=np.array([True]),
        is_typed=np.array([True]),
        is_dated=np.array([False]),
        origins=(Source(np.array([[0.6, 0.8]], np.float32)),),
        rows=np.array([0]),
    )
    joined = join_facts([to_fact_columns({"k": [kiel]}), embedded])
    assert joined.has_vector.tolist() == [False, True]
    assert joined.vectors.tolist() == [[0.0, 0.0], np.array([0.6, 0.8], np.float32).tolist()]
    assert [joined.make(place).object for place in (0, 1)] == ["boats", "7 [0.6 0.8]"]
    assert joined.take([1]).make(0).object == "7 [0.6 0.8]"
    assert [joined.get_words(place) for place in (0, 1)] == [("Kiel", "has", "boats"), ("Ada", "knows", "7")]
    words, places = joined.take([1, 0, 1]).find_words()
    assert sorted(words) == sorted({"Kiel", "has", "boats", "Ada", "knows", "7"})
    assert [words[place] for place in places[0]] == [words[place] for place in places[2]] == ["Ada", "knows", "7"]
    assert [words[place] for place in places[1]] == ["Kiel", "has", "boats"]
    assert joined.take_vectors(np.array([1, 0])).tolist() == joined.vectors[[1, 0]].tolist()


def test_no_rows_are_an_empty_mapping() -> None:
    assert (dict(FactColumns()), dict(MentionColumns()), join_facts([]).size) == ({}, {}, 0)


def make_turns(*keys: tuple[int, str, int, str], dimension: int = 2) -> TurnColumns:
    """Return turns by session, role, position and id, whose text, terms and vector repeat the position."""
    sessions, roles, positions, ids = zip(*keys, strict=True) if keys else ((), (), (), ())
    return TurnColumns(
        ids=ids,
        sessions=np.array(sessions, np.int64),
        positions=np.array(positions, np.int64),
        speakers=tuple(f"speaker {id_}" for id_ in ids),
        roles=roles,
        at=np.array(positions, np.int64) * 1_000,
        texts=tuple(f"text {id_}" for id_ in ids),
        tells_time=np.array([position % 2 for position in positions], np.bool_),
        sequence=np.array([position for position in positions for _ in range(position)], np.int32),
        sizes=np.array(positions, np.int64),
        codes=np.array([[position] * dimension for position in positions], np.int8).reshape(len(ids), dimension),
        terms=("job",),
        counts=np.array([len(ids)], np.int64),
        passages=10,
    )


def test_turns_of_parts_are_merged_in_order() -> None:
    one = make_turns((1, "user", 3, "c"), (2, "user", 1, "d"))
    other = make_turns((1, "assistant", 2, "b"), (1, "user", 1, "a"), (1, "user", 3, "c"))
    merged = merge_turns([one, other])
    assert merged.ids == ("b", "a", "c", "d")
    assert merged.texts == ("text b", "text a", "text c", "text d")
    assert merged.sessions.tolist() == [1, 1, 1, 2]
    assert merged.sequence.tolist() == [2, 2, 1, 3, 3, 3, 1]
    assert merged.sizes.tolist() == [2, 1, 3, 1]
    assert merged.tells_time.tolist() == [False, True, True, True]
    assert merged.codes.tolist() == [[2, 2], [1, 1], [3, 3], [1, 1]]
    assert (merged.counts.tolist(), merged.passages) == ([5], 20)


def test_merged_turns_without_vectors_are_zero() -> None:
    merged = merge_turns([make_turns((1, "user", 1, "a"), dimension=1), make_turns((1, "user", 2, "b"), dimension=3)])
    assert merged.codes.tolist() == [[0, 0, 0], [2, 2, 2]]
    assert merge_turns([make_turns(), make_turns()]).size == 0
