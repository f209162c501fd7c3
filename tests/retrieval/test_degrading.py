"""Failed parts are left out and reported, the others answer, and a skipped graph has a reason.

Each verb of a real store is made to fail, alone and in random worlds; embedders and rerankers fail too. The
hits of hybrid search are always in the result, unless nothing can be searched, which raises an error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from retrieval.worlds import (
    ADDITIVE,
    EMBEDDER,
    GRAPHS,
    QUESTION,
    SAMPLE,
    Case,
    Halves,
    cases,
    fill_store,
    index_world,
    list_ids,
    promise,
    search_store,
)
from waylore.config import GateConfig, HybridConfig, LinkingConfig
from waylore.errors import ModelUnavailable, StoreError, StoreUnavailable
from waylore.protocols import Vectors
from waylore.recipes import CHAIN, GRAPH_ONLY, KEYWORD, RECIPES, Recipe
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Vector

OPEN = GateConfig(min_confidence=0.0)
GRAPH_VERBS = """entities_by_names nearest_entities facts_of_entities facts_of_passages pairs_of_entities
    passages_of_entities entities_of_passages nearby cosines entities find_similar_entities""".split()
GRAPH_FAILED = "the graph could not be searched"
OTHER_STAGES = {"scores", "set", "stating"}  # they read facts too, but the answer has the graph without them
ADDITIVE_GRAPHS = tuple(name for name in GRAPHS if name in ADDITIVE)


class BrokenStore(SqliteStore):
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
def shared() -> Iterator[BrokenStore]:
    with fill_store(index_world(SAMPLE), BrokenStore) as store:
        yield store


@pytest.fixture
def store(shared: BrokenStore) -> BrokenStore:
    """Return the sample world, intact until a test breaks it."""
    shared.broken = frozenset()
    shared.called.clear()
    return shared


class FailingEmbedder(Halves):
    """An embedder that answers a number of times and then fails."""

    def __init__(self, answers: int) -> None:
        super().__init__(16, quiet=True)
        self.answers = answers

    def embed_query(self, text: str) -> Vector:
        self.answers -= 1
        if self.answers < 0:
            raise ModelUnavailable("the embedding service does not answer")
        return super().embed_query(text)


class ScriptedReranker:
    """A reranker with scores from a function."""

    def __init__(self, scores: Callable[[Sequence[str]], Sequence[float]]) -> None:
        self.scores = scores

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self.scores(texts)


def open_gate(name: str, **changes: Any) -> Recipe:
    """Return a recipe whose gate is open, with a small top_k, so that the graph can add hits."""
    return replace(RECIPES[name], gate=OPEN, top_k=3, **changes)


def remove_graph(recipe: Recipe) -> Recipe:
    return replace(recipe, graph="")


# -- the store -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADDITIVE_GRAPHS)
@pytest.mark.parametrize("verb", GRAPH_VERBS)
def test_failed_graph_verb_leaves_hybrid_and_is_reported(name: str, verb: str, store: BrokenStore) -> None:
    whole, hybrid = (
        search_store(store, QUESTION, open_gate(name)),
        search_store(store, QUESTION, remove_graph(open_gate(name))),
    )
    is_used = verb in store.called
    store.broken = frozenset({verb})
    found = search_store(store, QUESTION, open_gate(name))
    assert whole.skip_reason == ""
    if not is_used:
        assert found == whole
        return
    stage = "link" if verb == "entities_by_names" or found.confidence is None else "graph"
    broken = [f"{each}: {verb} is broken" for each in (stage, "set")]  # a set is read by a stage of its own
    assert broken[:1] == [line for line in found.missing if line != broken[1]]
    assert found.skip_reason == GRAPH_FAILED
    assert found.hits == hybrid.hits
    assert hybrid.hits


@pytest.mark.parametrize("verb", [*GRAPH_VERBS, "has_facts", "dense", "lexical"])
def test_graph_only_fails_only_with_graph(verb: str, store: BrokenStore) -> None:
    whole = search_store(store, QUESTION, GRAPH_ONLY)
    is_used = verb in store.called
    assert whole.hits
    store.broken = frozenset({verb})
    if is_used:
        with pytest.raises(StoreError, match=f"no search could be run: .*{verb} is broken"):
            search_store(store, QUESTION, GRAPH_ONLY)
    else:
        assert search_store(store, QUESTION, GRAPH_ONLY) == whole


def test_graph_only_skips_vectors_and_keywords(store: BrokenStore) -> None:
    assert search_store(store, QUESTION, GRAPH_ONLY).hits
    assert store.called.isdisjoint({"dense", "lexical"})


def test_every_graph_verb_is_used_by_a_recipe(store: BrokenStore) -> None:
    for name in GRAPHS:
        search_store(store, QUESTION, open_gate(name))
    assert set(GRAPH_VERBS) <= store.called


@promise(
    60,
    cases([*ADDITIVE_GRAPHS, *ADDITIVE]),
    st.frozensets(st.sampled_from(GRAPH_VERBS), min_size=1, max_size=2),
)
def test_graph_failure_keeps_hybrid_hits(case: Case, broken: frozenset[str]) -> None:
    with fill_store(index_world(case.world), BrokenStore) as store:
        store.broken = broken
        found, hybrid = case.ask(store), case.hybrid(store)
    assert {s.id for s in hybrid.ranking} <= {s.id for s in found.ranking}
    failed = {missing.partition(":")[0] for missing in found.missing if "is broken" in missing}
    assert (found.skip_reason == GRAPH_FAILED) == bool(failed - OTHER_STAGES)
    assert failed <= {"link", "graph", *OTHER_STAGES}
    if found.skip_reason and not case.has_parts:
        assert found.hits == hybrid.hits


@pytest.mark.parametrize("name", ADDITIVE)
def test_keywords_answer_if_vectors_fail(name: str, store: BrokenStore) -> None:
    store.broken = frozenset({"dense"})
    found = search_store(store, QUESTION, open_gate(name))
    words = store.lexical(QUESTION, top_k=3)
    assert set(found.missing) <= {"vector: dense is broken", "graph: dense is broken"}  # guided needs it twice
    assert (found.missing[:1] == ("vector: dense is broken",)) == (name != "keyword")
    assert {s.id for s in words} <= {s.id for s in found.ranking}


@pytest.mark.parametrize("name", ADDITIVE)
def test_vectors_answer_if_keywords_fail(name: str, store: BrokenStore) -> None:
    store.broken = frozenset({"lexical"})
    if name == "keyword":
        with pytest.raises(StoreError, match="lexical is broken"):
            search_store(store, QUESTION, open_gate(name))
        return
    found = search_store(store, QUESTION, open_gate(name))
    near = store.dense(EMBEDDER.embed_query(QUESTION), top_k=3)
    assert found.missing == (() if name == "vector" else ("keyword: lexical is broken",))
    assert {s.id for s in near} <= {s.id for s in found.ranking}


@pytest.mark.parametrize("name", ["hybrid", "chain"])
@pytest.mark.parametrize("verb", ["cosines", "word_scores"])
def test_last_score_of_list_replaces_score_that_cannot_be_read(name: str, verb: str, store: BrokenStore) -> None:
    recipe = open_gate(name, hybrid=HybridConfig(candidates=4))
    recipe = replace(recipe, graph="") if verb == "cosines" else recipe  # the walk needs cosines too
    whole = search_store(store, QUESTION, recipe)
    store.broken = frozenset({verb})
    found = search_store(store, QUESTION, recipe)
    assert verb in store.called
    assert whole.missing == ()
    assert found.missing == (f"scores: {verb} is broken",)
    assert len(found.hits) == len(whole.hits) == 3 if name == "hybrid" else found.hits
    search, listed = ("vector", store.dense(EMBEDDER.embed_query(QUESTION), top_k=4))
    if verb == "word_scores":
        search, listed = "keyword", store.lexical(QUESTION, top_k=4)
    hybrid = search_store(store, QUESTION, replace(recipe, graph=""))
    fetched = [p.score for hit in hybrid.hits for p in hit.placements if p.search == search and p.rank is None]
    assert set(fetched) <= {listed[-1].score}


def test_unit_that_cannot_be_measured_is_reported(store: BrokenStore) -> None:
    class Nameless(Halves):
        """An embedder that embeds questions only."""

        @property
        def name(self) -> str:
            return "questions-only"

        def embed_query(self, text: str) -> Vector:
            return EMBEDDER.embed_query(text)

        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            raise ModelUnavailable("the model embeds no passages")

    found = search_store(store, QUESTION, RECIPES["hybrid"], embedder=Nameless(16, quiet=True))
    assert found.missing == ("scores: the model embeds no passages",)
    assert {p.search for hit in found.hits for p in hit.placements} == {"vector", "keyword"}


def test_search_raises_if_no_search_runs(store: BrokenStore) -> None:
    store.broken = frozenset({"dense", "lexical"})
    with pytest.raises(StoreError, match=r"dense is broken; keyword: lexical is broken"):
        search_store(store, QUESTION, CHAIN)
    with pytest.raises(StoreError, match=r"no embedder.*lexical is broken"):
        search_store(store, QUESTION, CHAIN, embedder=None)


def test_unreachable_store_raises_unavailable(store: BrokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that callers can tell an outage from an error and retry, whichever stage fails."""

    def unreachable(*arguments: object, **options: object) -> Any:
        raise StoreUnavailable("nobody listens there")

    monkeypatch.setattr(BrokenStore, "dense", unreachable)
    monkeypatch.setattr(BrokenStore, "lexical", unreachable)
    with pytest.raises(StoreUnavailable, match="nobody listens there") as told:
        search_store(store, QUESTION, CHAIN)
    assert isinstance(told.value.__cause__, StoreUnavailable)


