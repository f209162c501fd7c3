"""The behaviour of each recipe on a real store: its paths, explanations, bounds and scores.

Explanations and paths are properties of random worlds. Bounds are counted on a hub of 2,000 facts with random
caps. The rest uses the small sample world, whose facts lead from Ada to the engine, to Byron and further.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.worlds import (
    EMBEDDER,
    GRAPHS,
    QUESTION,
    SAMPLE,
    Case,
    DrawnDocument,
    cases,
    fill_store,
    index_world,
    list_ids,
    promise,
    recipes,
    search_store,
)
from waylore.config import GateConfig, MergeConfig, WalkConfig
from waylore.recipes import CHAIN, GRAPH_ONLY, GUIDED, NEIGHBOURHOOD, RECIPES, Recipe
from waylore.relations import list_asked
from waylore.retrieval.graph.activation import WIDER
from waylore.retrieval.graph.citations import NAMES_PER_PAPER
from waylore.retrieval.graph.validity import MAX_ASSERTIONS
from waylore.retrieval.parts import split_question
from waylore.retrieval.relevance import BEST
from waylore.retrieval.superseding import MAX_SUBJECTS
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import entity_id
from waylore.types.knowledge import Entity, Mention, NewFact
from waylore.types.search import GraphPath, Hit, Scored, SearchResult, Step

VERBS = frozenset(
    """dense dense_many lexical nearest_entities entities_by_names facts_of_entities facts_of_passages pairs_of_entities
    passages_of_entities entities_of_passages documents passages cosines word_scores get_indexed_documents entities
    facts export find_similar_entities""".split()
)
OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)
GENEROUS = {"top_k": 50, "gate": OPEN}


class CountingStore(SqliteStore):
    """A store that counts the rows of each verb."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.given: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        verb = super().__getattribute__(name)
        if name not in VERBS:
            return verb

        def counted(*arguments: Any, **options: Any) -> Any:
            found = verb(*arguments, **options)
            rows = found.values() if isinstance(found, dict) else found
            self.given[name] += sum(
                1 if isinstance(row, Scored) or not isinstance(row, tuple) else len(row) for row in rows
            )
            return found

        return counted


@pytest.fixture(scope="module")
def sample() -> Iterator[SqliteStore]:
    with fill_store(index_world(SAMPLE), SqliteStore) as store:
        yield store


def map_by_text(found: SearchResult) -> dict[str, Hit]:
    return {hit.passage.text: hit for hit in found.hits}


def get_ends(step: Step) -> tuple[str, str]:
    """Return the start and the end of a step."""
    fact = step.fact
    return (fact.subject_id, fact.object_id) if step.is_forward else (fact.object_id, fact.subject_id)


# -- paths ---------------------------------------------------------------------------------------------


def assert_path(path: GraphPath) -> None:
    assert all(get_ends(one)[1] == get_ends(other)[0] for one, other in pairwise(path.steps))
    if path.steps:
        first = path.steps[0]
        assert path.start == (first.fact.subject if first.is_forward else first.fact.object)


def is_found_by_text(hit: Hit) -> bool:
    return any(p.search in ("vector", "keyword") and p.rank is not None for p in hit.placements)


