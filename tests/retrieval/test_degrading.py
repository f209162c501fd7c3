"""What is missing is left out and named, the rest answers, and the graph is left out for a reason that is said.

Each verb of a real store is made to fail, alone and in random worlds; embedders and rerankers fail too. What is
never missing is the answer of hybrid search, unless nothing can be searched: then that is said.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from retrieval.worlds import (
    EMBEDDER,
    GRAPHS,
    QUESTION,
    SAMPLE,
    Case,
    Halves,
    ask,
    cases,
    contributions,
    holding,
    ids,
    promised,
)
from waylore.config import Gate, Linking
from waylore.errors import ModelUnavailable, StoreError, StoreUnavailable
from waylore.recipes import CHAIN, KEYWORD, RECIPES, Recipe
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Vector

OPEN = Gate(min_confidence=0.0)
OF_THE_GRAPH = """entities_by_names nearest_entities facts_of_entities facts_of_passages passages_of_entities
    entities_of_passages nearby cosines entities alike""".split()
NOT_SEARCHED = "the graph could not be searched"


class Broken(SqliteStore):
    """A store in which some verbs fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.broken: frozenset[str] = frozenset()
        self.called: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found):
            return found
        self.called.add(name)
        return _fail(name) if name in self.broken else found


def _fail(verb: str) -> Callable[..., Any]:
    def failing(*arguments: object, **options: object) -> Any:
        raise StoreError(f"{verb} is broken")

    return failing


@pytest.fixture(scope="module")
def shared() -> Iterator[Broken]:
    with holding(contributions(SAMPLE), Broken) as store:
        yield store


@pytest.fixture
def store(shared: Broken) -> Broken:
    """The sample world, whole until a test breaks it."""
    shared.broken = frozenset()
    shared.called.clear()
    return shared


class Tired(Halves):
    """An embedder that answers so many times and then no more."""

    def __init__(self, answers: int) -> None:
        super().__init__(16, quiet=True)
        self.answers = answers

    def embed_query(self, text: str) -> Vector:
        self.answers -= 1
        if self.answers < 0:
            raise ModelUnavailable("the embedding service does not answer")
        return super().embed_query(text)


class Scripted:
    """A reranker that does as it is told."""

    def __init__(self, scores: Callable[[Sequence[str]], Sequence[float]]) -> None:
        self.scores = scores

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self.scores(texts)


def opened(name: str, **changes: Any) -> Recipe:
    """A recipe that walks on thin evidence; its top is small, so that the graph has something to add."""
    return replace(RECIPES[name], gate=OPEN, top_k=3, **changes)


def without_graph(recipe: Recipe) -> Recipe:
    return replace(recipe, graph="")


# -- the store -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("verb", OF_THE_GRAPH)
def test_where_a_verb_of_the_graph_fails_hybrid_search_answers_and_the_answer_says_so(
    name: str, verb: str, store: Broken
) -> None:
    whole, hybrid = ask(store, QUESTION, opened(name)), ask(store, QUESTION, without_graph(opened(name)))
    is_used = verb in store.called
    store.broken = frozenset({verb})
    found = ask(store, QUESTION, opened(name))
    assert whole.skipped == ""
    if not is_used:
        assert found == whole
        return
    stage = "link" if verb == "entities_by_names" or found.confidence is None else "graph"
    assert found.missing == (f"{stage}: {verb} is broken",)
    assert found.skipped == NOT_SEARCHED
    assert found.hits == hybrid.hits
    assert hybrid.hits


def test_each_verb_of_the_graph_is_used_by_some_recipe(store: Broken) -> None:
    for name in GRAPHS:
        ask(store, QUESTION, opened(name))
    assert set(OF_THE_GRAPH) <= store.called


