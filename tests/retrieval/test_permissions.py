"""Permissions as properties of random worlds: no hidden text is shown, and no hidden document counts.

Documents carry tokens in everything they state, so every text of a result reveals its source. The result of a
caller is compared with that of a store that contains only the visible documents.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from retrieval.worlds import (
    EMBEDDER,
    GRAPHS,
    NAMES,
    QUESTION,
    SAMPLE,
    Case,
    DrawnDocument,
    cases,
    collect_text,
    fill_store,
    find_sources,
    index_document,
    index_world,
    is_seen,
    promise,
    search_store,
)
from waylore.config import GateConfig, HybridConfig, LinkingConfig, MergeConfig
from waylore.recipes import RECIPES
from waylore.retrieval.parts import PART
from waylore.store import bm25
from waylore.store.protocol import Store
from waylore.store.sqlite import search as sqlite_search
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import NewFact
from waylore.types.search import Filter, SearchResult

NOBODY = Filter(labels=frozenset())
OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)
callers = st.builds(Filter, labels=st.sampled_from([frozenset(), frozenset({"red"}), frozenset({"green"})]))
limited = st.builds(lambda own, tags: replace(own, metadata=tags), callers, st.sampled_from([{}, {}, {"lang": "en"}]))


@promise(80, cases())
def test_results_contain_nothing_hidden(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
    assert all(is_seen(case.world[number], case.where) for number, _ in find_sources(collect_text(found)))
    assert {hit.document.id for hit in found.hits} <= {
        index_document(told, number, embedder=None).document.id
        for number, told in enumerate(case.world)
        if is_seen(told, case.where)
    }


@promise(120, cases(where=limited))
def test_hidden_documents_do_not_change_results(case: Case) -> None:
    """Compare everything, scores and counts too, with the result of a store that never had what is hidden."""
    with fill_both(case) as (store, alone):
        assert case.ask(store) == case.ask(alone)


@promise(40, cases(where=limited))
def test_hidden_documents_do_not_change_candidates(case: Case) -> None:
    """Few candidates may be read, so that the limits have an effect."""
    vector = EMBEDDER.embed_query(case.question)
    with fill_both(case) as (store, alone), pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "MAX_POSTINGS", 2)
        patch.setattr(sqlite_search, "MIN_CANDIDATES", 2)
        for of in ("lexical", "dense", "nearest_entities"):
            asked = case.question if of == "lexical" else vector
            found, expected = (getattr(s, of)(asked, top_k=1, where=case.where) for s in (store, alone))
            assert found == expected


def test_number_of_postings_ignores_hidden_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of ten passages have the tag, so twenty postings are read: those of the two rarer words."""
    monkeypatch.setattr(bm25, "MAX_POSTINGS", 10)
    texts = [*["ferry storm winter"] * 4, "winter", *["ferry storm winter"] * 4, "storm winter"]
    seen = [DrawnDocument(text, lang="en" if n < 5 else "") for n, text in enumerate(texts)]
    hidden = [DrawnDocument("keeper", labels=frozenset({"red"})) for _ in range(10)]
    where = replace(NOBODY, metadata={"lang": "en"})
    for world in (seen, [*seen, *hidden]):
        with fill_store(index_world(world), SqliteStore) as store:
            assert len(store.lexical("winter storm ferry", top_k=5, where=where)) == 4


@contextmanager
def fill_both(case: Case) -> Iterator[tuple[Store, Store]]:
    """Open a store with the world of a case, and one that never had what the labels of the caller hide."""
    told = index_world(case.world)
    allowed = Filter(labels=case.where.labels)
    seen = [c for c, t in zip(told, case.world, strict=True) if is_seen(t, allowed)]
    assume(len(seen) < len(told))
    with fill_store(told, SqliteStore) as store, fill_store(seen, SqliteStore) as alone:
        yield store, alone


def test_scores_do_not_tell_how_many_hidden_documents_have_a_word() -> None:
    seen = [DrawnDocument("A zebra sleeps"), DrawnDocument("A giraffe sleeps")]
    hidden = [DrawnDocument(f"Secret zebra {n}", labels=frozenset({"red"})) for n in range(7)]
    recipe = replace(RECIPES["keyword"], top_k=2)
    scores = []
    for count in (0, 1, 3, 7):
        with fill_store(index_world([*seen, *hidden[:count]]), SqliteStore) as store:
            found = search_store(store, "zebra giraffe", recipe, where=NOBODY)
            scores.append({hit.passage.text: hit.score for hit in found.hits})
    assert scores == [{"A zebra sleeps": 1.0, "A giraffe sleeps": 1.0}] * 4