@promise(60, cases(GRAPHS))
def test_path_is_chain_to_mentioned_entity(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
        mentions = store.entities_of_passages(list_ids(found), per_passage=99)
    for hit in found.hits:
        path = hit.path or GraphPath("nowhere")
        assert_path(path)
        mentioned = {m.entity_id for m in mentions.get(hit.passage.id, ())}
        if case.recipe.graph in ("chain", "neighbourhood", "citations") and path.steps:
            assert get_ends(path.steps[-1])[1] in mentioned
        if case.recipe.graph == "chain" and hit.path and is_found_by_text(hit):
            assert path.start in {entity.name for entity in found.entities}
        if case.recipe.graph == "chain" and case.embedder:
            assert not mentioned & {get_ends(step)[1] for step in path.steps[:-1]}
        if case.recipe.graph == "activation" and path.steps:
            assert path.facts[-1].passage_id == hit.passage.id
        if case.recipe.graph in ("neighbourhood", "guided", "activation") and path.steps:
            assert path.start in {entity.name for entity in found.entities}
        assert len({fact.id for fact in path.facts}) == len(path.steps)


def test_path_uses_fact_once() -> None:
    claims = (
        NewFact("Ada", "knows", "Byron"),
        NewFact("Byron", "loves", "Ada", confidence=0.9, source="user_edit"),
    )
    with fill_store(
        index_world([DrawnDocument("Ada", facts=claims[:1]), DrawnDocument("Byron", facts=claims[1:])]),
        SqliteStore,
    ) as store:
        found = search_store(store, "What of Ada?", replace(RECIPES["activation"], gate=OPEN), embedder=None)
    paths = [hit.path for hit in found.hits if hit.path]
    assert paths
    assert all(len({fact.id for fact in path.facts}) == len(path.steps) for path in paths)


def test_path_starts_at_entity() -> None:
    told = [
        DrawnDocument("Ada", facts=(NewFact("Ada", "knows", "Byron"),)),
        DrawnDocument("Ada storm", facts=(NewFact("Kiel", "has", "2 piers", is_value=True),)),
        DrawnDocument("harbour", facts=(NewFact("Kiel", "has", "boats", is_value=True),)),
    ]
    with fill_store(index_world(told), SqliteStore) as store:
        found = search_store(
            store, "What of Ada?", replace(CHAIN, linking=replace(CHAIN.linking, max_facts=0), gate=OPEN)
        )
    paths = [hit.path for hit in found.hits if hit.path]
    assert {path.start for path in paths} <= {"Ada", "Byron", "Kiel"}


# -- explanations --------------------------------------------------------------------------------------


@promise(80, cases())
def test_shares_sum_to_score_and_ranks_match(case: Case) -> None:
    depth = case.recipe.hybrid.count_candidates(case.recipe.top_k)
    with case.store() as store:
        found = case.ask(store)
        lexical = store.lexical(case.question, top_k=depth, where=case.where)
        vector, ids = EMBEDDER.embed_query(case.question), list_ids(found)
        dense = store.dense(vector, top_k=depth, where=case.where)
        fetched = {
            "vector": store.cosines(vector, ids, where=case.where),
            "keyword": store.word_scores(case.question, ids, where=case.where),
        }
    for hit in found.hits:
        assert all(placement.share >= 0 for placement in hit.placements)
        assert hit.score == pytest.approx(sum(p.share for p in hit.placements), abs=1e-5)
        assert str(hit.explanation).startswith(f"{hit.score:.4f}")
        for placement in hit.placements:
            if placement.rank is None:
                assert placement.score == fetched[placement.search][hit.passage.id]
            elif placement.search in ("vector", "keyword"):
                real = (lexical if placement.search == "keyword" else dense)[placement.rank - 1]
                assert (real.id, real.score) == (hit.passage.id, placement.score)


@pytest.mark.parametrize("name", GRAPHS)
def test_ranks_start_at_one_best_first(name: str, sample: SqliteStore) -> None:
    for embedder in (EMBEDDER, None):
        found = search_store(sample, QUESTION, replace(RECIPES[name], **GENEROUS), embedder=embedder)  # type: ignore[arg-type]
        assert found.skip_reason == ""
        rankings: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
        for hit in found.hits:
            for placement in hit.placements:
                assert placement.rank is not None
                rankings[placement.search].append((placement.rank, -placement.score, hit.passage.id))
        assert rankings.keys() - {"vector", "keyword"}
        for ranking in rankings.values():
            assert sorted(rank for rank, _, _ in ranking) == [*range(1, len(ranking) + 1)]
            if name != "guided":  # whose ranking has the order of its queries
                assert [scored[1:] for scored in sorted(ranking)] == sorted(scored[1:] for scored in ranking)


# -- bounds --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hub() -> Iterator[CountingStore]:
    """Open a store in which Ada has 2,000 facts in 200 passages, whose other ends have two more each."""
    told = []
    for page in range(200):
        people = [f"Person {page * 10 + i}" for i in range(10)]
        claims = [NewFact("Ada", "cites", person, weight=1 + page % 10) for person in people]
        claims += [NewFact(one, "cites", other) for one, other in pairwise(people)]
        told.append(DrawnDocument(f"Ada and storm {page}", facts=tuple(claims)))
    with fill_store(index_world(told), CountingStore) as store:
        yield store


HUB_QUESTION = "Whom does Ada cite, and in which storm?"


def compute_caps(recipe: Recipe, links: int) -> dict[str, int]:
    """Return how many rows each verb may return in one search, by the numbers of the recipe alone."""
    walk, link, chain, shown = recipe.walk, recipe.linking, recipe.chain, recipe.top_k
    shown += recipe.top_k if recipe.merge.max_graph_passages is None else recipe.merge.max_graph_passages
    shown = max(shown, BEST)  # as many are judged by `is_relevant`
    shown += 2 * BEST  # the best of both searches, whose pages `is_relevant` compares
    base = dict.fromkeys(["dense", "lexical"], recipe.hybrid.count_candidates(recipe.top_k))
    base |= dict.fromkeys(["cosines", "word_scores"], recipe.hybrid.count_candidates(recipe.top_k))
    base |= {"passages": shown, "documents": shown, "entities_by_names": links}
    base |= {"nearest_entities": link.nearest_limit, "entities": link.nearest_limit}
    looked_at = recipe.resolution.max_linked + links + 2 * link.max_facts + recipe.resolution.max_reached
    base |= {"find_similar_entities": 4 * recipe.resolution.max_similar * looked_at}  # a name has four keys at the most
    hops = walk.facts_per_entity * (links + (walk.max_hops - 1) * walk.frontier)
    expanded = recipe.expansion.max_queries * recipe.expansion.results_per_query
    seeds, pool, best = links + 2 * link.max_facts, chain.walked + chain.hybrid, link.hybrid_passages
    found = recipe.deep.rewrites * recipe.deep.results  # by rewrites
    pool += found if recipe.graph == "deep" else 0
    read = walk.max_entities * walk.passages_per_entity
    graph = {
        "neighbourhood": {
            "facts_of_entities": hops,
            "entities": walk.max_entities,
            "passages_of_entities": links * walk.passages_per_entity + read,
        },
        "guided": {"facts_of_entities": hops, "dense": expanded, "lexical": expanded},
        "activation": {"facts_of_entities": (1 + WIDER) * hops},
        "citations": {
            "facts_of_entities": walk.max_hops * walk.max_entities * walk.facts_per_entity,
            "passages_of_entities": links * walk.passages_per_entity + read,
            "entities_of_passages": links * walk.passages_per_entity * NAMES_PER_PAPER,
            "entities": links * walk.passages_per_entity * NAMES_PER_PAPER,
        },
        "chain": {
            "facts_of_entities": links * link.facts_per_entity + hops + 2 * link.max_facts * walk.facts_per_entity,
            "facts_of_passages": best * link.facts_per_passage + pool * chain.facts_per_passage,
            "passages_of_entities": read,
            "entities_of_passages": best * walk.entities_per_passage + pool * chain.entities_per_passage,
            "cosines": best + read,
            "entities": seeds,
            "passages": pool,
        },
    }["chain" if recipe.graph == "deep" else recipe.graph]
    if recipe.graph == "deep":
        graph["dense_many"] = found
    graph["pairs_of_entities"] = graph["facts_of_entities"]
    if recipe.mixes_turns:  # turns are looked up that say what holds of the named entities
        graph["assertions_of_entities"] = MAX_SUBJECTS * MAX_ASSERTIONS * len(list_asked(HUB_QUESTION))
    caps = {verb: base.get(verb, 0) + graph.get(verb, 0) for verb in base | graph}
    parts = split_question(HUB_QUESTION, recipe.parts) if recipe.asks_parts else []
    of_part = compute_caps(replace(recipe, asks_parts=False, top_k=CHAIN.top_k), links) if parts else {}
    return {verb: rows + len(parts) * of_part.get(verb, 0) for verb, rows in caps.items()}


caps = st.builds(
    WalkConfig,
    max_hops=st.integers(1, 3),
    facts_per_entity=st.sampled_from([1, 7, 50]),
    passages_per_entity=st.sampled_from([1, 5]),
    frontier=st.sampled_from([1, 9]),
    max_entities=st.sampled_from([4, 30]),
)


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in GRAPHS if name != "citations"),
        "citations",
    ],
)
@settings(max_examples=10)
@given(data=st.data())
def test_search_respects_caps_on_large_hub(name: str, hub: CountingStore, data: st.DataObject) -> None:
    recipe = replace(data.draw(recipes([name])), walk=data.draw(caps), gate=OPEN)
    hub.given.clear()
    found = search_store(hub, HUB_QUESTION, recipe)
    assert found.skip_reason == ""
    limits = compute_caps(recipe, links=max(len(found.entities), 1))
    assert {verb: rows for verb, rows in hub.given.items() if rows > limits.get(verb, 0)} == {}


