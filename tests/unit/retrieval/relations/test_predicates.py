"""Test how predicates are matched: by stems, by the table of synonyms, by vectors, and never with their opposites."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.protocols import Vectors
from waylore.retrieval.relations.predicates import PredicateMatcher, compare_predicates
from waylore.text import normalise
from waylore.types.knowledge import Fact

PREDICATES = ["depends on", "needs", "is used by", "owns", "owner", "not needs", "flies to", "reports to"]


def learn(asked: Sequence[str], *predicates: str, cosines: dict[str, float] | None = None) -> PredicateMatcher:
    """Return a matcher that has learned facts with these predicates, each once."""
    matcher = PredicateMatcher(asked, None if cosines is None else embed_by(cosines))
    matcher.learn(make_fact(each, str(number)) for number, each in enumerate(predicates))
    return matcher


def make_fact(predicate: str, id_: str = "") -> Fact:
    return Fact(id_, "a", "Ada", predicate, "B", "b")


def find(matcher: PredicateMatcher, predicate: str) -> str | None:
    return matcher.find(make_fact(predicate))


def embed_by(cosines: dict[str, float]):  # type: ignore[no-untyped-def]  # a function with a closure
    """Return an embedder in which some texts have a cosine with every text that has cosine 1, and others 0."""

    def embed(texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), len(texts) + 1), np.float32)
        for number, text in enumerate(texts):
            shared = cosines.get(text, 0.0)
            rows[number, 0], rows[number, number + 1] = shared, np.sqrt(1 - shared**2)
        return rows

    return embed


@pytest.mark.parametrize(
    ("asked", "predicate", "expected"),
    [
        ("depends on", "depends_on", "same"),
        ("depends upon", "is dependent on", "same"),
        ("depends on", "needs", "same"),
        ("depends on", "relies on", "same"),
        ("depends on", "is built on", "same"),
        ("depends on", "requires", "same"),
        ("depends on", "is used by", "inverse"),
        ("depends", "depends on", "same"),
        ("owns", "is owned by", "inverse"),
        ("owns", "owner", "inverse"),
        ("owner", "owns", "inverse"),
        ("owns", "maintains", "same"),
        ("chairs", "chair", "inverse"),
        ("paints", "is painted by", "inverse"),
        ("stores", "stores in", "same"),
        ("runs", "runs on", None),
        ("manages", "reports to", None),
        ("likes", "dislikes", None),
        ("depends on", "owns", None),
    ],
)
def test_words_and_table_decide(asked: str, predicate: str, expected: str | None) -> None:
    assert compare_predicates(normalise(asked), normalise(predicate)) == expected


@given(st.sampled_from(PREDICATES), st.sampled_from(PREDICATES))
def test_matching_is_symmetric(one: str, other: str) -> None:
    assert compare_predicates(one, other) == compare_predicates(other, one)


def test_denials_match_nothing() -> None:
    assert find(learn(["needs"], "not needs", "needs"), "not needs") is None
    assert find(learn([], "not needs"), "not needs") is None


def test_vectors_decide_what_words_do_not_know() -> None:
    near = learn(["flies to"], "travels to", "sinks", cosines={"flies to": 0.9, "travels to": 0.9})
    assert (find(near, "travels to"), find(near, "sinks")) == ("same", None)
    far = learn(["flies to"], "travels to", cosines={"flies to": 0.2, "travels to": 0.2})
    assert find(far, "travels to") is None


def test_vectors_do_not_join_opposites_and_known_relations() -> None:
    cosines = {"pleases": 0.9, "displeases": 0.9, "owns": 0.9, "calls": 0.9}
    assert find(learn(["pleases"], "displeases", cosines=cosines), "displeases") is None
    assert find(learn(["owns"], "calls", cosines=cosines), "calls") is None


def test_answer_lists_what_matched_and_what_is_near() -> None:
    cosines = {"needs": 0.2, "eats": 0.2}
    matcher = learn(["needs"], "requires", "Requires", "is needed by", "eats", "sinks", cosines=cosines)
    counts = [(each.predicate, each.facts, each.is_inverse) for each in matcher.count_matched()]
    assert counts == [("requires", 2, False), ("is needed by", 1, True)]
    assert [each.predicate for each in matcher.count_unmatched()] == ["eats", "sinks"]


def test_facts_are_counted_once() -> None:
    fact = make_fact("needs", "1")
    matcher = PredicateMatcher(["needs"], None)
    matcher.learn([fact])
    matcher.learn([fact])
    assert [each.facts for each in matcher.count_matched()] == [1]


def test_name_of_the_subject_is_no_part_of_a_predicate() -> None:
    matcher = learn(["depends on"], "Ada is built on", "Adam is built on", "currently depends on")
    assert [find(matcher, name) for name in ("Ada is built on", "Adam is built on")] == ["same", None]
    assert matcher.spellings == ["depends on", "Ada is built on", "currently depends on"]


def test_column_with_a_capital_is_a_noun() -> None:
    matcher = learn(["chairs"], "chairs", "Chairs", "chair", "CHAIRS")
    assert [find(matcher, name) for name in ("chairs", "Chairs", "chair")] == ["same", "inverse", "inverse"]


def test_column_is_found_by_its_own_name() -> None:
    matcher = learn(["Chairs"], "chairs", "Chairs", "chair")
    assert [find(matcher, name) for name in ("chairs", "Chairs", "chair")] == ["same", "same", "same"]
    assert find(learn(["works at"], "info employer"), "info employer") == "same"
    assert find(learn(["needs"], "Needs"), "Needs") == "same"