@pytest.mark.parametrize("verb", ["passages", "sources"])
def test_search_raises_if_hits_cannot_be_read(verb: str, store: BrokenStore) -> None:
    store.broken = frozenset({verb})
    with pytest.raises(StoreError, match=f"{verb} is broken"):
        search_store(store, QUESTION, CHAIN)


def test_hybrid_answers_if_facts_cannot_be_counted(store: BrokenStore) -> None:
    hybrid = search_store(store, QUESTION, remove_graph(CHAIN))
    store.broken = frozenset({"has_facts"})
    assert set(list_ids(hybrid)) <= {s.id for s in search_store(store, QUESTION, CHAIN).ranking}


# -- models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADDITIVE)
def test_failed_embedder_equals_missing_one(name: str, store: BrokenStore) -> None:
    down = search_store(store, QUESTION, open_gate(name), embedder=FailingEmbedder(0))
    none = search_store(store, QUESTION, open_gate(name), embedder=None)
    words = [s.id for s in store.lexical(QUESTION, top_k=3)]
    assert replace(down, missing=()) == replace(none, missing=())
    assert set(words) <= {s.id for s in none.ranking}
    if name != "keyword":
        assert down.missing == ("vector: the embedding service does not answer",)
        assert none.missing == ("vector: no embedder was given, so only words were searched",)


