"""The promises of retrieval as properties of random worlds: additive, deterministic, valid.

All recipes and variations of their numbers run on a real store, with and without vectors, for any caller and
time. Permissions are in `test_permissions.py`, the recipes and their explanations in `test_recipes.py`, and
failures in `test_degrading.py`.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.worlds import (
    ADDITIVE,
    EMBEDDER,
    GRAPHS,
    NAMES,
    QUESTION,
    SAMPLE,
    WORDS,
    Case,
    DrawnDocument,
    cases,
    collect_text,
    fill_store,
    find_sources,
    index_document,
    index_world,
    is_valid,
    list_ids,
    promise,
    questions,
    search_store,
)
from waylore.config import GateConfig, HybridConfig
from waylore.recipes import CHAIN, HYBRID, RECIPES, Recipe
from waylore.retrieval.order import find_repeats
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.search import Filter, Hit, Ranking

OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)


# -- additive ------------------------------------------------------------------------------------------


def count_texts(ranking: Ranking, store: SqliteStore, case: Case) -> int:
    """Return the number of passages of a ranking with different texts."""
    passages = store.passages([scored.id for scored in ranking], where=case.where)
    texts = [(scored.id, passages[scored.id].text) for scored in ranking]
    return len(texts) - len(find_repeats(texts))


@promise(60, cases([*(name for name in GRAPHS if name in ADDITIVE), *ADDITIVE]))
def test_hits_are_top_k_and_have_the_best_third_of_hybrid(case: Case) -> None:
    case = replace(case, recipe=replace(case.recipe, merge=replace(case.recipe.merge, max_graph_passages=None)))
    with case.store() as store:
        found, hybrid = case.ask(store), case.hybrid(store)
        assert len(found.hits) == min(case.recipe.top_k, count_texts(found.ranking, store, case))
    ranked, best = [s.id for s in found.ranking], [s.id for s in hybrid.ranking]
    top = case.recipe.top_k
    assert set(best[:top] if case.recipe.chain.min_graph_score else best) <= set(ranked)
    assert len(set(ranked)) == len(ranked)
    assert all(set(best[: n // 3]) <= set(ranked[:n]) for n in range(min(len(ranked), 3 * top) + 1))
    assert set(list_ids(found)) <= set(ranked)
    assert found.skip_reason == "" or case.has_parts or list_ids(found) == list_ids(hybrid)


@promise(40, cases([*(name for name in GRAPHS if name in ADDITIVE)]), st.sampled_from([4, 1, 0]))
def test_literal_reading_keeps_hybrid_hits_and_limit(case: Case, most: int) -> None:
    case = replace(case, recipe=replace(case.recipe, merge=replace(case.recipe.merge, max_graph_passages=most)))
    with case.store() as store:
        found, hybrid = case.ask(store), case.hybrid(store)
    base = [s.id for s in hybrid.ranking][: case.recipe.top_k]
    assert set(base) <= set(list_ids(found))
    assert len(set(list_ids(found))) == len(list_ids(found)) <= case.recipe.top_k + most
    assert found.skip_reason == "" or case.has_parts or list_ids(found) == base


@promise(30, cases(["chain"]), st.integers(1, 30))
def test_chain_hits_do_not_depend_on_top_k(case: Case, top_k: int) -> None:
    recipe = replace(case.recipe, hybrid=HybridConfig(), merge=replace(case.recipe.merge, max_graph_passages=None))
    with case.store() as store:
        few, many = (replace(case, recipe=replace(recipe, top_k=k)).ask(store) for k in (top_k, 100))
    assert [(h.id, h.score, h.path) for h in few.hits] == [(h.id, h.score, h.path) for h in many.hits][:top_k]


@promise(40, cases(["chain", "hybrid", "vector"]), st.floats(-1, 1))
def test_minimum_similarity_drops_exactly_the_hits_below_it(case: Case, minimum: float) -> None:
    recipe = replace(case.recipe, hybrid=HybridConfig(), top_k=100)
    case = replace(case, recipe=recipe, embedder=EMBEDDER)
    options = {"where": case.where, "as_of": case.as_of}
    with case.store() as store:
        every = [hit.id for hit in case.ask(store).hits]
        found = search_store(store, case.question, recipe, min_similarity=minimum, **options)  # type: ignore[arg-type]
        cosines = store.cosines(EMBEDDER.embed_query(case.question), every, where=case.where)
    alike = {id_ for id_ in every if id_ in cosines and cosines[id_] >= minimum}
    assert alike <= {hit.id for hit in found.hits}
    assert all(cosines.get(hit.id, minimum) >= minimum for hit in found.hits)


def test_equal_texts_are_one_hit() -> None:
    """The same section on ten pages takes one place, and the hit lists the other pages that the caller may see."""
    section = "## Getting help\n" + " ".join(f"Ask the team number {n} in the channel {n}." for n in range(9))
    told = [DrawnDocument(section) for _ in range(10)] + [DrawnDocument("The team of the harbour helps nobody.")]
    told[3] = replace(told[3], labels=frozenset({"secret"}))
    pages = [replace(d, document=replace(d.document, uri=f"page-{n}")) for n, d in enumerate(index_world(told))]
    with fill_store(pages, SqliteStore) as store:
        found = search_store(store, "How do I ask the team for help?", CHAIN, where=Filter(frozenset()))
    assert len(found.hits) == 2
    same = max(found.hits, key=lambda hit: len(hit.also_in))
    assert sorted([same.uri, *(document.uri for document in same.also_in)]) == sorted(
        f"page-{n}" for n in range(10) if n != 3
    )
    assert len(found.ranking) == 10


@promise(25, cases())
def test_hits_are_sorted_by_score_then_id(case: Case) -> None:
    """Hybrid hits are sorted in blocks: the first candidates of both searches stand above the next ones."""
    case = replace(case, recipe=replace(case.recipe, merge=replace(case.recipe.merge, max_graph_passages=4)))
    with case.store() as store:
        found = case.ask(store)
    has_blocks = case.recipe.hybrid.fusion == "anchored" and found.skip_reason
    order = [(get_block(hit, case.recipe) if has_blocks else 0, -hit.score, hit.passage.id) for hit in found.hits]
    assert order == sorted(order)


def get_block(hit: Hit, recipe: Recipe) -> int:
    """Return the block of candidates in which a search lists a hit first."""
    return min((p.rank - 1) // recipe.hybrid.candidates for p in hit.placements if p.rank)


def drop_others(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits without the other documents that have their text: more of them are seen if more hits are wanted."""
    return [replace(hit, also_in=()) for hit in hits]


