"""A reranker reads passages with their paths; its score replaces theirs, and no hit is dropped."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.samples import make_fact, make_hit
from waylore.errors import ModelError
from waylore.retrieval.hits import rerank
from waylore.types.search import GraphPath, Hit, Placement, Step, Superseder

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


class Scripted:
    """A reranker that gives the scores it was told to, and remembers what it was given."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores
        self.read: list[tuple[str, str]] = []

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.read += [(query, text) for text in texts]
        return self.scores


def placed(name: str, share: float) -> Hit:
    return replace(make_hit(name, f"Text of {name}."), score=share, placements=(Placement("vector", 1, 0.5, share),))


def test_rerank_sorts_by_score_then_id() -> None:
    hits = [placed("c", 0.9), placed("b", 0.8), placed("a", 0.7), placed("d", 0.6)]
    found = rerank(Scripted(0.1, 0.5, 0.5, 0.9), "who?", hits)
    assert [(h.passage.id, h.score) for h in found] == [("d", 0.9), ("a", 0.5), ("b", 0.5), ("c", 0.1)]


@given(st.permutations([0.1, 0.4, 0.7, 0.9]))
def test_superseded_hits_stay_below_what_holds_instead(scores: list[float]) -> None:
    first, second, third, other = (placed(name, 0.5) for name in "abcd")
    later = [Superseder(hit.passage.id, hit.text, None, "changed", MOMENT) for hit in (second, third)]
    hits = [third, replace(second, superseded_by=later[1]), replace(first, superseded_by=later[0]), other]
    found = rerank(Scripted(*scores), "who?", hits)
    names = [hit.passage.id for hit in found if hit.passage.id != "d"]
    assert names == ["c", "b", "a"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_rerank_replaces_score_and_keeps_placements() -> None:
    [found] = rerank(Scripted(-3.25), "who?", [placed("a", 0.7)])
    assert found.placements == (Placement("vector", 1, 0.5, 0.0), Placement("reranker", 1, -3.25, -3.25))
    assert "reranker: rank 1, score -3.2500" in str(found.explanation)


@pytest.mark.parametrize(
    ("scores", "message"), [((0.5,), "1 scores for 2 passages"), ((0.5, float("nan")), "not a finite number")]
)
def test_wrong_scores_raise(scores: tuple[float, ...], message: str) -> None:
    with pytest.raises(ModelError, match=f"{message}.*; check the reranker"):
        rerank(Scripted(*scores), "who?", [placed("a", 0.9), placed("b", 0.8)])


def test_reranker_reads_title_passage_and_path() -> None:
    steps = (
        Step(make_fact("Ada", "needs", "Engine", "Ada needs an engine.")),
        Step(make_fact("Kiel", "built", "Engine")),
    )
    led = replace(make_hit("a", "Kiel has boats.", title="Kiel"), path=GraphPath("Ada", steps))
    reranker = Scripted(1.0, 2.0)
    rerank(reranker, "who?", [led, make_hit("b", "Nothing led here.")])
    assert reranker.read == [
        ("who?", "Kiel\nKiel has boats.\nAda needs an engine.; Kiel built Engine"),
        ("who?", "Nothing led here."),
    ]


@given(st.lists(st.floats(-100, 100), max_size=8))
def test_rerank_keeps_hits_and_shares_sum_to_score(scores: list[float]) -> None:
    hits = [placed(str(number), 0.1) for number in range(len(scores))]
    found = rerank(Scripted(*scores), "who?", hits)
    assert sorted(h.passage.id for h in found) == sorted(h.passage.id for h in hits)
    assert [h.placements[-1].rank for h in found] == [*range(1, len(hits) + 1)]
    assert all(h.score == sum(p.share for p in h.placements) for h in found)
    assert [(-h.score, h.passage.id) for h in found] == sorted((-h.score, h.passage.id) for h in found)
