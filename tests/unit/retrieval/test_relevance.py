"""A question without an answer is recognised by its rankings, and the judgement has a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import load_relevance
from waylore.retrieval.relevance import REASONS, compute_relevance_features, judge_relevance
from waylore.types.search import CosineScale, Query, Ranking, Scored

SCALE = CosineScale(mean=0.4, deviation=0.06)
QUESTION = Query("How do I rotate the signing key of the release pipeline?", scale=SCALE)


def make_ranking(first: float, step: float, prefix: str = "p") -> Ranking:
    return tuple(Scored(f"{prefix}{place}", first - step * place) for place in range(20))


def test_similar_passages_of_both_searches_are_relevant() -> None:
    rankings = {"vector": make_ranking(0.85, 0.02), "keyword": make_ranking(20.0, 1.0)}
    found = judge_relevance(QUESTION, rankings, ["Rotate the signing key of the release pipeline."])
    assert (found.is_relevant, found.reason) == (True, "")


def test_dissimilar_passages_are_not_relevant() -> None:
    rankings = {"vector": make_ranking(0.42, 0.0001), "keyword": make_ranking(3.0, 0.1, "other")}
    found = judge_relevance(QUESTION, rankings, ["A recipe of a cake."])
    assert found.is_relevant is False
    assert found.reason in REASONS.values()


def test_search_by_vectors_alone_is_judged_by_vectors() -> None:
    typical = load_relevance().typical
    best = SCALE.mean + typical["cosine"] * SCALE.deviation
    rankings = {"vector": make_ranking(best, typical["drop"] * SCALE.deviation / 9), "keyword": ()}
    assert judge_relevance(QUESTION, rankings, [QUESTION.text]).is_relevant


def test_nothing_found_is_not_relevant() -> None:
    found = judge_relevance(QUESTION, {"vector": (), "keyword": ()}, [])
    assert (found.is_relevant, found.reason) == (False, "nothing was found")


@pytest.mark.parametrize("query", [QUESTION, Query(QUESTION.text)])
def test_nothing_is_judged_without_vectors_or_spread(query: Query) -> None:
    near = make_ranking(0.8, 0.01) if query.scale is None else ()
    found = judge_relevance(query, {"vector": near, "keyword": make_ranking(9.0, 0.1)}, ["a text"])
    assert (found.is_relevant, found.reason) == (None, "")


def test_features_have_their_values() -> None:
    rankings = {"vector": make_ranking(0.7, 0.02), "keyword": make_ranking(9.0, 1.0)[3:]}
    query = Query("Does the hub keep sessions in Redis?", scale=SCALE)
    features = compute_relevance_features(query, rankings, ["The hub keeps sessions in a cookie."], {})
    assert features is not None
    assert features["cosine"] == pytest.approx(0.3 / 0.06)
    assert features["drop"] == pytest.approx(0.18 / 0.06)
    assert features["agreement"] == pytest.approx(0.4)
    assert features["unknown_names"] == 1.0
    pages = {"p0": "sessions", "p5": "sessions", "p1": "cookies"}  # p3 to p7 are the best by words
    known = compute_relevance_features(query, rankings, ["Redis keeps sessions."], pages)
    assert known is not None
    assert known["unknown_names"] == 0.0
    assert known["agreement"] == pytest.approx(0.6)  # p0 of the page of p5, p3 and p4


@given(st.floats(-1, 1), st.floats(0, 0.05), st.text(min_size=1), st.lists(st.text(), min_size=1, max_size=6))
def test_judgement_has_reason_exactly_if_not_relevant(best: float, step: float, text: str, texts: list[str]) -> None:
    rankings = {"vector": make_ranking(best, step), "keyword": make_ranking(5.0, 0.1)}
    found = judge_relevance(Query(text, scale=SCALE), rankings, texts)
    assert found.is_relevant is not None
    assert bool(found.reason) != found.is_relevant


@given(st.floats(-1, 1), st.floats(0, 1))
def test_greater_similarity_never_makes_irrelevant(best: float, more: float) -> None:
    def judge(cosine: float) -> bool | None:
        rankings = {"vector": make_ranking(cosine, 0.01), "keyword": make_ranking(5.0, 0.1)}
        return judge_relevance(QUESTION, rankings, ["a text"]).is_relevant

    assert judge(best + more) or not judge(best)


def test_shipped_table_has_every_feature() -> None:
    table = load_relevance()
    assert table.weights.keys() == table.typical.keys() == REASONS.keys()
    assert table.minimum < 0.0
