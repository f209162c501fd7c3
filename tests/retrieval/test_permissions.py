"""Permissions as properties of random worlds: no hidden text is shown, and no hidden document counts.

Documents carry tokens in everything they state, so every text of a result reveals its source. The result of a
caller is compared with that of a store that contains only the visible documents.
"""

from collections import defaultdict
from collections.abc import Sequence
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
    list_ids,
    promise,
    search_store,
)
from waylore.config import GateConfig, HybridConfig, LinkingConfig, MergeConfig
from waylore.recipes import RECIPES
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.search import Filter, SearchResult

VECTORS_ONLY = HybridConfig(text_weight=0.0)
NOBODY = Filter(labels=frozenset())
OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)
callers = st.builds(Filter, labels=st.sampled_from([frozenset(), frozenset({"red"}), frozenset({"green"})]))


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


@promise(35, cases(["hybrid", "guided", "activation", "citations"], callers))
def test_hidden_documents_do_not_change_results(case: Case) -> None:
    """Compare vector search and facts.

    BM25 scores, the number of passages that mention an entity (used by chain and neighbourhood) and whether the
    graph is empty depend on the whole collection, so they may differ.
    """
    case = replace(case, recipe=replace(case.recipe, hybrid=VECTORS_ONLY), embedder=EMBEDDER)
    told = index_world(case.world)
    assert_unchanged(case, told, [c for c, t in zip(told, case.world, strict=True) if is_seen(t, case.where)])


@promise(35, cases(["chain", "neighbourhood"], callers))
def test_hidden_unrelated_documents_change_nothing(case: Case) -> None:
    """Check recipes that use the number of passages that mention an entity, which includes hidden ones."""
    case = replace(case, recipe=replace(case.recipe, hybrid=VECTORS_ONLY), embedder=EMBEDDER)
    seen = [index_document(t, i) for i, t in enumerate(case.world) if is_seen(t, case.where)]
    hidden = [replace_subjects(t, i) for i, t in enumerate(case.world) if not is_seen(t, case.where)]
    assert_unchanged(case, [*hidden, *seen], seen)


@promise(15, cases(["keyword"], callers))
def test_keyword_hits_ignore_hidden_documents(case: Case) -> None:
    case = replace(case, recipe=replace(case.recipe, top_k=20))
    seen = [index_document(t, i) for i, t in enumerate(case.world) if is_seen(t, case.where)]
    with case.store() as store, fill_store(seen, SqliteStore) as alone:
        assert sorted(list_ids(case.ask(store))) == sorted(list_ids(case.ask(alone)))


@promise(40, cases(GRAPHS, callers))
def test_hidden_passages_take_no_rank(case: Case) -> None:
    """Check that each search ranks all visible passages from one on, without a gap."""
    recipe = replace(case.recipe, top_k=50, hybrid=HybridConfig(), merge=MergeConfig(max_graph_passages=None))
    case = replace(case, embedder=EMBEDDER, recipe=replace(recipe, gate=OPEN))
    with case.store() as store:
        found = case.ask(store)
    assert_no_gaps(found)


def assert_no_gaps(found: SearchResult) -> None:
    rankings: dict[str, list[int]] = defaultdict(list)
    for hit in found.hits:
        for placement in hit.placements:
            if placement.rank is not None:
                rankings[placement.search].append(placement.rank)
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


@pytest.mark.xfail(strict=True, reason="namesakes go by how many passages mention them, and hidden ones count")
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


def replace_subjects(document: DrawnDocument, number: int) -> IndexedDocument:
    """Return the same words with facts about names that no other document has."""
    claims = tuple(
        replace(c, subject=f"Hush{number}x {c.subject}", object=f"Hush{number}x {c.object}") for c in document.facts
    )
    apart = index_document(replace(document, labels=frozenset(), facts=claims), number)
    return replace(apart, document=replace(apart.document, labels=document.labels))


def assert_unchanged(case: Case, documents: Sequence[IndexedDocument], seen: Sequence[IndexedDocument]) -> None:
    assume(len(seen) < len(documents))
    with fill_store(documents, SqliteStore) as store, fill_store(seen, SqliteStore) as alone:
        found, expected = case.ask(store), case.ask(alone)
    assert found.hits == expected.hits
    assert found.facts == expected.facts
    assert [replace(e, passages=0) for e in found.entities] == [replace(e, passages=0) for e in expected.entities]
    if expected.skip_reason != "the graph has no facts":
        assert replace_entities(found) == replace_entities(expected)


def replace_entities(found: SearchResult) -> SearchResult:
    return replace(found, entities=())
