"""Fusion keeps every candidate and gives each search its share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import HybridConfig, MergeConfig
from waylore.retrieval.fusion import (
    FusedCandidate,
    combine_weighted,
    fuse,
    fuse_anchored,
    round_decimals,
    scale,
    share_out,
)
from waylore.types.search import Placement, Ranking, Scored

WEIGHTED = HybridConfig("weighted", vector_weight=0.7, text_weight=0.3)
ANCHORED = HybridConfig(vector_weight=0.7, text_weight=0.3)
RRF = HybridConfig(fusion="rrf", vector_weight=0.5, text_weight=0.5)

SCORES = st.integers(0, 10**9).map(lambda n: n / 1e6)  # stores round to six places
RANKINGS = st.dictionaries(st.sampled_from("abcdef"), SCORES).map(
    lambda found: make_ranking(**dict(sorted(found.items(), key=lambda item: -item[1])))
)
CONFIGS = st.sampled_from([WEIGHTED, RRF, HybridConfig()])


def make_ranking(**scores: float) -> Ranking:
    return tuple(Scored(id_, score) for id_, score in scores.items())


def map_scores(fused: tuple[FusedCandidate, ...]) -> dict[str, float]:
    return {f.id: f.score for f in fused}


def test_weighted_fusion_scales_scores_of_each_search() -> None:
    fused = fuse({"vector": make_ranking(a=0.9, b=0.8, c=0.5), "keyword": make_ranking(b=12.0, d=7.0)}, WEIGHTED)
    assert [f.id for f in fused] == ["b", "a", "d", "c"]
    assert map_scores(fused) == pytest.approx({"b": 0.7 * 0.75 + 0.3, "a": 0.7, "d": 0.3 * 7 / 12, "c": 0.0})


def test_reciprocal_ranks_follow_specification() -> None:
    fused = fuse({"vector": make_ranking(a=9, b=8), "keyword": make_ranking(c=7, d=6, a=5)}, RRF)
    assert fused[0].id == "a"
    assert fused[0].score == pytest.approx(0.5 / 61 + 0.5 / 63)
    assert round(fused[0].score, 5) == 0.01613
    assert map_scores(fused)["c"] == pytest.approx(0.5 / 61)
    assert map_scores(fuse({"vector": make_ranking(a=1)}, HybridConfig("rrf", 1.0, rrf_k=9))) == {
        "a": pytest.approx(0.1)
    }


def test_rank_fusion_ignores_scores() -> None:
    near, far = make_ranking(a=0.51, b=0.5), make_ranking(a=100.0, b=0.1)
    assert map_scores(fuse({"vector": near}, RRF)) == map_scores(fuse({"vector": far}, RRF))


def test_candidate_of_one_search_keeps_its_share() -> None:
    fused = fuse({"vector": (), "keyword": make_ranking(a=3.0, b=2.0, c=1.0)}, WEIGHTED)
    assert map_scores(fused) == pytest.approx({"a": 0.3, "b": 0.2, "c": 0.1})
    assert fused[0].placements == (Placement("keyword", rank=1, score=3.0, share=0.3),)


def test_placement_has_rank_and_score_of_search() -> None:
    fused = fuse({"vector": make_ranking(a=0.9, b=0.8), "keyword": make_ranking(b=12.0, a=7.0)}, WEIGHTED)
    assert [(p.search, p.rank, p.score) for p in fused[0].placements] == [
        ("vector", 1, 0.9),
        ("keyword", 2, 7.0),
    ]


@pytest.mark.parametrize(
    "only", [make_ranking(a=0.4), make_ranking(a=0.4, b=0.4, c=0.4), make_ranking(a=0.0), make_ranking(a=-2.0)]
)
def test_equal_scores_get_full_share(only: Ranking) -> None:
    assert {f.score for f in fuse({"vector": only}, WEIGHTED)} == {0.7}


def test_fuse_breaks_ties_by_id() -> None:
    assert [f.id for f in fuse({"vector": make_ranking(c=1, a=1, b=1)}, WEIGHTED)] == ["a", "b", "c"]
    assert [f.id for f in fuse({"vector": make_ranking(b=1), "keyword": make_ranking(a=1)}, RRF)] == ["a", "b"]


def test_unknown_search_has_weight_one() -> None:
    assert map_scores(fuse({"graph": make_ranking(a=2.0)}, WEIGHTED)) == {"a": 1.0}


@given(RANKINGS, RANKINGS, CONFIGS)
def test_fuse_keeps_candidates_and_shares_sum_to_score(vector: Ranking, keyword: Ranking, config: HybridConfig) -> None:
    fused = fuse({"vector": vector, "keyword": keyword}, config)
    assert sorted(f.id for f in fused) == sorted({s.id for s in (*vector, *keyword)})
    assert [*fused] == sorted(fused, key=lambda f: (-f.score, f.id))
    for f in fused:
        assert f.score == pytest.approx(sum(p.share for p in f.placements), abs=1e-9)
        assert [p.search for p in f.placements] == [
            search for search, found in (("vector", vector), ("keyword", keyword)) if f.id in {s.id for s in found}
        ]
        assert all(0.0 <= p.share <= 1.0 for p in f.placements)


@given(RANKINGS, CONFIGS)
def test_fuse_keeps_order_of_single_search(vector: Ranking, config: HybridConfig) -> None:
    rank = {s.id: s.score for s in vector}
    fused = [rank[f.id] for f in fuse({"vector": vector}, config)]
    assert fused == sorted(fused, reverse=True)


def test_fuse_applies_graph_weight() -> None:
    rankings = {"vector": make_ranking(a=1.0), "graph": make_ranking(b=2.0, a=1.0)}
    assert map_scores(fuse(rankings, RRF, graph_weight=0.3)) == pytest.approx({"a": 0.5 / 61 + 0.3 / 62, "b": 0.3 / 61})


# -- both scores of every candidate, measured from the best --------------------------------------------


def test_anchored_fusion_measures_from_the_best() -> None:
    rankings = {"vector": make_ranking(a=0.75, b=0.71, c=0.40), "keyword": make_ranking(d=12.4, b=9.3)}
    fetched = {"vector": {"d": 0.60}, "keyword": {"a": 3.1, "c": 0.0}}
    fused = fuse_anchored(rankings, fetched, ANCHORED, unit=0.3)
    assert map_scores(fused) == pytest.approx(
        {
            "b": 0.7 * (1 - 0.04 / 0.3) + 0.3 * 0.75,
            "a": 0.7 + 0.3 * 0.25,
            "d": 0.7 * 0.5 + 0.3,
            "c": 0.0,
        }
    )
    assert [f.id for f in fused] == ["b", "a", "d", "c"]
    vector, keyword = fused[2].placements
    assert (vector.search, vector.rank, vector.score, vector.best) == ("vector", None, 0.6, 0.75)
    assert vector.share == pytest.approx(0.35)
    assert keyword == Placement("keyword", 1, 12.4, 0.3, best=12.4)


def test_anchored_fusion_with_one_search_uses_it_alone() -> None:
    near = fuse_anchored({"vector": make_ranking(a=0.9, b=0.6), "keyword": ()}, {}, ANCHORED, unit=0.6)
    assert map_scores(near) == pytest.approx({"a": 0.7, "b": 0.35})
    only_words = HybridConfig(text_weight=1.0)
    words = fuse_anchored({"vector": (), "keyword": make_ranking(a=8.0, b=2.0)}, {}, only_words, unit=0.3)
    assert map_scores(words) == {"a": 1.0, "b": 0.25}
    assert fuse_anchored({"vector": (), "keyword": ()}, {}, ANCHORED, unit=0.3) == ()


def test_anchored_fusion_keeps_candidate_without_vector() -> None:
    rankings = {"vector": make_ranking(a=0.9), "keyword": make_ranking(b=2.0, a=1.0)}
    fused = fuse_anchored(rankings, {}, ANCHORED, unit=0.3)
    assert map_scores(fused) == pytest.approx({"a": 0.85, "b": 0.3})
    assert [p.search for p in fused[1].placements] == ["keyword"]


def test_fetched_score_above_the_best_listed_one_is_the_best() -> None:
    """A search by words looks at the rarest words alone, so it may not list the best passage of all."""
    rankings = {"vector": make_ranking(a=0.9), "keyword": make_ranking(b=2.0)}
    fused = fuse_anchored(rankings, {"vector": {"b": 0.9}, "keyword": {"a": 4.0}}, ANCHORED, unit=0.3)
    assert map_scores(fused) == pytest.approx({"a": 1.0, "b": 0.7 + 0.3 / 2})


def test_later_block_stands_below_and_does_not_change_the_first() -> None:
    cosines = {"a": 0.9, "e": 0.85, "c": 0.8, "d": 0.7, "f": 0.6, "b": 0.5}
    words = {"d": 9.0, "e": 8.0, "f": 7.0, "c": 5.0, "a": 1.0, "b": 0.5}

    def fuse_first(number: int) -> tuple[FusedCandidate, ...]:
        rankings = {"vector": make_ranking(**cosines)[:number], "keyword": make_ranking(**words)[:number]}
        listed = {s.id for ranking in rankings.values() for s in ranking}
        fetched = {"vector": {i: cosines[i] for i in listed}, "keyword": {i: words[i] for i in listed}}
        return fuse_anchored(rankings, fetched, HybridConfig(candidates=2), unit=0.3)

    assert [f.id for f in fuse_first(2)] == ["e", "a", "d"]
    assert [f.id for f in fuse_first(6)] == ["e", "a", "d", "c", "f", "b"]
    assert fuse_first(6)[:3] == fuse_first(2)
    assert fuse_first(6)[:5] == fuse_first(4)
    assert fuse_first(6)[3].score > fuse_first(6)[2].score  # a better score in a later block


@given(RANKINGS, RANKINGS, st.integers(1, 4), st.floats(0.01, 2.0))
def test_anchored_fusion_keeps_candidates_and_shares_sum_to_score(
    vector: Ranking, keyword: Ranking, size: int, unit: float
) -> None:
    rankings = {"vector": vector, "keyword": keyword}
    listed = {search: {s.id for s in ranking} for search, ranking in rankings.items()}
    fetched = {
        "vector": dict.fromkeys(listed["keyword"] - listed["vector"], 0.5) if vector else {},
        "keyword": dict.fromkeys(listed["vector"] - listed["keyword"], 0.0) if keyword else {},
    }
    fused = fuse_anchored(rankings, fetched, HybridConfig(candidates=size), unit=unit)
    assert sorted(f.id for f in fused) == sorted(listed["vector"] | listed["keyword"])
    for f in fused:
        assert f.score == pytest.approx(sum(p.share for p in f.placements), abs=1e-9)
        assert 0.0 <= f.score <= 1.0
        assert all(0.0 <= p.share <= 1.0 for p in f.placements)
        assert any(p.rank for p in f.placements)
        assert [p.search for p in f.placements] == [search for search in rankings if rankings[search]]


@given(RANKINGS, st.floats(0.01, 2.0))
def test_anchored_fusion_keeps_order_of_single_search_within_the_unit(vector: Ranking, unit: float) -> None:
    rank = {s.id: s.score for s in vector}
    fused = [f for f in fuse_anchored({"vector": vector, "keyword": ()}, {}, ANCHORED, unit=unit) if f.score]
    assert [rank[f.id] for f in fused] == sorted((rank[f.id] for f in fused), reverse=True)


def test_placements_are_made_when_they_are_looked_at_and_scaled_like_the_score() -> None:
    rankings = {"vector": make_ranking(a=0.75, b=0.71), "keyword": make_ranking(b=9.0)}
    for fused in (fuse(rankings, WEIGHTED), fuse_anchored(rankings, {}, ANCHORED, unit=0.3)):
        for candidate in fused:
            plain = candidate._replace(placements=tuple(candidate.placements))
            assert (candidate, hash(candidate), repr(candidate)) == (plain, hash(plain), repr(plain))
            assert scale(scale(candidate, 0.3), 0.7) == scale(scale(plain, 0.3), 0.7)
            assert (len(candidate.placements), candidate.placements[0]) == (len(plain.placements), plain.placements[0])


# -- S5: the graph joins hybrid search -----------------------------------------------------------------


def make_candidates(**scores: float) -> tuple[FusedCandidate, ...]:
    return tuple(FusedCandidate(id_, score, (Placement("keyword", 1, 9.0, score),)) for id_, score in scores.items())


def test_combine_weighted_follows_specification() -> None:
    joined = combine_weighted(make_candidates(a=1.0, b=0.5), make_ranking(c=0.9, b=0.8), MergeConfig())
    assert map_scores(joined) == pytest.approx({"a": 0.7, "b": 0.7 * 0.5 + 0.3 * 0.8, "c": 0.3 * 0.9})
    assert [f.id for f in joined] == ["a", "b", "c"]
    assert joined[1].placements == (Placement("keyword", 1, 9.0, 0.35), Placement("graph", 2, 0.8, 0.24))


def test_graph_candidate_has_graph_placement_only() -> None:
    [only] = combine_weighted((), make_ranking(a=0.5), MergeConfig(graph_weight=1.0))
    assert (only.score, only.placements) == (0.5, (Placement("graph", 1, 0.5, 0.5),))


def test_empty_graph_ranking_keeps_order() -> None:
    base = make_candidates(a=0.9, c=0.4, b=0.4)
    assert [f.id for f in combine_weighted(base, (), MergeConfig())] == ["a", "b", "c"]


# -- shares of all candidates at once -----------------------------------------------------------------------

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False) | st.integers(-(10**9), 10**9).map(lambda n: n / 2e6)
FOUND = st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=6)


@given(st.lists(NUMBERS, max_size=30), st.sampled_from([6, 9]))
def test_numbers_are_rounded_as_python_rounds(values: list[float], digits: int) -> None:
    rounded = round_decimals(np.array(values, np.float64), digits)
    assert list(map(repr, rounded.tolist())) == [repr(round(value, digits)) for value in values]


@pytest.mark.parametrize("value", [0.0000005, 0.0000015, 2.6755e-06, 1.0000005, 0.5, 1.005, -0.0000005, -0.0])
def test_middle_between_two_numbers_is_rounded_by_its_exact_value(value: float) -> None:
    assert repr(round_decimals(np.array([value]), 6).tolist()[0]) == repr(round(value, 6))


@given(FOUND, st.data())
def test_first_finder_gets_the_shares_of_searches_that_did_not_find(found: list[set[str]], data: st.DataObject) -> None:
    searches, ids = ("a", "b", "c"), [str(number) for number in range(len(found))]
    parts = st.lists(st.floats(0, 1), min_size=len(ids), max_size=len(ids))
    shares = {search: np.array(data.draw(parts)) for search in searches}
    by_search = {search: {id_ for id_, own in zip(ids, found, strict=True) if search in own} for search in searches}
    table = share_out(ids, by_search, shares)
    for place, own in enumerate(found):
        finders = [search for search in searches if search in own]
        merits = dict.fromkeys(finders, 0.0)
        for search in searches:
            merits[search if search in merits else finders[0]] += float(shares[search][place])
        expected = {search: round(share, 6) for search, share in merits.items()}
        assert {search: table[search][place] for search in finders} == expected
        assert {table[search][place] for search in searches if search not in own} <= {0.0}