@promised(60, cases(), st.frozensets(st.sampled_from(OF_THE_GRAPH), min_size=1, max_size=2))
def test_whatever_fails_of_the_graph_takes_nothing_from_hybrid_search(
    case: Case, broken: frozenset[str]
) -> None:
    with holding(contributions(case.world), Broken) as store:
        store.broken = broken
        found, hybrid = case.ask(store), case.hybrid(store)
    assert set(ids(hybrid)) <= set(ids(found))
    assert (found.skipped == NOT_SEARCHED) == any("is broken" in missing for missing in found.missing)
    if found.skipped:
        assert found.hits == hybrid.hits


@pytest.mark.parametrize("name", RECIPES)
def test_where_vectors_cannot_be_searched_words_answer(name: str, store: Broken) -> None:
    store.broken = frozenset({"dense"})
    found = ask(store, QUESTION, opened(name))
    words = store.lexical(QUESTION, top_k=3)
    assert set(found.missing) <= {"dense: dense is broken", "graph: dense is broken"}  # guided needs it twice
    assert (found.missing[:1] == ("dense: dense is broken",)) == (name != "keyword")
    assert {s.id for s in words} <= set(ids(found))


@pytest.mark.parametrize("name", RECIPES)
def test_where_words_cannot_be_searched_vectors_answer(name: str, store: Broken) -> None:
    store.broken = frozenset({"lexical"})
    if name == "keyword":
        with pytest.raises(StoreError, match="lexical is broken"):
            ask(store, QUESTION, opened(name))
        return
    found = ask(store, QUESTION, opened(name))
    near = store.dense(EMBEDDER.embed_query(QUESTION), top_k=3)
    assert found.missing == (() if name == "vector" else ("lexical: lexical is broken",))
    assert {s.id for s in near} <= set(ids(found))


def test_where_no_search_can_be_run_that_is_said(store: Broken) -> None:
    store.broken = frozenset({"dense", "lexical"})
    with pytest.raises(StoreError, match=r"dense is broken; lexical: lexical is broken"):
        ask(store, QUESTION, CHAIN)
    with pytest.raises(StoreError, match=r"no embedder.*lexical is broken"):
        ask(store, QUESTION, CHAIN, embedder=None)


