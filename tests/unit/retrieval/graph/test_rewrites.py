"""A rewrite replaces what a candidate covers by a name, and rewrites give candidates features of the right values."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.graph.test_features import (
    QUERY,
    QUESTION,
    Candidate,
    make_embedded_fact,
    make_pool,
    normalise_vector,
)
from waylore.config import DeepConfig
from waylore.recipes import DEEP
from waylore.retrieval.graph.deep import combine_weights
from waylore.retrieval.graph.features import ODDS
from waylore.retrieval.graph.rewrites import (
    CHOICE_FEATURES,
    REWRITE_FEATURES,
    UNNAMED_GAIN,
    Rewrite,
    choose_rewrites,
    compute_rewrite_features,
    find_pairs,
    write_rewrite,
)
from waylore.text import terms
from waylore.types.identity import entity_id

ASKED = "When did the Admiral Twin open in the city where the Philbrook Museum is located?"


def test_weights_match_features() -> None:
    assert dict(DEEP.deep.choice).keys() == {"bias", *CHOICE_FEATURES}
    assert dict(DEEP.deep.third).keys() == {"bias", ODDS, *REWRITE_FEATURES}


# -- writing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        ("Philbrook museum located", "When did the Admiral Twin open in the city Tulsa"),
        ("Philbrook museum located city", "When did the Admiral Twin open in Tulsa"),
        ("open", "When did the Admiral Twin Tulsa in the city where the Philbrook Museum is located"),
        ("twin museum", "When did the Admiral Twin open in the city where the Philbrook Tulsa is located"),
        ("", "When did the Admiral Twin open in the city where the Philbrook Museum is located Tulsa"),
    ],
)
def test_covered_words_are_replaced_by_the_name(covered: str, expected: str) -> None:
    """The longest run counts, joined over stop words, with an article or relative before it; of equal ones the last."""
    assert write_rewrite(ASKED, set(terms(covered)), "Tulsa", 64) == expected


def test_long_rewrite_is_cut() -> None:
    assert write_rewrite("word " * 100, [], "Tulsa", 64) == " ".join(["word"] * 64)


@given(
    st.text(max_size=60), st.sets(st.sampled_from(["harbour", "winter", "ship"])), st.sampled_from(["Kiel", "Ada B"])
)
def test_rewrite_has_only_words_of_question_and_name(question: str, covered: set[str], name: str) -> None:
    written = write_rewrite(question, covered, name, 64)
    assert {*terms(written)} <= {*terms(question), *terms(name), *terms(f"{question}{name}")}


# -- choosing ------------------------------------------------------------------------------------------


def test_pairs_are_ends_of_facts_in_the_words_of_the_source() -> None:
    source = Candidate(QUESTION, (make_embedded_fact("A", "B"), make_embedded_fact("B", "C")), about="A", mentions="BC")
    home = Candidate(QUESTION, about="B")
    pool = make_pool([source, home])
    active = {entity_id("B"): 0.5}
    pairs = find_pairs("Who is A?", pool, np.array([2.0, -1.0]), np.array([0.25, 0.75]), active, DeepConfig())
    assert pairs.names == ("B", "C")  # A is no term
    assert pairs.sources == (0, 0)
    columns = {name: column.tolist() for name, column in pairs.columns.items()}
    assert columns["odds"] == [2.0] * 2
    assert columns["best_fact"] == [0.75, 0.75]
    assert columns["facts"] == pytest.approx(np.log1p([2, 1]).tolist())
    assert columns["is_own"] == [0.0, 0.0]
    assert columns["leads_on"] == [1.0, 0.0]
    assert columns["activation"][0] > columns["activation"][1]
    assert columns["capitals"] == [1.0] * 2


def test_rewrites_are_bounded_and_each_text_is_written_once() -> None:
    facts = tuple(make_embedded_fact("B", name) for name in "CDEFGHJK")
    pool = make_pool([Candidate(QUESTION, facts, about="B")] * 3)
    config = DeepConfig()
    pairs = find_pairs("Who?", pool, np.array([2.0, 1.0, 0.0]), np.zeros(24), {}, config)
    rewrites = choose_rewrites("Who?", pool, pairs, np.zeros(len(pairs.sources)), config)
    assert [rewrite.text for rewrite in rewrites] == [f"Who {name}" for name in "BCDEFGHJK"]
    assert [rewrite.source for rewrite in rewrites] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert len(choose_rewrites("Who?", pool, pairs, np.zeros(len(pairs.sources)), replace(config, rewrites=5))) == 5


def test_without_facts_there_is_nothing_to_choose() -> None:
    pool = make_pool([Candidate(QUESTION)])
    pairs = find_pairs("Who?", pool, np.zeros(1), np.zeros(0), {}, DeepConfig())
    assert choose_rewrites("Who?", pool, pairs, np.zeros(0), DeepConfig()) == []


# -- judging -------------------------------------------------------------------------------------------


def compute_columns(
    candidates: Sequence[Candidate], rewrites: Sequence[Rewrite], *vectors: np.ndarray
) -> dict[str, list[float]]:
    pool = make_pool(candidates)
    cosine = pool.vectors @ QUESTION
    columns, _ = compute_rewrite_features(
        pool,
        cosine.astype(np.float64),
        np.arange(len(candidates), dtype=np.float64),
        rewrites,
        np.stack(vectors),
        2,
        QUERY,
    )
    return {name: column.tolist() for name, column in columns.items()}


def test_rewrite_lifts_what_it_is_near_but_not_its_own_source() -> None:
    up, side = normalise_vector(0, 1, 0), normalise_vector(0, 0.6, 0.8)
    candidates = [
        Candidate(up, (make_embedded_fact("A", "B", up),), about="A"),
        Candidate(up, (make_embedded_fact("B", "C", side),), about="B"),
        Candidate(side, mentions="B"),
    ]
    found = compute_columns(candidates, [Rewrite("asked B", 0, entity_id("B"), "B", 1.0)], up)
    assert found.keys() == REWRITE_FEATURES.keys()
    assert found["rewrite_cosine"] == pytest.approx([-1.0, 1.0, 0.6])
    assert found["rewrite_named"] == pytest.approx([0.0, 1.0, 0.6])
    assert found["rewrite_named_gain"] == pytest.approx([UNNAMED_GAIN, 1.0, 0.6])
    assert found["rewrite_own"] == pytest.approx([0.0, 1.0, 0.0])
    assert found["rewrite_rank"] == pytest.approx([1 / 3, 1.0, 0.5])
    assert found["rewrite_vote"] == pytest.approx([1 / 3, 1.0, 0.5])
    assert found["rewrite_fact"] == pytest.approx([0.0, 0.6, 0.0])
    assert found["rewrite_source_odds"] == [0.0] * 3
    assert found["is_rewritten"] == [0.0, 0.0, 1.0]


def test_third_judgement_is_one_sum_over_all_features() -> None:
    second, third = (("bias", 1.0), ("cosine", 2.0)), (("bias", 0.5), (ODDS, 3.0), ("rewrite_gain", 4.0))
    assert combine_weights(second, third, 0.0) == (("bias", 3.5), ("cosine", 6.0), ("rewrite_gain", 4.0))
    assert combine_weights(second, third, 0.5) == (("bias", 2.25), ("cosine", 4.0), ("rewrite_gain", 2.0))
    assert combine_weights(second, third, 1.0) == (("bias", 1.0), ("cosine", 2.0), ("rewrite_gain", 0.0))
