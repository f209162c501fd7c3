"""Each feature of turns, on small conversations made by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.retrieval.turn_features import (
    BEFORE,
    TurnCandidates,
    choose_candidates,
    compute_features,
    find_asked_terms,
    find_named_speakers,
    score_nearness,
    score_pairs,
    score_sessions,
    score_telling,
    score_vectors,
    score_words,
)
from waylore.spans import find_spans, tells_time
from waylore.store.rows import to_microseconds
from waylore.text import terms
from waylore.types.columns import NO_TIME, TurnColumns

NOW = datetime(2026, 5, 20, tzinfo=UTC)
HARBOUR = (
    "Did you get the job at the harbour office?",
    "Yes, they called this morning.",
    "When do you start?",
    "On the first of March.",
    "The weather is nice.",
    "I saw the harbour today.",
)


def make_turns(
    texts: Sequence[str],
    question: str,
    *,
    speakers: Sequence[str] = (),
    sessions: Sequence[int] = (),
    roles: Sequence[str] = (),
    at: Sequence[datetime | None] = (),
    codes: Sequence[Sequence[int]] = (),
) -> TurnColumns:
    """Return turns as a store reads them, all of one session and role unless others are given."""
    asked = tuple(dict.fromkeys(terms(question)))
    found = [terms(text) for text in texts]
    places = [asked.index(term) if term in asked else -1 for each in found for term in each]
    moments = at or [None] * len(texts)
    return TurnColumns(
        ids=tuple(f"{place:032x}" for place in range(len(texts))),
        sessions=np.array(sessions or [1] * len(texts), np.int64),
        positions=np.arange(len(texts)) * 10,
        speakers=tuple(speakers or [""] * len(texts)),
        roles=tuple(roles or ["user"] * len(texts)),
        at=np.array([NO_TIME if moment is None else to_microseconds(moment) for moment in moments], np.int64),
        texts=tuple(texts),
        tells_time=np.array([tells_time(text) for text in texts], np.bool_),
        sequence=np.array(places, np.int32),
        sizes=np.array([len(each) for each in found], np.int64),
        codes=np.array(codes or np.zeros((len(texts), 1)), np.int8),
        terms=asked,
        counts=np.array([sum(term in each for each in found) for term in asked], np.int64),
        passages=len(texts),
    )


def take_all(turns: TurnColumns) -> TurnCandidates:
    return TurnCandidates(turns, np.arange(turns.size))


def score_all(texts: Sequence[str], question: str, **columns: Sequence[object]) -> dict[str, list[float]]:
    turns = make_turns(texts, question, **columns)  # type: ignore[arg-type]  # the columns of make_turns
    scores = score_words(take_all(turns), np.ones(len(turns.terms), np.bool_))
    return {name: each.tolist() for name, each in scores.items()}


# -- words ---------------------------------------------------------------------------------------------


def test_context_lifts_short_answer() -> None:
    scores = score_all(HARBOUR, "job at the harbour office")
    assert scores["own"][3] == 0.0
    assert scores["wide"][3] > 0.0
    assert scores["before"][1] > scores["before"][2] > 0.0
    assert scores["before"][0] == scores["own"][0]


def test_words_are_mixed_before_they_are_saturated() -> None:
    [_, twice] = score_all(["harbour", "harbour"], "harbour")["before"]
    [once, _] = score_all(["harbour", "harbour"], "harbour")["own"]
    assert once < twice < 1.5 * once


def test_long_turn_takes_less_from_neighbours() -> None:
    short, long = (score_all(["harbour", "sea " * words], "harbour")["before"][1] for words in (30, 120))
    assert 0.0 < long < short
    assert short == score_all(["harbour", "sea"], "harbour")["before"][1]


@pytest.mark.parametrize("other", [{"sessions": [1, 2]}, {"roles": ["assistant", "user"]}])
def test_context_is_of_same_session_and_role(other: dict[str, Sequence[object]]) -> None:
    assert score_all(["harbour", "yes"], "harbour", **other)["wide"][1] == 0.0
    assert score_all(["harbour", "yes"], "harbour")["wide"][1] > 0.0


def test_rare_words_count_more() -> None:
    scores = score_all(["ferry", "harbour", "harbour", "harbour"], "ferry harbour")["own"]
    assert scores[0] > scores[1] == scores[3]


def test_speakers_are_found_by_first_name() -> None:
    speakers = ["Ann Lee", "Ben", "ben", "", "Carl"]
    assert find_named_speakers("What did Ann's sister tell Ben?", speakers) == {"Ann Lee", "Ben", "ben"}
    assert find_named_speakers("Where is the harbour?", speakers) == set()


def test_names_of_speakers_and_asking_words_are_left_out() -> None:
    question = terms("How many ferries did Ann's sister see since May?")
    kept = find_asked_terms(question, ["Ann Lee"])
    assert [term for term, is_kept in zip(question, kept, strict=True) if is_kept] == terms("ferries sister see")


def test_pairs_are_in_order_and_inside_of_one_turn() -> None:
    texts = ["the harbour office", "the office harbour", "harbour", "office", "an office", "harbour then office"]
    turns = make_turns(texts, "harbour office", sessions=range(len(texts)))
    assert (score_pairs(take_all(turns), "harbour office") > 0).tolist() == [True, False, False, False, False, True]
    assert not score_pairs(take_all(make_turns(texts, "harbour")), "harbour").any()


def test_pairs_of_neighbours_count() -> None:
    turns = make_turns(["the harbour office", "yes"], "harbour office")
    first, second = score_pairs(take_all(turns), "harbour office")
    assert first > second > 0.0


def test_session_has_mean_of_its_best_three() -> None:
    scores = np.array([1.0, 5.0, 2.0, 3.0, 9.0])
    assert score_sessions(scores, np.array([7, 7, 7, 7, -8])).tolist() == pytest.approx([10 / 3] * 4 + [9.0])


# -- vectors -------------------------------------------------------------------------------------------


def test_vectors_around_are_added() -> None:
    turns = make_turns(["a", "b", "c"], "", codes=[[127, 0], [0, 127], [0, 127]], sessions=[1, 1, 2])
    scores = score_vectors(take_all(turns), np.array([2.0, 0.0], np.float32))
    assert scores["dense"].tolist() == [1.0, 0.0, 0.0]
    assert scores["mean"][1] == pytest.approx(0.5 / np.sqrt(1.25), abs=1e-6)
    assert scores["mean"][2] == 0.0


def test_turn_without_vector_has_cosine_zero() -> None:
    turns = make_turns(["a", "b"], "", codes=[[0, 0], [0, 127]], sessions=[1, 2])
    assert score_vectors(take_all(turns), np.array([0.0, 1.0], np.float32))["mean"].tolist() == [0.0, 1.0]


# -- shape and time ------------------------------------------------------------------------------------


def test_shape_is_described() -> None:
    turns = make_turns(HARBOUR, "", sessions=[1, 1, 1, 1, 2, 2])
    found = compute_features(take_all(turns), "", None, ())
    assert found["asks"].tolist() == [1, 0, 1, 0, 0, 0]
    assert found["answers"].tolist() == [0, 1, 0, 1, 0, 0]
    assert found["place"].tolist() == [0, 1, 2, 3, 0, 1]
    assert found["length"][1] == pytest.approx(np.log(6))
    assert compute_features(take_all(make_turns(HARBOUR, "")), "", None, ())["place"].tolist() == [0, 1, 2, 3, 4, 5]


def test_turns_that_tell_a_time_answer_when() -> None:
    turns = take_all(make_turns(HARBOUR, ""))
    assert score_telling(turns, "When do you start at the harbour office?").tolist() == [0, 1, 0, 1, 0, 1]
    assert not score_telling(turns, "Where is the harbour office?").any()


def test_turns_near_days_of_question_count() -> None:
    at = [datetime(2026, 5, 12, tzinfo=UTC), datetime(2026, 5, 22, tzinfo=UTC), None]
    moments = make_turns(["a", "b", "c"], "", at=at).at
    inside, later, unknown = score_nearness(moments, find_spans("What did I do last week?", NOW))
    assert (inside, unknown) == (1.0, 0.0)
    assert later == pytest.approx(np.exp(-1))
    assert not score_nearness(moments, ()).any()


# -- candidates and all features together --------------------------------------------------------------


def test_neighbours_of_the_best_are_candidates() -> None:
    turns = make_turns(["a"] * 7, "", sessions=[1, 1, 1, 1, 1, 2, 2])
    found = choose_candidates(turns, [turns.ids[3], turns.ids[6], "unknown"], [turns.ids[3], "unknown"], reach=2)
    assert found.places.tolist() == [1, 2, 3, 4, 6]
    assert choose_candidates(turns, [], [], reach=2).places.tolist() == []
    assert choose_candidates(make_turns([], ""), ["unknown"], ["unknown"], reach=2).places.tolist() == []


def test_features_by_vectors_need_vectors_of_same_dimension() -> None:
    turns = make_turns(HARBOUR, "harbour", codes=[[1, 2]] * len(HARBOUR))
    assert "dense" not in compute_features(take_all(turns), "harbour", None, ())
    assert "dense" not in compute_features(take_all(turns), "harbour", np.ones(3, np.float32), ())
    assert "dense" in compute_features(take_all(turns), "harbour", np.ones(2, np.float32), ())


def test_contexts_have_weights_by_distance() -> None:
    turns = make_turns(["a", "b", "c"], "")
    mixed = take_all(turns).add_context(np.eye(3), BEFORE)
    assert mixed.tolist() == [[1, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]]


@given(st.lists(st.sampled_from(HARBOUR), min_size=1, max_size=12), st.sampled_from(["When?", "harbour office", ""]))
def test_features_are_finite_and_scores_standardised(texts: list[str], question: str) -> None:
    turns = make_turns(texts, question, codes=[[3, len(text)] for text in texts])
    features = compute_features(take_all(turns), question, np.array([1.0, 0.5], np.float32), ())
    assert all(len(each) == len(texts) and np.isfinite(each).all() for each in features.values())
    for name in ("own", "before", "wide", "pairs", "session", "dense", "mean"):
        assert abs(features[name].mean()) < 1e-6
        assert features[name].std() < 1 + 1e-6