def test_a_store_that_cannot_be_reached_is_said_to_be_unavailable(
    store: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries again later must be able to tell that from a refusal, whichever stage fails."""

    def unreachable(*arguments: object, **options: object) -> Any:
        raise StoreUnavailable("nobody listens there")

    monkeypatch.setattr(Broken, "dense", unreachable)
    monkeypatch.setattr(Broken, "lexical", unreachable)
    with pytest.raises(StoreUnavailable, match="nobody listens there") as told:
        ask(store, QUESTION, CHAIN)
    assert isinstance(told.value.__cause__, StoreUnavailable)


@pytest.mark.parametrize("verb", ["passages", "sources"])
def test_where_hits_cannot_be_read_there_is_no_answer(verb: str, store: Broken) -> None:
    store.broken = frozenset({verb})
    with pytest.raises(StoreError, match=f"{verb} is broken"):
        ask(store, QUESTION, CHAIN)


def test_where_statistics_cannot_be_read_hybrid_search_answers(store: Broken) -> None:
    hybrid = ask(store, QUESTION, without_graph(CHAIN))
    store.broken = frozenset({"statistics"})
    assert set(ids(hybrid)) <= set(ids(ask(store, QUESTION, CHAIN)))


# -- models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_an_embedder_that_fails_is_as_good_as_none_and_either_is_named(name: str, store: Broken) -> None:
    down = ask(store, QUESTION, opened(name), embedder=Tired(0))
    none = ask(store, QUESTION, opened(name), embedder=None)
    words = [s.id for s in store.lexical(QUESTION, top_k=3)]
    assert replace(down, missing=()) == replace(none, missing=())
    assert set(words) <= set(ids(none))
    if name != "keyword":
        assert down.missing == ("dense: the embedding service does not answer",)
        assert none.missing == ("dense: no embedder was given, so only words were searched",)


def test_an_embedder_that_fails_between_two_queries_leaves_hybrid_search(store: Broken) -> None:
    recipe = opened("guided")
    found = ask(store, QUESTION, recipe, embedder=Tired(2))
    hybrid = ask(store, QUESTION, without_graph(recipe))
    assert found.missing == ("graph: the embedding service does not answer",)
    assert found.skipped == NOT_SEARCHED
    assert found.hits == hybrid.hits


def test_a_question_with_a_vector_is_answered_where_nothing_else_has_one() -> None:
    with holding(contributions(SAMPLE, embedder=None), SqliteStore, model=None) as store:
        found = ask(store, QUESTION, opened("chain"))
        assert set(ids(ask(store, QUESTION, without_graph(opened("chain"))))) <= set(ids(found))


def test_a_question_of_another_length_is_left_to_the_words(store: Broken) -> None:
    found = ask(store, QUESTION, CHAIN, embedder=Halves(8, quiet=True))
    words = ask(store, QUESTION, without_graph(CHAIN), embedder=None)
    assert "dense" in found.missing[0]
    assert set(ids(words)) <= set(ids(found))


# -- rerankers -----------------------------------------------------------------------------------------


def test_a_reranker_reorders_and_drops_nothing(store: Broken) -> None:
    plain = ask(store, QUESTION, CHAIN)
    found = ask(store, QUESTION, CHAIN, reranker=Scripted(lambda texts: range(len(texts))))
    assert ids(found) == ids(plain)[::-1]
    assert found.missing == ()
    assert [hit.path for hit in found.hits] == [hit.path for hit in plain.hits][::-1]


def _unavailable(texts: Sequence[str]) -> Sequence[float]:
    raise ModelUnavailable("the reranker does not answer")


def _foreign(texts: Sequence[str]) -> Sequence[float]:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    "scores",
    [
        _unavailable,
        _foreign,
        lambda texts: [1.0],
        lambda texts: [float("nan")] * len(texts),
    ],
)
def test_a_reranker_that_fails_is_left_out_and_named(
    scores: Callable[[Sequence[str]], Sequence[float]], store: Broken
) -> None:
    plain, found = (ask(store, QUESTION, CHAIN, reranker=r) for r in (None, Scripted(scores)))
    assert found.hits == plain.hits
    assert [missing.split(":")[0] for missing in found.missing] == ["reranker"]


# -- nothing there, and the gate -----------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("embedder", [EMBEDDER, None])
def test_an_empty_store_has_an_empty_answer(name: str, embedder: Halves | None) -> None:
    with holding([], SqliteStore) as store:
        found = ask(store, QUESTION, RECIPES[name], embedder=embedder)
    assert (found.hits, found.facts, found.entities) == ((), (), ())
    assert found.skipped == ("the graph is empty" if name in GRAPHS else "the recipe does not use the graph")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("reason", "question", "change", "facts"),
    [
        ("the graph is empty", QUESTION, {}, False),
        ("the question names nothing that is known", "A storm?", {"linking": Linking(ways=("names",))}, True),
        ("confidence 0.", QUESTION, {"gate": Gate(min_confidence=0.99)}, True),
        ("the recipe does not use the graph", QUESTION, {"graph": ""}, True),
    ],
)
def test_the_graph_is_left_out_for_a_reason_and_then_hits_are_those_of_hybrid_search(
    name: str, reason: str, question: str, change: dict[str, Any], facts: bool
) -> None:
    world = SAMPLE if facts else [replace(told, claims=()) for told in SAMPLE]
    recipe = replace(opened(name), **change)
    with holding(contributions(world), SqliteStore) as store:
        found, hybrid = ask(store, question, recipe), ask(store, question, without_graph(recipe))
    assert found.skipped.startswith(reason)
    assert found.hits == hybrid.hits
    assert found.hits
    assert found.facts == ()
    assert found.missing == ()


def test_words_alone_are_asked_for_without_an_embedder_and_nothing_is_missing(store: Broken) -> None:
    assert ask(store, QUESTION, KEYWORD, embedder=Tired(0)).missing == ()