@promise(40, cases(GRAPHS, callers))
def test_hidden_passages_take_no_rank(case: Case) -> None:
    """Check that each search ranks all visible passages from one on, without a gap. Equal texts are not joined."""
    recipe = replace(case.recipe, top_k=50, hybrid=HybridConfig(), merge=MergeConfig(max_graph_passages=50))
    case = replace(case, embedder=EMBEDDER, recipe=replace(recipe, gate=OPEN))
    with case.store() as store:
        found = case.ask(store)
    assert_no_gaps(found)


def assert_no_gaps(found: SearchResult) -> None:
    rankings: dict[str, list[int]] = defaultdict(list)
    for hit in found.hits:
        for placement in hit.placements:
            if placement.rank is not None:
                part = placement.query if placement.search == PART else ""
                rankings[f"{placement.search} {part}"].append(placement.rank)
    assert all(sorted(ranks) == [*range(1, len(ranks) + 1)] for ranks in rankings.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_only_visible_neighbours_are_ranked(name: str) -> None:
    secret = tuple(NewFact(one, "cites", other, weight=10) for one, other in pairwise(NAMES))
    hidden = [DrawnDocument(one, one, frozenset({"red"}), facts=secret) for one in NAMES]
    recipe = replace(RECIPES[name], gate=OPEN, top_k=50)
    with fill_store(index_world([*SAMPLE, *hidden]), SqliteStore) as store:
        found = search_store(store, QUESTION, recipe, where=NOBODY)
    assert found.skip_reason == ""
    if recipe.has_hybrid:  # without it, only passages that the graph reached are returned
        assert len(found.hits) == len(SAMPLE)
    assert_no_gaps(found)


def test_linking_ignores_hidden_namesakes() -> None:
    seen = index_document(DrawnDocument("Smith", facts=(NewFact("Ada", "knows", "Byron"),)), 0)
    seen = replace(seen, entities=tuple(replace(entity, aliases=("Smith",)) for entity in seen.entities))
    last = max(seen.entities, key=lambda entity: entity.id).name
    hidden = [
        DrawnDocument("storm", labels=frozenset({"red"}), facts=(NewFact(last, "needs", "Zeno"),)) for _ in range(3)
    ]
    recipe = replace(RECIPES["guided"], gate=OPEN, linking=LinkingConfig(max_entities_per_name=1))
    with (
        fill_store([seen], SqliteStore) as alone,
        fill_store([seen, *index_world(hidden)], SqliteStore) as store,
    ):
        named = [
            search_store(s, "Who is Smith?", recipe, where=Filter(labels=frozenset())).entities for s in (alone, store)
        ]
    assert [entity.name for entity in named[0]] == [entity.name for entity in named[1]]


@pytest.mark.parametrize("name", GRAPHS)
def test_retraction_hides_fact_from_its_readers_only(name: str) -> None:
    anyone, red = search_with_retraction(NewFact("Ada", "cites", "Byron", source="conversation"), name)
    assert "said0x0" in {fact.statement for fact in anyone.facts}
    assert "said0x0" not in {fact.statement for fact in red.facts}


def test_retraction_closes_bridge_for_its_readers_only() -> None:
    """Use a fact that is not about Ada: the passage that states it leads to Byron's passage."""
    claim = NewFact("Kiel", "cites", "Byron", source="conversation")
    anyone, red = (
        {p.search for hit in found.hits if hit.passage.text == "Byron" for p in hit.placements}
        for found in search_with_retraction(claim, "chain")
    )
    assert (anyone, red) == ({"vector", "walk", "chain"}, {"vector", "walk"})


def search_with_retraction(fact: NewFact, name: str) -> list[SearchResult]:
    """Search for Ada as anyone, and as a caller who also sees that a fact was retracted."""
    retracted = replace(fact, source="user_edit", status="retracted")
    documents = [
        DrawnDocument("Ada", facts=(fact, NewFact("Ada", "knows", "Zeno"))),
        DrawnDocument("Byron", "Byron", facts=(NewFact("Byron", "has", "a boat", is_value=True),)),
        DrawnDocument("storm", labels=frozenset({"red"}), facts=(retracted,)),
    ]
    recipe = replace(RECIPES[name], gate=OPEN, linking=LinkingConfig(ways=("names",)))
    callers = [NOBODY, Filter(labels=frozenset({"red"}))]
    with fill_store(index_world(documents), SqliteStore) as store:
        return [search_store(store, "What of Ada?", recipe, where=where) for where in callers]