def test_shared_name_links_few_entities() -> None:
    [told] = index_world([DrawnDocument("The Smiths are many", facts=(NewFact("Ada", "knows", "Smith"),))])
    like = Entity("", "", aliases=("smith",), vector=EMBEDDER.embed_query("smith"))
    names = [f"John Smith {i}" for i in range(2_000)]
    smiths = [replace(like, id=entity_id(name), name=name) for name in names]
    mentions = [Mention(smith.id, told.passages[0].id) for smith in smiths]
    told = replace(told, entities=(*told.entities, *smiths), mentions=(*told.mentions, *mentions))
    with fill_store([told], SqliteStore) as store:
        found = search_store(store, "Who is Smith?", replace(CHAIN, gate=OPEN))
    assert len(found.entities) <= CHAIN.walk.max_entities


@pytest.mark.parametrize(
    "name",
    [
        "chain",
        "neighbourhood",
        "guided",
        "activation",
        "citations",
    ],
)
def test_facts_shown_respect_walk_limit(name: str, hub: CountingStore) -> None:
    base = RECIPES[name]
    recipe = replace(base, gate=OPEN, walk=replace(base.walk, max_facts=3), merge=MergeConfig(max_graph_passages=0))
    assert len(search_store(hub, "Whom does Ada cite?", recipe).facts) <= 3


