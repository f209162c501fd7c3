"""The order of hits: a third of hybrid's best, the literal reading of the specification, and equal texts."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from waylore.config import HybridConfig, MergeConfig
from waylore.retrieval.fusion import FusedCandidate, combine_weighted, fuse
from waylore.retrieval.order import arrange, find_repeats, group_repeats, has_same_words, keep_all
from waylore.types.search import Ranking, Scored

SCORES = st.integers(0, 10**9).map(lambda n: n / 1e6)
RANKINGS = st.dictionaries(st.sampled_from("abcdefghijkl"), SCORES).map(
    lambda found: tuple(Scored(id_, score) for id_, score in sorted(found.items(), key=lambda item: -item[1]))
)
LONG = " ".join(f"word{n}" for n in range(40))


def list_ids(candidates: tuple[FusedCandidate, ...]) -> list[str]:
    return [candidate.id for candidate in candidates]


def merge(keyword: Ranking, graph: Ranking, weight: float) -> tuple[tuple[FusedCandidate, ...], ...]:
    """Return the candidates of hybrid search, and those of both."""
    base = fuse({"keyword": keyword}, HybridConfig("weighted"))
    return base, combine_weighted(base, graph, MergeConfig(graph_weight=weight))


@given(RANKINGS, RANKINGS, st.floats(0, 3), st.sets(st.sampled_from("abcdefghijkl")))
def test_a_third_of_the_first_hits_are_the_best_of_hybrid(
    keyword: Ranking, graph: Ranking, weight: float, left_out: set[str]
) -> None:
    hybrid, candidates = merge(keyword, graph, weight)
    ids = list_ids(tuple(arrange(hybrid, candidates, left_out)))
    best = [id_ for id_ in list_ids(hybrid) if id_ not in left_out]
    assert sorted(ids) == sorted(set(list_ids(candidates)) - left_out)
    for n in range(len(ids) + 1):
        assert set(best[: n // 3]) <= set(ids[:n])


@given(RANKINGS, RANKINGS, st.floats(0, 3))
def test_other_hits_are_in_the_order_of_their_scores(keyword: Ranking, graph: Ranking, weight: float) -> None:
    """A candidate stands before a better one only at a third place, where hybrid search owes one."""
    hybrid, candidates = merge(keyword, graph, weight)
    order = list_ids(candidates)
    ids = list_ids(tuple(arrange(hybrid, candidates)))
    for place, id_ in enumerate(ids, 1):
        best = min(ids[place - 1 :], key=order.index)
        assert id_ == best or (place % 3 == 0 and id_ in list_ids(hybrid)[: place // 3])


def test_hybrid_alone_keeps_its_order() -> None:
    hybrid, _ = merge(tuple(Scored(id_, 9.0 - n) for n, id_ in enumerate("abcdefgh")), (), 0.0)
    assert tuple(arrange(hybrid, hybrid)) == hybrid
    assert list_ids(tuple(islice(arrange(hybrid, hybrid), 3))) == ["a", "b", "c"]


def test_literal_reading_adds_only_what_the_graph_reached() -> None:
    hybrid, candidates = merge(
        (Scored("a", 0.9), Scored("b", 0.8), Scored("c", 0.7), Scored("d", 0.6)),
        (Scored("e", 1.0), Scored("d", 0.9), Scored("f", 0.1)),
        0.3,
    )
    reached = {"d", "e", "f"}
    for max_added in range(4):
        chosen = list_ids(keep_all(hybrid, candidates, reached, top_k=2, max_added=max_added))
        added = [id_ for id_ in list_ids(candidates) if id_ in reached][:max_added]
        assert chosen == [id_ for id_ in list_ids(candidates) if id_ in {"a", "b", *added}]


@given(RANKINGS, RANKINGS, st.integers(1, 6), st.integers(0, 6), st.floats(0, 1))
def test_literal_reading_keeps_top_k_and_limit(
    keyword: Ranking, graph: Ranking, top_k: int, added: int, weight: float
) -> None:
    hybrid, candidates = merge(keyword, graph, weight)
    chosen = keep_all(hybrid, candidates, {s.id for s in graph}, top_k=top_k, max_added=added)
    ids, base = list_ids(chosen), set(list_ids(hybrid)[:top_k])
    assert base <= set(ids)
    assert len(ids) == len(set(ids)) <= len(base) + added
    assert set(ids) - base <= {s.id for s in graph}
    assert [*chosen] == sorted(chosen, key=lambda f: (-f.score, f.id))


def test_equal_texts_repeat_the_first() -> None:
    texts = {"a": LONG, "b": "Other words.", "c": LONG.upper() + "!", "d": LONG + " today", "e": "other words"}
    repeats = find_repeats(texts.items())
    assert repeats == {"c": "a", "d": "a", "e": "b"}
    assert group_repeats({**repeats, "f": "d"}) == {"a": ["c", "d", "f"], "b": ["e"]}


def test_short_texts_must_have_the_same_order() -> None:
    assert has_same_words(["from", "rome", "to", "paris"], ["from", "rome", "to", "paris"])
    assert not has_same_words(["from", "rome", "to", "paris"], ["from", "paris", "to", "rome"])
    assert not has_same_words(["it", "is"], ["it", "is", "not"])
    assert not has_same_words([], [])


def test_long_texts_may_differ_in_a_word() -> None:
    words = [f"w{n}" for n in range(60)]
    assert has_same_words(words, [*words[1:], words[0]])
    assert has_same_words(words, words[:-2])
    assert not has_same_words(words, words[:-4])
