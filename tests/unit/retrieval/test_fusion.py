"""Fusion keeps every candidate, gives each search its share, and says who gave what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.config import Hybrid, Merge
from waylore.retrieval.fusion import Fused, additive, fuse, weighed
from waylore.types.search import Placement, Ranking, Scored

WEIGHTED = Hybrid(vector_weight=0.7, text_weight=0.3)
RRF = Hybrid(fusion="rrf", vector_weight=0.5, text_weight=0.5)

SCORES = st.integers(0, 10**9).map(lambda n: n / 1e6)  # stores round to six places
RANKINGS = st.dictionaries(st.sampled_from("abcdef"), SCORES).map(
    lambda found: ranking(**dict(sorted(found.items(), key=lambda item: -item[1])))
)
CONFIGS = st.sampled_from([WEIGHTED, RRF, Hybrid()])


def ranking(**scores: float) -> Ranking:
    return tuple(Scored(id_, score) for id_, score in scores.items())


def scores(fused: tuple[Fused, ...]) -> dict[str, float]:
    return {f.id: f.score for f in fused}


def test_weights_share_a_score_that_is_scaled_to_its_search() -> None:
    fused = fuse({"dense": ranking(a=0.9, b=0.8, c=0.5), "lexical": ranking(b=12.0, d=7.0)}, WEIGHTED)
    assert [f.id for f in fused] == ["b", "a", "d", "c"]
    assert scores(fused) == pytest.approx({"b": 0.7 * 0.75 + 0.3, "a": 0.7, "d": 0.3 * 7 / 12, "c": 0.0})


def test_reciprocal_ranks_are_those_of_the_specification() -> None:
    fused = fuse({"dense": ranking(a=9, b=8), "lexical": ranking(c=7, d=6, a=5)}, RRF)
    assert fused[0].id == "a"
    assert fused[0].score == pytest.approx(0.5 / 61 + 0.5 / 63)
    assert round(fused[0].score, 5) == 0.01613
    assert scores(fused)["c"] == pytest.approx(0.5 / 61)
    assert scores(fuse({"dense": ranking(a=1)}, Hybrid("rrf", 1.0, rrf_k=9))) == {"a": pytest.approx(0.1)}


def test_ranks_do_not_look_at_scores() -> None:
    near, far = ranking(a=0.51, b=0.5), ranking(a=100.0, b=0.1)
    assert scores(fuse({"dense": near}, RRF)) == scores(fuse({"dense": far}, RRF))


def test_what_one_search_found_keeps_its_share() -> None:
    fused = fuse({"dense": (), "lexical": ranking(a=3.0, b=2.0, c=1.0)}, WEIGHTED)
    assert scores(fused) == pytest.approx({"a": 0.3, "b": 0.2, "c": 0.1})
    assert fused[0].placements == (Placement("lexical", rank=1, score=3.0, share=0.3),)


def test_a_placement_says_rank_and_score_of_its_search() -> None:
    fused = fuse({"dense": ranking(a=0.9, b=0.8), "lexical": ranking(b=12.0, a=7.0)}, WEIGHTED)
    assert [(p.search, p.rank, p.score) for p in fused[0].placements] == [
        ("dense", 1, 0.9),
        ("lexical", 2, 7.0),
    ]


@pytest.mark.parametrize(
    "only", [ranking(a=0.4), ranking(a=0.4, b=0.4, c=0.4), ranking(a=0.0), ranking(a=-2.0)]
)
def test_scores_that_are_all_the_same_are_all_full(only: Ranking) -> None:
    assert {f.score for f in fuse({"dense": only}, WEIGHTED)} == {0.7}


def test_ties_are_broken_by_identity() -> None:
    assert [f.id for f in fuse({"dense": ranking(c=1, a=1, b=1)}, WEIGHTED)] == ["a", "b", "c"]
    assert [f.id for f in fuse({"dense": ranking(b=1), "lexical": ranking(a=1)}, RRF)] == ["a", "b"]


def test_a_search_of_no_known_weight_counts_in_full() -> None:
    assert scores(fuse({"graph": ranking(a=2.0)}, WEIGHTED)) == {"a": 1.0}


@given(RANKINGS, RANKINGS, CONFIGS)
def test_nothing_is_dropped_and_shares_sum_to_the_score(
    dense: Ranking, lexical: Ranking, config: Hybrid
) -> None:
    fused = fuse({"dense": dense, "lexical": lexical}, config)
    assert sorted(f.id for f in fused) == sorted({s.id for s in (*dense, *lexical)})
    assert [*fused] == sorted(fused, key=lambda f: (-f.score, f.id))
    for f in fused:
        assert f.score == pytest.approx(sum(p.share for p in f.placements), abs=1e-9)
        assert [p.search for p in f.placements] == [
            search
            for search, found in (("dense", dense), ("lexical", lexical))
            if f.id in {s.id for s in found}
        ]
        assert all(0.0 <= p.share <= 1.0 for p in f.placements)


@given(RANKINGS, CONFIGS)
def test_one_search_alone_keeps_its_order(dense: Ranking, config: Hybrid) -> None:
    rank = {s.id: s.score for s in dense}
    fused = [rank[f.id] for f in fuse({"dense": dense}, config)]
    assert fused == sorted(fused, reverse=True)


def test_a_graph_counts_as_much_as_it_is_given() -> None:
    rankings = {"dense": ranking(a=1.0), "graph": ranking(b=2.0, a=1.0)}
    assert scores(fuse(rankings, RRF, graph_weight=0.3)) == pytest.approx(
        {"a": 0.5 / 61 + 0.3 / 62, "b": 0.3 / 61}
    )


# -- S5: the graph joins hybrid search -----------------------------------------------------------------


def hybrid(**scores: float) -> tuple[Fused, ...]:
    return tuple(Fused(id_, score, (Placement("lexical", 1, 9.0, score),)) for id_, score in scores.items())


def test_hybrid_and_graph_are_weighed_as_specified() -> None:
    joined = weighed(hybrid(a=1.0, b=0.5), ranking(c=0.9, b=0.8), Merge())
    assert scores(joined) == pytest.approx({"a": 0.7, "b": 0.7 * 0.5 + 0.3 * 0.8, "c": 0.3 * 0.9})
    assert [f.id for f in joined] == ["a", "b", "c"]
    assert joined[1].placements == (Placement("lexical", 1, 9.0, 0.35), Placement("graph", 2, 0.8, 0.24))


def test_what_only_the_graph_found_is_placed_by_it_alone() -> None:
    [only] = weighed((), ranking(a=0.5), Merge(graph_weight=1.0))
    assert (only.score, only.placements) == (0.5, (Placement("graph", 1, 0.5, 0.5),))


def test_a_graph_that_found_nothing_changes_no_order() -> None:
    base = hybrid(a=0.9, c=0.4, b=0.4)
    assert [f.id for f in weighed(base, (), Merge())] == ["a", "b", "c"]


def test_only_what_the_graph_reached_is_added() -> None:
    base = hybrid(a=0.9, b=0.8, c=0.7, d=0.6)
    joined = weighed(base, ranking(e=1.0, d=0.9, f=0.1), Merge())
    reached = {"d", "e", "f"}
    assert [f.id for f in additive(base, joined, reached, top_k=2, added=2)] == ["d", "a", "b", "e"]
    assert [f.id for f in additive(base, joined, reached, top_k=2, added=1)] == ["d", "a", "b"]
    assert [f.id for f in additive(base, joined, reached, top_k=2, added=0)] == ["a", "b"]
    assert [f.id for f in additive(base, joined, reached, top_k=9, added=9)] == [f.id for f in joined]


@given(RANKINGS, RANKINGS, CONFIGS, st.integers(1, 6), st.integers(0, 6), st.floats(0, 1))
def test_all_of_the_hybrid_top_k_stays_and_no_more_is_added_than_may_be(
    lexical: Ranking, graph: Ranking, config: Hybrid, top_k: int, added: int, weight: float
) -> None:
    base = fuse({"lexical": lexical}, config)
    joined = weighed(base, graph, Merge(graph_weight=weight))
    chosen = additive(base, joined, {s.id for s in graph}, top_k=top_k, added=added)
    ids = [f.id for f in chosen]
    assert {f.id for f in base[:top_k]} <= set(ids)
    assert len(ids) == len(set(ids)) <= min(len(base), top_k) + added
    assert set(ids) - {f.id for f in base[:top_k]} <= {s.id for s in graph}
    assert [*chosen] == sorted(chosen, key=lambda f: (-f.score, f.id))
    assert all(f.score == pytest.approx(sum(p.share for p in f.placements), abs=1e-8) for f in chosen)