# -- what the numbers of a recipe mean -----------------------------------------------------------------


def test_neighbourhood_scores_follow_specification(sample: SqliteStore) -> None:
    found = search_store(sample, QUESTION, replace(NEIGHBOURHOOD, walk=WalkConfig(max_hops=2), top_k=9, gate=OPEN))
    scores = {hit.passage.text: p.score for hit in found.hits for p in hit.placements if p.search == "graph"}
    engine = 9 / 10 * (0.7 + 0.3 * log2(2 + 1) / 5)  # "needs" weighs 9, and two passages mention the engine
    kiel = 8 / 10 * 0.5 * (0.7 + 0.3 * log2(2 + 1) / 5)
    assert scores["The engine was built there"] == pytest.approx(engine, abs=1e-6)
    assert scores["Kiel has boats"] == pytest.approx(kiel, abs=1e-6)


def test_citation_scores_halve_per_hop(sample: SqliteStore) -> None:
    found = search_store(sample, QUESTION, replace(RECIPES["citations"], **GENEROUS))  # type: ignore[arg-type]
    scores = {hit.passage.text: p.score for hit in found.hits for p in hit.placements if p.search == "graph"}
    assert scores == {"Ada keeps the lighthouse": 1.0, "Byron is a poet": 0.5, "Lothair sails": 0.25}


def test_activation_follows_surest_outward_facts(sample: SqliteStore) -> None:
    recipe = replace(RECIPES["activation"], gate=OPEN)
    found = search_store(sample, "What of Byron?", recipe, embedder=None)
    assert [str(f) for f in found.facts] == ["Byron —cites→ Lothair", "Lothair —knows→ Zeno"]
    few = replace(recipe, walk=replace(recipe.walk, max_facts=1))
    assert len(search_store(sample, "What of Ada?", few, embedder=None).facts) == 1


def test_activation_reads_ten_facts_by_subject() -> None:
    inward = [NewFact(f"Person {i}", "knows", "Ada", weight=9) for i in range(40)]
    outward = [NewFact("Ada", "knows", f"Friend {i}", weight=1) for i in range(12)]
    told = [DrawnDocument(f"Ada and {fact.subject} and {fact.object}", facts=(fact,)) for fact in inward + outward]
    walk = replace(RECIPES["activation"].walk, max_hops=1)
    with fill_store(index_world(told), SqliteStore) as store:
        found = search_store(store, "What of Ada?", replace(RECIPES["activation"], gate=OPEN, walk=walk), embedder=None)
    assert [fact.subject for fact in found.facts] == ["Ada"] * walk.facts_per_entity


