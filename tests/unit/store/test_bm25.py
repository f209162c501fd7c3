"""BM25 as the textbook has it, over what the store keeps of a passage's terms."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import StoreError
from waylore.store import bm25 as lexicon
from waylore.store.bm25 import K1, B, bm25, packed, rarest_first

WORDS = st.integers(1, 12)
PASSAGES = st.lists(st.lists(WORDS, max_size=30), min_size=1, max_size=8)


def textbook(passages: list[list[int]], question: set[int], *, most: int = 63) -> list[float]:
    """Robertson and Zaragoza's formula, one passage and one term after another."""
    average = max(sum(map(len, passages)) / len(passages), 1.0)
    scores = []
    for passage in passages:
        score = 0.0
        for term in question:
            frequency = sum(term in other for other in passages)
            idf = math.log(1 + (len(passages) - frequency + 0.5) / (frequency + 0.5))
            count = min(passage.count(term), most)
            score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * len(passage) / average))
        scores.append(score)
    return scores


def scored(passages: list[list[int]], question: set[int]) -> list[float]:
    found = bm25(
        [(len(passage), packed(Counter(passage))) for passage in passages],
        [(term, sum(term in passage for passage in passages)) for term in question],
        passages=len(passages),
        average_length=max(sum(map(len, passages)) / len(passages), 1.0),
    )
    return [float(score) for score in found]


@given(PASSAGES, st.sets(WORDS, min_size=1))
def test_scores_are_the_textbook_s(passages: list[list[int]], question: set[int]) -> None:
    assert scored(passages, question) == pytest.approx(textbook(passages, question))


def test_a_passage_without_a_term_of_the_question_scores_nothing() -> None:
    assert scored([[1, 2], [3], []], {3}) == [0.0, pytest.approx(textbook([[1, 2], [3], []], {3})[1]), 0.0]


def test_a_term_counts_63_times_at_most() -> None:
    often, oftener = [[1] * 63 + [2] * 7, [3]], [[1] * 70, [3]]
    assert scored(oftener, {1}) == scored(often, {1})
    assert scored(oftener, {1}) == pytest.approx(textbook(oftener, {1}))


def test_no_candidates_have_no_scores() -> None:
    assert bm25([], [(1, 1)], passages=3, average_length=2.0).shape == (0,)


@given(st.dictionaries(st.integers(0, 2**26 - 1), st.integers(1, 1_000)))
def test_packed_terms_are_in_order_with_capped_counts(counts: dict[int, int]) -> None:
    cells = np.frombuffer(packed(Counter(counts)), dtype=np.uint32).tolist()
    assert [(cell >> 6, cell & 63) for cell in cells] == [(t, min(counts[t], 63)) for t in sorted(counts)]


@pytest.mark.parametrize(
    ("reach", "expected"),
    [(0, 1), (5, 1), (6, 2), (15, 2), (16, 3)],
)
def test_the_rarest_terms_bring_candidates_until_the_reach_is_spent(reach: int, expected: int) -> None:
    terms = [("common", 10), ("rare", 2), ("less", 4)]
    assert rarest_first(terms, reach=reach) == ["rare", "less", "common"][:expected]


def test_terms_that_are_as_rare_come_by_name() -> None:
    assert rarest_first([("b", 1), ("a", 1)], reach=1) == ["a"]
    assert rarest_first([], reach=1) == []


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 100)), st.integers(0, 300))
def test_no_rarer_term_is_left_out(terms: dict[str, int], reach: int) -> None:
    chosen = rarest_first([*terms.items()], reach=reach)
    left = [terms[term] for term in terms if term not in chosen]
    assert all(terms[term] <= least for term in chosen for least in left)
    assert len(chosen) <= 1 or sum(terms[term] for term in chosen) <= reach


def test_more_terms_than_can_be_told_apart_are_refused() -> None:
    assert lexicon.rows(lexicon.packed(Counter({lexicon.MOST_TERMS - 1: 2}))) == [lexicon.MOST_TERMS - 1]
    with pytest.raises(StoreError, match="another collection"):
        lexicon.packed(Counter({lexicon.MOST_TERMS: 1}))