def test_embedder_failure_in_expansion_keeps_hybrid(store: BrokenStore) -> None:
    recipe = open_gate("guided")
    found = search_store(store, QUESTION, recipe, embedder=FailingEmbedder(2))
    hybrid = search_store(store, QUESTION, remove_graph(recipe))
    assert found.missing == ("graph: the embedding service does not answer",)
    assert found.skip_reason == GRAPH_FAILED
    assert found.hits == hybrid.hits


def test_question_vector_without_passage_vectors() -> None:
    with fill_store(index_world(SAMPLE, embedder=None), SqliteStore, model=None) as store:
        found = search_store(store, QUESTION, open_gate("chain"))
        hybrid = search_store(store, QUESTION, remove_graph(open_gate("chain")))
        assert set(list_ids(hybrid)) <= {s.id for s in found.ranking}


def test_vector_of_other_length_leaves_keywords(store: BrokenStore) -> None:
    found = search_store(store, QUESTION, CHAIN, embedder=Halves(8, quiet=True))
    words = search_store(store, QUESTION, remove_graph(CHAIN), embedder=None)
    assert "vector" in found.missing[0]
    assert set(list_ids(words)) <= {s.id for s in found.ranking}


# -- rerankers -----------------------------------------------------------------------------------------


def test_reranker_reorders_and_drops_nothing(store: BrokenStore) -> None:
    plain = search_store(store, QUESTION, CHAIN)
    found = search_store(store, QUESTION, CHAIN, reranker=ScriptedReranker(lambda texts: range(len(texts))))
    assert list_ids(found) == list_ids(plain)[::-1]
    assert found.missing == ()
    assert [hit.path for hit in found.hits] == [hit.path for hit in plain.hits][::-1]