@promise(40, cases(["hybrid"]), st.integers(1, 4), st.integers(1, 12))
def test_hybrid_hits_do_not_depend_on_top_k(case: Case, candidates: int, top_k: int) -> None:
    recipe = replace(case.recipe, hybrid=HybridConfig(candidates=candidates))
    with case.store() as store:
        few, many = (replace(case, recipe=replace(recipe, top_k=k)).ask(store) for k in (top_k, 200))
    assert drop_others(few.hits) == drop_others(many.hits)[:top_k]


def test_hybrid_hits_do_not_depend_on_large_top_k() -> None:
    chance = random.Random(7)
    texts = [" ".join(chance.choices(WORDS + NAMES, k=chance.randint(1, 9))) + f" {i}" for i in range(300)]
    with fill_store(index_world([DrawnDocument(text) for text in texts]), SqliteStore) as store:

        @given(questions, st.integers(1, 200), st.integers(1, 200))
        def check(question: str, top_k: int, other: int) -> None:
            one, two = (search_store(store, question, replace(HYBRID, top_k=k)) for k in (top_k, other))
            assert drop_others(one.hits)[:other] == drop_others(two.hits)[:top_k]
            assert len(one.hits) == top_k
            assert one.missing == ()

        check()


@promise(25, cases(["hybrid", "vector", "keyword"]))
def test_hybrid_returns_top_k_hits(case: Case) -> None:
    depth = case.recipe.hybrid.count_candidates(case.recipe.top_k)
    with case.store() as store:
        found = case.ask(store)
        ranked = {s.id for s in store.lexical(case.question, top_k=depth, where=case.where)}
        if case.embedder and case.recipe.hybrid.vector_weight:
            by_meaning = store.dense(EMBEDDER.embed_query(case.question), top_k=depth, where=case.where)
            ranked = {s.id for s in by_meaning} | (ranked if case.recipe.hybrid.text_weight else set())
        assert len(found.hits) == min(count_texts(found.ranking, store, case), case.recipe.top_k)
    assert {s.id for s in found.ranking} == ranked


