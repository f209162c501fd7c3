"""benchmarks/pagerank.py: weights are what the paper says, and the walk ends where algebra does."""

from collections.abc import Sequence

import numpy as np
import pytest
from benchmarks import pagerank
from benchmarks.pagerank import (
    DAMPING,
    Graph,
    build_graph,
    compute_restarts,
    count_facts,
    find_best,
    find_synonyms,
    format_line,
    measure_dataset,
    rank_documents,
    scale_scores,
)

from waylore.evaluation.datasets import Dataset, EvaluationQuestion
from waylore.protocols import Vectors
from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, Passage, Vector

QUESTION = "Where was the director of Jaws born?"
DIRECTIONS = {
    QUESTION: (1.0, 0.0),
    "jaws by spielberg": (1.0, 0.1),
    "Jaws\n.": (1.0, 0.2),
    "Sharks\n.": (0.1, 1.0),
    "Cincinnati\n.": (0.0, 1.0),
}


class Compass:
    """Texts of DIRECTIONS point there, all others half-way between, away from them in a third dimension."""

    name = "compass"
    dimension = 3

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.array([self.embed_query(text) for text in texts], dtype=np.float32).reshape(-1, 3)

    def embed_query(self, text: str) -> Vector:
        east, north = DIRECTIONS.get(text, (0.5, 0.5))
        row = np.array([east, north, 0.0 if text in DIRECTIONS else 1.0], dtype=np.float32)
        return row / np.linalg.norm(row)


def page(title: str, *facts: tuple[str, str, str]) -> IndexedDocument:
    document = Document(document_id(uri=title.lower()), uri=title.lower(), title=title)
    passage = Passage(passage_id(document.id, "."), document.id, ".", title)
    names = dict.fromkeys([title.lower(), *(name for s, _, o in facts for name in (s, o))])
    return IndexedDocument(
        document,
        (passage,),
        tuple(Entity(entity_id(name), name) for name in names),
        tuple(Mention(entity_id(name), passage.id) for name in names),
        tuple(fact(*told, passage) for told in facts),
    )


def fact(subject: str, predicate: str, object_: str, passage: Passage) -> Fact:
    ends = entity_id(subject), entity_id(object_)
    id_ = fact_id(ends[0], predicate, ends[1], is_entity=True)
    return Fact(id_, ends[0], subject, predicate, object_, ends[1], passage_id=passage.id)


PAGES = (
    page("Jaws", ("jaws", "by", "spielberg")),
    page("Sharks"),
    page("Spielberg", ("spielberg", "born in", "cincinnati"), ("spielberg", "made", "jaws")),
    page("Cincinnati"),
)
ASKED = (EvaluationQuestion("q1", QUESTION, frozenset({"jaws", "cincinnati"})),)
SET = Dataset("films", PAGES, ASKED)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(pagerank, "MIN_SYNONYM_COSINE", 1.1)
    return build_graph(SET, Compass())


def test_a_pair_weighs_as_often_as_facts_join_it_whichever_is_the_subject() -> None:
    assert count_facts([[0, 1], [1, 0], [0, 2], [2, 2]], 3).toarray().tolist() == [
        [0, 2, 1],
        [2, 0, 0],
        [1, 0, 0],
    ]


def test_a_column_of_steps_shares_one_among_facts_and_mentions(graph: Graph) -> None:
    dense = graph.steps.toarray()
    assert dense.sum(axis=0) == pytest.approx(np.ones(8))
    jaws, spielberg, first_passage = 0, 1, 4
    assert dense[spielberg, jaws] == pytest.approx(2 / 4)  # two facts beside two mentions
    assert dense[first_passage, jaws] == pytest.approx(1 / 4)


def test_synonyms_are_close_long_enough_and_the_same_in_any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.array([[1, 0], [0.9, 0.4358899], [0, 1], [1, 0]], dtype=np.float32)
    whole = find_synonyms(["one", "uno", "two", "1."], vectors).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.9
    assert whole == pytest.approx(expected)
    monkeypatch.setattr(pagerank, "BLOCK_ROWS", 1)
    assert find_synonyms(["one", "uno", "two", "1."], vectors).toarray() == pytest.approx(whole)


def test_a_name_keeps_its_nearest_synonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "MAX_SYNONYMS", 1)
    angles = np.array([0.0, 0.1, 0.3])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = find_synonyms(["one", "uno", "eins"], vectors).toarray() > 0
    assert found.tolist() == [[False, True, False], [True, False, True], [False, True, False]]


def test_names_that_are_all_too_short_have_no_synonyms() -> None:
    assert find_synonyms(["a", "b"], np.eye(2, dtype=np.float32)).nnz == 0


def test_restarts_are_the_mean_of_the_facts_over_the_passages_that_mention_an_end(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagerank, "MAX_FACTS", 1)
    weights = compute_restarts(graph, Compass().embed_query(QUESTION))
    jaws, spielberg, sharks, cincinnati, first, *_, last = weights / weights[4] * 0.05
    assert (jaws, spielberg, sharks, cincinnati) == pytest.approx((1 / 2, 1 / 2, 0, 0))
    assert (first, last) == pytest.approx((0.05, 0))


def test_power_iteration_ends_where_algebra_does(graph: Graph) -> None:
    restart = compute_restarts(graph, Compass().embed_query(QUESTION))
    exact = np.linalg.solve(np.eye(8) - DAMPING * graph.steps.toarray(), (1 - DAMPING) * restart)
    assert pagerank.compute_pagerank(graph.steps, restart) == pytest.approx(exact, abs=1e-8)


def test_a_passage_two_hops_away_passes_one_that_resembles_the_question_more(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagerank, "MAX_FACTS", 1)
    found = rank_documents(graph, Compass().embed_query(QUESTION))
    assert set(found[:2]) == {"jaws", "spielberg"}
    assert found.index("cincinnati") < found.index("sharks")


def test_a_set_without_facts_is_ranked_by_its_passages() -> None:
    bare = Dataset("bare", (page("Jaws"), page("Cincinnati")), ASKED)
    assert rank_documents(build_graph(bare, Compass()), Compass().embed_query(QUESTION)) == [
        "jaws",
        "cincinnati",
    ]


def test_scores_are_moved_to_0_to_1_and_the_same_ones_to_1() -> None:
    assert scale_scores(np.array([2.0, 4.0, 3.0])).tolist() == [0, 1, 0.5]
    assert scale_scores(np.array([2.0, 2.0])).tolist() == [1, 1]
    assert scale_scores(np.array([])).tolist() == []


@pytest.mark.parametrize("count", [2, 3, 9])
def test_best_are_in_order(count: int) -> None:
    assert find_best(np.array([0.1, 0.3, 0.2]), count).tolist() == [1, 2, 0][:count]


def test_a_run_has_the_shape_that_evaluation_reads() -> None:
    run = measure_dataset(SET, Compass())
    assert (run["set"], run["recipe"], run["embedder"]) == ("films", "pagerank", "compass")
    (asked,) = run["questions"]
    assert asked.keys() == {"id", "ranked", "seconds"}
    assert (asked["id"], sorted(asked["ranked"])) == ("q1", ["cincinnati", "jaws", "sharks", "spielberg"])
    assert format_line(SET, run).split()[:2] == ["films", "1"]