def _raise_unavailable(texts: Sequence[str]) -> Sequence[float]:
    raise ModelUnavailable("the reranker does not answer")


def _return_text(texts: Sequence[str]) -> Sequence[float]:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    "scores",
    [
        _raise_unavailable,
        _return_text,
        lambda texts: [1.0],
        lambda texts: [float("nan")] * len(texts),
    ],
)
def test_failed_reranker_is_skipped_and_reported(
    scores: Callable[[Sequence[str]], Sequence[float]], store: BrokenStore
) -> None:
    plain, found = (search_store(store, QUESTION, CHAIN, reranker=r) for r in (None, ScriptedReranker(scores)))
    assert found.hits == plain.hits
    assert [missing.split(":")[0] for missing in found.missing] == ["reranker"]


# -- nothing there, and the gate -----------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("embedder", [EMBEDDER, None])
def test_empty_store_has_empty_result(name: str, embedder: Halves | None) -> None:
    with fill_store([], SqliteStore) as store:
        found = search_store(store, QUESTION, RECIPES[name], embedder=embedder)
    assert (found.hits, found.facts, found.entities) == ((), (), ())
    assert found.skip_reason == ("the graph has no facts" if name in GRAPHS else "the recipe does not use the graph")


@pytest.mark.parametrize("name", ADDITIVE_GRAPHS)
@pytest.mark.parametrize(
    ("reason", "question", "change", "facts"),
    [
        ("the graph has no facts", QUESTION, {}, False),
        (
            "the question names no known entity",
            "A storm?",
            {"linking": LinkingConfig(ways=("names",))},
            True,
        ),
        ("confidence 0.", QUESTION, {"gate": GateConfig(min_confidence=0.99)}, True),
        ("the recipe does not use the graph", QUESTION, {"graph": ""}, True),
    ],
)
def test_skipped_graph_has_reason_and_hybrid_hits(
    name: str, reason: str, question: str, change: dict[str, Any], facts: bool
) -> None:
    world = SAMPLE if facts else [replace(told, facts=()) for told in SAMPLE]
    recipe = replace(open_gate(name), **change)
    with fill_store(index_world(world), SqliteStore) as store:
        found, hybrid = (
            search_store(store, question, recipe),
            search_store(store, question, remove_graph(recipe)),
        )
    assert found.skip_reason.startswith(reason)
    assert found.hits == hybrid.hits
    assert found.hits
    assert found.facts == ()
    assert found.missing == ()


@pytest.mark.parametrize(
    ("reason", "question", "facts"),
    [("the graph has no facts", QUESTION, False), ("the question names no known entity", "A storm?", True)],
)
def test_graph_only_has_no_hits_if_graph_is_skipped(reason: str, question: str, facts: bool) -> None:
    world = SAMPLE if facts else [replace(told, facts=()) for told in SAMPLE]
    with fill_store(index_world(world), SqliteStore) as store:
        found = search_store(store, question, GRAPH_ONLY)
    assert (found.hits, found.skip_reason, found.missing) == ((), reason, ())


def test_graph_only_calls_no_model(store: BrokenStore) -> None:
    assert search_store(store, QUESTION, GRAPH_ONLY, embedder=FailingEmbedder(0)) == search_store(
        store, QUESTION, GRAPH_ONLY
    )


def test_keyword_recipe_needs_no_embedder(store: BrokenStore) -> None:
    assert search_store(store, QUESTION, KEYWORD, embedder=FailingEmbedder(0)).missing == ()
