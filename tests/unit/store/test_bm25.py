"""BM25 scores and packed terms."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.store import bm25
from waylore.store.bm25 import K1, B, choose_rarest, find_places, pack_sequence, pack_terms, score

WORDS = st.integers(1, 12)
PASSAGES = st.lists(st.lists(WORDS, max_size=30), min_size=1, max_size=8)


def textbook(passages: list[list[int]], question: set[int], *, max_count: int = 63) -> list[float]:
    """Compute Robertson and Zaragoza's formula, one passage and one term after another."""
    average = max(sum(map(len, passages)) / len(passages), 1.0)
    scores = []
    for passage in passages:
        score = 0.0
        for term in question:
            frequency = sum(term in other for other in passages)
            idf = math.log(1 + (len(passages) - frequency + 0.5) / (frequency + 0.5))
            count = min(passage.count(term), max_count)
            score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * len(passage) / average))
        scores.append(score)
    return scores


def compute_scores(passages: list[list[int]], question: set[int]) -> list[float]:
    scores = score(
        [(len(passage), pack_terms(Counter(passage))) for passage in passages],
        [(term, sum(term in passage for passage in passages)) for term in question],
        passages=len(passages),
        average_length=max(sum(map(len, passages)) / len(passages), 1.0),
    )
    return [float(score) for score in scores]


@given(PASSAGES, st.sets(WORDS, min_size=1))
def test_scores_equal_textbook_formula(passages: list[list[int]], question: set[int]) -> None:
    assert compute_scores(passages, question) == pytest.approx(textbook(passages, question))


def test_passage_without_query_term_scores_zero() -> None:
    assert compute_scores([[1, 2], [3], []], {3}) == [
        0.0,
        pytest.approx(textbook([[1, 2], [3], []], {3})[1]),
        0.0,
    ]


def test_term_counts_at_most_63_times() -> None:
    often, oftener = [[1] * 63 + [2] * 7, [3]], [[1] * 70, [3]]
    assert compute_scores(oftener, {1}) == compute_scores(often, {1})
    assert compute_scores(oftener, {1}) == pytest.approx(textbook(oftener, {1}))


def test_no_candidates_give_no_scores() -> None:
    assert score([], [(1, 1)], passages=3, average_length=2.0).shape == (0,)


@given(st.dictionaries(st.integers(0, 2**26 - 1), st.integers(1, 1_000)))
def test_packed_terms_are_sorted_with_limited_counts(counts: dict[int, int]) -> None:
    cells = np.frombuffer(pack_terms(Counter(counts)), dtype=np.uint32).tolist()
    assert [(cell >> 6, cell & 63) for cell in cells] == [(t, min(counts[t], 63)) for t in sorted(counts)]


@pytest.mark.parametrize(
    ("max_postings", "expected"),
    [(0, 1), (5, 1), (6, 2), (15, 2), (16, 3)],
)
def test_choose_rarest_stops_at_max_postings(max_postings: int, expected: int) -> None:
    terms = [("common", 10), ("rare", 2), ("less", 4)]
    assert choose_rarest(terms, max_postings=max_postings) == ["rare", "less", "common"][:expected]


def test_equally_rare_terms_are_sorted_by_name() -> None:
    assert choose_rarest([("b", 1), ("a", 1)], max_postings=1) == ["a"]
    assert choose_rarest([], max_postings=1) == []


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 100)), st.integers(0, 300))
def test_choose_rarest_skips_no_rarer_term(terms: dict[str, int], max_postings: int) -> None:
    chosen = choose_rarest([*terms.items()], max_postings=max_postings)
    left = [terms[term] for term in terms if term not in chosen]
    assert all(terms[term] <= least for term in chosen for least in left)
    assert len(chosen) <= 1 or sum(terms[term] for term in chosen) <= max_postings


ROWS = st.integers(0, 4).flatmap(lambda low: st.sampled_from([low, 2**16 + low, 2**26 + low, 2**31 - 1 - low]))


@given(st.dictionaries(ROWS, st.integers(1, 100)))
def test_unpacked_terms_are_the_packed_ones(counts: dict[int, int]) -> None:
    packed = pack_terms(Counter(counts))
    rows, found = bm25.unpack_counts(packed)
    assert bm25.unpack_terms(packed) == rows.tolist() == sorted(counts)
    assert found.tolist() == [min(counts[row], 63) for row in sorted(counts)]


@given(st.lists(st.lists(ROWS, max_size=30), min_size=1, max_size=8), st.sets(ROWS, min_size=1))
def test_scores_of_terms_above_26_bits_equal_textbook_formula(passages: list[list[int]], question: set[int]) -> None:
    assert compute_scores(passages, question) == pytest.approx(textbook(passages, question))


@given(PASSAGES, st.lists(st.integers(1, 20), unique=True))
def test_places_of_terms_are_found(passages: list[list[int]], wanted: list[int]) -> None:
    found = find_places([pack_sequence(passage) for passage in passages], wanted)
    rows = [row for passage in passages for row in passage]
    assert found.tolist() == [wanted.index(row) if row in wanted else -1 for row in rows]