def test_graph_keeps_hybrid_hits_for_any_top_k() -> None:
    told = [DrawnDocument(f"Text {i} of the harbour.", facts=(NewFact("Ada", "saw", f"Boat {i}"),)) for i in range(80)]
    question = "What did Ada see in the harbour?"
    with fill_store(index_world(told), SqliteStore) as store:
        hybrid = search_store(store, question, replace(HYBRID, top_k=50))
        found = search_store(store, question, replace(CHAIN, top_k=50))
    assert found.skip_reason == ""
    assert set(list_ids(hybrid)) <= {scored.id for scored in found.ranking}
    assert set(list_ids(hybrid)[: 50 // 3]) <= set(list_ids(found))


@promise(30, cases(["chain"]))
def test_fusion_does_not_change_what_chain_judges(case: Case) -> None:
    """The walk and the judged candidates are those of the lists. Other hybrid hits stand below in their own order."""
    few = replace(case.recipe, chain=replace(case.recipe.chain, walked=1, hybrid=1), gate=OPEN, asks_parts=False)
    with case.store() as store:
        weighted, anchored = (
            replace(case, embedder=EMBEDDER, recipe=replace(few, hybrid=HybridConfig(fusion))).ask(store)
            for fusion in ("weighted", "anchored")
        )
    judged = [hit for hit in anchored.hits if all(p.best is None for p in hit.placements)]
    scores = {hit.id: (hit.score, hit.placements, hit.path) for hit in weighted.hits}
    if not anchored.skip_reason:
        lowest = min((hit.score for hit in judged), default=1.0)
        assert all(hit.score <= lowest for hit in anchored.hits if hit not in judged)
        assert all(scores.get(h.id, (h.score, h.placements, h.path)) == (h.score, h.placements, h.path) for h in judged)


@promise(30, cases([name for name in GRAPHS if name != "chain"]))
def test_added_graph_hits_have_paths(case: Case) -> None:
    with case.store() as store:
        found, hybrid = case.ask(store), case.hybrid(store)
    assert all(hit.path for hit in found.hits if hit.passage.id not in list_ids(hybrid))


def test_added_chain_hits_have_paths() -> None:
    told = [DrawnDocument("Ada sails", facts=(NewFact("Ada", "knows", "Byron"),))]
    told += [DrawnDocument(f"The harbour number {i}") for i in range(6)]
    with fill_store(index_world(told), SqliteStore) as store:
        recipe = replace(CHAIN, top_k=2, gate=OPEN)
        found, hybrid = (
            search_store(store, "What of Ada in the harbour?", r) for r in (recipe, replace(recipe, graph=""))
        )
    assert found.skip_reason == ""
    assert all(hit.path for hit in found.hits if hit.passage.id not in list_ids(hybrid))


@promise(60, cases(["graph_only"]))
def test_graph_only_returns_reached_passages_only(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
    assert all(hit.path and {p.search for p in hit.placements} == {"graph"} for hit in found.hits)
    assert len(found.hits) <= case.recipe.top_k + (case.recipe.merge.max_graph_passages or 0)
    assert found.hits == () or found.skip_reason == ""
    assert found.missing == ()


def test_opposite_fact_does_no_harm() -> None:
    told = [
        DrawnDocument("Ada", facts=(NewFact("Ada", "knows", "Kiel"),)),
        DrawnDocument("Zeno", facts=(NewFact("Mull", "has", "Zeno"),)),
    ]
    near, away = index_world(told)
    facts = tuple(replace(f, vector=-EMBEDDER.embed_query("What of Ada?")) for f in away.facts)
    with fill_store([near, replace(away, facts=facts)], SqliteStore) as store:
        found = search_store(store, "What of Ada?", replace(CHAIN, gate=OPEN))
    assert found.skip_reason == ""
    assert [isfinite(hit.score) for hit in found.hits] == [True, True]
    assert found.hits[0].passage.text == "Ada"


def test_fact_without_confidence_does_no_harm() -> None:
    doubted = NewFact("Byron", "knows", "Zeno", confidence=0.0)
    told = [
        DrawnDocument("Ada", facts=(NewFact("Ada", "knows", "Byron"),)),
        DrawnDocument("harbour", facts=(doubted,)),
    ]
    recipe = replace(CHAIN, gate=OPEN, walk=replace(CHAIN.walk, max_entities=1))
    with fill_store(index_world(told), SqliteStore) as store:
        found = search_store(store, "What of Ada?", recipe, embedder=None)
    assert found.skip_reason == ""
    assert all(isfinite(hit.score) for hit in found.hits)


# -- deterministic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_repeated_searches_are_equal(name: str) -> None:
    with fill_store(index_world(SAMPLE), SqliteStore) as store:
        times = 100 if settings.get_current_profile_name() == "full" else 5
        first, *others = (search_store(store, QUESTION, RECIPES[name]) for _ in range(times))
    assert all(found == first for found in others)


@promise(25, cases(), st.randoms(use_true_random=False))
def test_order_of_writing_changes_nothing(case: Case, chance: random.Random) -> None:
    told = index_world(case.world)
    shuffled = chance.sample(told, len(told))
    with fill_store(told, SqliteStore) as store, fill_store(shuffled, SqliteStore) as other:
        found = case.ask(store)
        assert case.ask(other) == found
        with fill_store(list(other.export()), SqliteStore) as moved:
            assert case.ask(moved) == found


@promise(10, cases())
def test_new_connection_gives_same_result(case: Case) -> None:
    passing = index_document(DrawnDocument("harbour storm", "Ada", facts=(NewFact("Ada", "knows", "Kiel"),)), 99)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.waylore"
        one, other = SqliteStore(path), SqliteStore(path)
        one.write(index_world(case.world), author=OWNER, model=EMBEDDER.name)
        found = case.ask(one)
        one.write([passing], author=OWNER, model=EMBEDDER.name)
        case.ask(other)
        one.forget([passing.document.id], author=OWNER)
        assert case.ask(other) == case.ask(one) == found
        one.close()
        other.close()


def test_equal_texts_have_equal_scores() -> None:
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(401, 16)).astype(np.float32)
    told = [index_document(DrawnDocument("The same text"), number) for number in range(7)]
    same = [replace(c, passages=tuple(replace(p, vector=vectors[0]) for p in c.passages)) for c in told]
    with fill_store(same, SqliteStore) as store:
        for vector in vectors[1:]:
            ranking = store.dense(vector / np.linalg.norm(vector), top_k=7)
            assert len({scored.score for scored in ranking}) == 1
            assert [scored.id for scored in ranking] == sorted(scored.id for scored in ranking)


@pytest.mark.parametrize("many", [50, 600])
def test_namesake_links_ignore_order_of_writing(many: int) -> None:
    """Above 1,000 entities with the same name the store cuts them off."""
    told = [make_namesakes(number, many) for number in range(2)]
    with fill_store(told, SqliteStore) as store, fill_store(told[::-1], SqliteStore) as other:
        found = search_store(store, "Who is Smith?", replace(CHAIN, gate=OPEN))
        assert found.entities
        assert search_store(other, "Who is Smith?", replace(CHAIN, gate=OPEN)).entities == found.entities


def make_namesakes(number: int, many: int) -> IndexedDocument:
    """Return a document that mentions a number of Smiths of its own."""
    told = index_document(DrawnDocument("harbour", facts=(NewFact("Ada", "knows", "Kiel"),)), number)
    names = [f"Smith {number} {place}" for place in range(many)]
    like = replace(told.entities[0], aliases=("Smith",))
    smiths = [replace(like, id=entity_id(name), name=name) for name in names]
    return replace(told, entities=(*told.entities, *smiths))


def test_other_hash_seed_gives_same_result() -> None:
    program = (
        "from retrieval.worlds import *\nfrom waylore.store.sqlite.store import SqliteStore\n"
        "with fill_store(index_world(SAMPLE), SqliteStore) as store:\n"
        "    print([search_store(store, QUESTION, recipe).hits for recipe in RECIPES.values()])"
    )
    folders = os.pathsep.join(p for p in sys.path if p)
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": folders},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert "GraphPath" in said[0]


# -- valid ---------------------------------------------------------------------------------------------


@promise(60, cases(GRAPHS))
def test_facts_outside_validity_are_not_shown(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
    told = [case.world[number].facts[int(at)] for number, at in find_sources(collect_text(found)) if at]
    assert all(is_valid(claim, case.as_of) for claim in told)


@promise(40, cases([name for name in GRAPHS if name != "chain"]))
def test_retracted_facts_are_not_shown(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
    told = [case.world[number].facts[int(at)] for number, at in find_sources(collect_text(found)) if at]
    assert "retracted" not in {claim.status for claim in told}


def test_fact_has_no_words_of_its_retraction() -> None:
    claim = NewFact("Ada", "knows", "Byron", source="conversation", status="retracted")
    told = [
        DrawnDocument("Ada, no", facts=(claim,)),
        DrawnDocument("Ada, yes", facts=(replace(claim, source="file", status="confirmed"),)),
    ]
    with fill_store(index_world([*told, DrawnDocument("Byron", "Byron")]), SqliteStore) as store:
        found = search_store(store, "What of Ada?", replace(CHAIN, gate=OPEN))
    assert found.skip_reason == ""
    facts = [*found.facts, *(fact for hit in found.hits if hit.path for fact in hit.path.facts)]
    assert {fact.status for fact in facts} == {"confirmed"}
