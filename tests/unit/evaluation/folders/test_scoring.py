"""Rankings of passages have the scores that were computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.folders.scoring import (
    DEPTH,
    QuestionScores,
    RankedHit,
    find_ranks,
    has_passage,
    make_row,
    run_sign_test,
    score_question,
)

QUOTE = GoldPassage("a.md", "one two three four five")
OTHER = GoldPassage("b.md", "red green blue")
RECALLS = st.dictionaries(st.text("abcdef", max_size=2), st.sampled_from([0.0, 0.5, 1.0]))


def make_scores(recalls: dict[str, float]) -> dict[str, QuestionScores]:
    return {id_: QuestionScores(recall, 0.0, 0.0, 0.0) for id_, recall in recalls.items()}


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        (RankedHit("a.md", "Three, TWO. one"), True),
        (RankedHit("a.md", "one two"), False),
        (RankedHit("b.md", QUOTE.quote), False),
        (RankedHit("./a.md#row=3", QUOTE.quote), True),
    ],
)
def test_passage_needs_file_and_three_fifths_of_words(hit: RankedHit, expected: bool) -> None:
    assert has_passage(hit, QUOTE) is expected


def test_repeated_words_of_a_quote_count_each_time() -> None:
    assert has_passage(RankedHit("a.md", "no"), GoldPassage("a.md", "no no no two three"))


def test_without_quote_every_passage_of_the_file_counts() -> None:
    assert has_passage(RankedHit("a.md", "anything"), GoldPassage("a.md"))


def test_rank_is_that_of_the_first_place_that_is_hit() -> None:
    question = FolderQuestion("q", "?", ((QUOTE, OTHER), (GoldPassage("c.md", "absent"),)))
    hits = [RankedHit("x.md", "red green blue"), RankedHit("b.md", "red green blue"), RankedHit("a.md", QUOTE.quote)]
    assert find_ranks(question, hits) == [2, 0]


def test_scores_of_a_question_with_two_passages() -> None:
    question = FolderQuestion("q", "?", ((QUOTE,), (OTHER,)))
    filler = [RankedHit("x.md", "")] * (DEPTH - 1)
    late = [*filler, RankedHit("a.md", QUOTE.quote), RankedHit("b.md", OTHER.quote)]
    assert score_question(question, late) == QuestionScores(0.5, 0.0, 0.0, 1 / DEPTH)
    assert score_question(question, late[-2:]) == QuestionScores(1.0, 1.0, 1.0, 1.0)
    assert score_question(question, filler) == QuestionScores(0.0, 0.0, 0.0, 0.0)


def test_row_has_means_and_interval() -> None:
    row = make_row([QuestionScores(1.0, 1.0, 0.0, 0.5), QuestionScores(0.5, 0.0, 0.0, 0.25)] * 50)
    assert (row.questions, row.all_gold, row.first, row.reciprocal_rank) == (100, 0.5, 0.0, 0.375)
    assert row.recall.mean == 0.75
    half_width = 1.96 * 0.25 / np.sqrt(100)
    assert row.recall.high - 0.75 == pytest.approx(half_width, abs=0.01)
    assert 0.75 - row.recall.low == pytest.approx(half_width, abs=0.01)


def test_sign_test_has_binomial_probability() -> None:
    ids = [str(i) for i in range(12)]
    one = make_scores(dict.fromkeys(ids, 1.0))
    other = make_scores({id_: 0.0 if i < 10 else 1.0 for i, id_ in enumerate(ids)})
    assert (test := run_sign_test(one, other)).p == pytest.approx(2 / 2**10)
    assert (test.better, test.worse) == (10, 0)
    assert run_sign_test({}, {}).p == 1.0


@given(RECALLS, RECALLS)
def test_sign_test_is_symmetric(one: dict[str, float], other: dict[str, float]) -> None:
    there, back = (
        run_sign_test(make_scores(one), make_scores(other)),
        run_sign_test(make_scores(other), make_scores(one)),
    )
    assert (there.better, there.worse, there.p) == (back.worse, back.better, back.p)
    assert 0 < there.p <= 1
    assert there.better + there.worse <= len(one.keys() & other.keys())