def test_graph_only_follows_facts_and_does_not_search_words(sample: SqliteStore) -> None:
    found = search_store(sample, QUESTION, GRAPH_ONLY)
    texts = [hit.passage.text for hit in found.hits]
    assert texts[0] == "Ada keeps the lighthouse"
    assert {"The engine was built there", "Byron is a poet", "Kiel has boats", "Lothair sails"} <= set(texts)
    assert not {"A storm came to the harbour in winter", "The keeper fears a storm"} & set(texts)
    assert found.hits[0].score == 1.0
    assert str(map_by_text(found)["Kiel has boats"].path) == "Ada —needs→ Engine —needs→ Kiel → this passage"


def test_graph_only_returns_top_k_hits(sample: SqliteStore) -> None:
    whole = search_store(sample, QUESTION, GRAPH_ONLY)
    few = search_store(sample, QUESTION, replace(GRAPH_ONLY, top_k=2))
    assert [hit.passage.id for hit in few.hits] == [hit.passage.id for hit in whole.hits[:2]]


def test_guided_hits_name_their_query(sample: SqliteStore) -> None:
    recipe = replace(GUIDED, gate=OPEN, top_k=1, expansion=replace(GUIDED.expansion, max_queries=3))
    for embedder in (EMBEDDER, None):
        found = search_store(sample, QUESTION, recipe, embedder=embedder)
        asked = {p.query for hit in found.hits for p in hit.placements if p.search == "graph"}
        assert asked <= {"Ada Engine", "Ada Byron", "Ada"}
        assert "Ada Engine" in asked
        assert {p.query for hit in found.hits for p in hit.placements if p.search != "graph"} <= {""}


@pytest.mark.parametrize(
    "name",
    [
        "chain",
        *(name for name in GRAPHS if name != "chain"),
    ],
)
@pytest.mark.parametrize("walk", [{"statuses": ("staged",)}, {"predicates": ("knows",)}])
def test_facts_shown_respect_walk_filter(name: str, walk: dict[str, Sequence[str]], sample: SqliteStore) -> None:
    recipe = replace(RECIPES[name], gate=OPEN, walk=replace(RECIPES[name].walk, **walk))  # type: ignore[arg-type]
    found = search_store(sample, QUESTION, recipe, embedder=None)
    assert found.skip_reason == ""
    told = [*found.facts, *(fact for hit in found.hits if hit.path for fact in hit.path.facts)]
    assert {fact.status for fact in told} <= set(walk.get("statuses", ("confirmed", "staged")))
    assert {fact.predicate for fact in told} <= set(walk.get("predicates", ("knows", "needs", "cites", "has")))


def test_minimum_score_drops_the_same_passages_for_any_number_of_hits() -> None:
    plain = DrawnDocument(text="harbour", title="", labels=frozenset(), lang="", facts=())
    stated = replace(plain, facts=(NewFact("Ada", "knows", "Ada"),))
    recipe = replace(CHAIN, chain=replace(CHAIN.chain, min_graph_score=0.9), gate=OPEN)
    with fill_store(index_world((plain, plain, plain, stated)), SqliteStore) as store:
        few, many = (search_store(store, "What of Ada ?", replace(recipe, top_k=k)) for k in (1, 100))
    assert [hit.id for hit in few.hits] == [hit.id for hit in many.hits][:1]


def test_hits_below_the_minimum_score_show_their_rank_in_every_search(sample: SqliteStore) -> None:
    """The graph has no share of their score."""
    recipe = replace(CHAIN, chain=replace(CHAIN.chain, min_graph_score=1.0), gate=OPEN)
    found, kept = (search_store(sample, QUESTION, each) for each in (recipe, replace(CHAIN, gate=OPEN)))
    ranks = {hit.id: {p.search: p.rank for p in hit.placements} for hit in kept.hits}
    placements = [placement for hit in found.hits for placement in hit.placements]
    for hit in found.hits:
        assert {p.search: p.rank for p in hit.placements}.items() >= ranks.get(hit.id, {}).items()
    assert {p.search for p in placements} >= {"walk", "chain"}
    assert {p.share for p in placements if p.search in {"walk", "chain"}} == {0.0}
