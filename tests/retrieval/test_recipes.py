"""What each recipe does on a real store: its paths, its explanations, its bounds, and what its numbers mean.

Explanations and paths are properties of random worlds; bounds are counted on a hub of 2,000 facts with random
caps; the rest is the small sample world, whose facts lead from Ada to the engine, to Byron and on.
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
    Told,
    ask,
    cases,
    contributions,
    holding,
    ids,
    promised,
    recipes,
)
from waylore.config import Gate, Merge, Walk
from waylore.recipes import CHAIN, GUIDED, NEIGHBOURHOOD, RECIPES, Recipe
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import entity_id
from waylore.types.knowledge import Claim, Entity, Mention
from waylore.types.search import FactPath, Found, Hit, Step

VERBS = frozenset(
    """dense lexical nearest_entities entities_by_names facts_of_entities facts_of_passages passages_of_entities
    entities_of_passages documents passages cosines contributions entities facts export alike""".split()
)
OPEN = Gate(min_confidence=0.0, min_graph_score=0.0)
GENEROUS = {"top_k": 50, "gate": OPEN}


class Counting(SqliteStore):
    """A store that counts the rows that each verb gives."""

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
            self.given[name] += sum(len(row) if isinstance(row, tuple) else 1 for row in rows)
            return found

        return counted


@pytest.fixture(scope="module")
def sample() -> Iterator[SqliteStore]:
    with holding(contributions(SAMPLE), SqliteStore) as store:
        yield store


def by_text(found: Found) -> dict[str, Hit]:
    return {hit.passage.text: hit for hit in found.hits}


def ends(step: Step) -> tuple[str, str]:
    """Where a step begins, and where it arrives."""
    fact = step.fact
    return (fact.subject_id, fact.object_id) if step.is_forward else (fact.object_id, fact.subject_id)


# -- paths ---------------------------------------------------------------------------------------------


def assert_path(path: FactPath) -> None:
    assert all(ends(one)[1] == ends(other)[0] for one, other in pairwise(path.steps))
    if path.steps:
        first = path.steps[0]
        assert path.start == (first.fact.subject if first.is_forward else first.fact.object)


@promised(60, cases(GRAPHS))
def test_a_path_is_a_chain_of_facts_to_what_its_passage_mentions(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
        mentions = store.entities_of_passages(ids(found), per_passage=99)
    for hit in found.hits:
        path = hit.path or FactPath("nowhere")
        assert_path(path)
        mentioned = {m.entity_id for m in mentions.get(hit.passage.id, ())}
        if case.recipe.graph in ("chain", "neighbourhood", "citations") and path.steps:
            assert ends(path.steps[-1])[1] in mentioned
        if case.recipe.graph == "activation" and path.steps:
            assert path.facts[-1].passage_id == hit.passage.id
        if case.recipe.graph in ("neighbourhood", "guided", "activation") and path.steps:
            assert path.start in {entity.name for entity in found.entities}
        assert len({fact.id for fact in path.facts}) == len(path.steps)


def test_a_path_goes_over_a_fact_once() -> None:
    claims = (
        Claim("Ada", "knows", "Byron"),
        Claim("Byron", "loves", "Ada", confidence=0.9, source="user_edit"),
    )
    with holding(
        contributions([Told("Ada", claims=claims[:1]), Told("Byron", claims=claims[1:])]), SqliteStore
    ) as store:
        found = ask(store, "What of Ada?", replace(RECIPES["activation"], gate=OPEN), embedder=None)
    paths = [hit.path for hit in found.hits if hit.path]
    assert paths
    assert all(len({fact.id for fact in path.facts}) == len(path.steps) for path in paths)


def test_a_path_begins_at_an_entity() -> None:
    told = [
        Told("Ada", claims=(Claim("Ada", "knows", "Byron"),)),
        Told("Ada storm", claims=(Claim("Kiel", "has", "2 piers", is_value=True),)),
        Told("harbour", claims=(Claim("Kiel", "has", "boats", is_value=True),)),
    ]
    with holding(contributions(told), SqliteStore) as store:
        found = ask(store, "What of Ada?", replace(CHAIN, linking=replace(CHAIN.linking, facts=0), gate=OPEN))
    paths = [hit.path for hit in found.hits if hit.path]
    assert {path.start for path in paths} <= {"Ada", "Byron", "Kiel"}


# -- explanations --------------------------------------------------------------------------------------


@promised(80, cases())
def test_shares_sum_to_the_score_and_ranks_are_those_of_the_search(case: Case) -> None:
    depth = case.recipe.hybrid.reach(case.recipe.top_k)
    with case.store() as store:
        found = case.ask(store)
        lexical = store.lexical(case.question, top_k=depth, where=case.where)
        dense = store.dense(EMBEDDER.embed_query(case.question), top_k=depth, where=case.where)
    for hit in found.hits:
        assert hit.score == pytest.approx(sum(p.share for p in hit.placements), abs=1e-5)
        assert str(hit.explanation).startswith(f"{hit.score:.4f}")
        for placement in hit.placements:
            if placement.search in ("dense", "lexical"):
                real = (lexical if placement.search == "lexical" else dense)[placement.rank - 1]
                assert (real.id, real.score) == (hit.passage.id, placement.score)


@pytest.mark.parametrize("name", GRAPHS)
def test_where_all_is_shown_each_search_ranks_from_one_best_first(name: str, sample: SqliteStore) -> None:
    for embedder in (EMBEDDER, None):
        found = ask(sample, QUESTION, replace(RECIPES[name], **GENEROUS), embedder=embedder)  # type: ignore[arg-type]
        assert found.skipped == ""
        rankings: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
        for hit in found.hits:
            for placement in hit.placements:
                rankings[placement.search].append((placement.rank, -placement.score, hit.passage.id))
        assert rankings.keys() - {"dense", "lexical"}
        for ranking in rankings.values():
            assert sorted(rank for rank, _, _ in ranking) == [*range(1, len(ranking) + 1)]
            if name != "guided":  # whose ranking has the order of its queries
                assert [scored[1:] for scored in sorted(ranking)] == sorted(scored[1:] for scored in ranking)


# -- bounds --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hub() -> Iterator[Counting]:
    """Ada has 2,000 facts in 200 passages, and each of the 2,000 at their other ends has two more."""
    told = []
    for page in range(200):
        people = [f"Person {page * 10 + i}" for i in range(10)]
        claims = [Claim("Ada", "cites", person, weight=1 + page % 10) for person in people]
        claims += [Claim(one, "cites", other) for one, other in pairwise(people)]
        told.append(Told(f"Ada and storm {page}", claims=tuple(claims)))
    with holding(contributions(told), Counting) as store:
        yield store


def most(recipe: Recipe, links: int) -> dict[str, int]:
    """How many rows each verb may give in one search, by the numbers of the recipe alone."""
    walk, link, chain, shown = recipe.walk, recipe.linking, recipe.chain, recipe.top_k
    shown += recipe.top_k if recipe.merge.max_graph_passages is None else recipe.merge.max_graph_passages
    base = dict.fromkeys(["dense", "lexical"], recipe.hybrid.reach(recipe.top_k))
    base |= {"passages": shown, "documents": shown, "entities_by_names": links}
    base |= {"nearest_entities": link.nearest_limit, "entities": link.nearest_limit}
    looked_at = recipe.resolution.links + links + 2 * link.facts + recipe.resolution.ends
    base |= {"alike": 4 * recipe.resolution.most * looked_at}  # a name has four keys at the most
    hops = walk.facts_per_entity * (links + (walk.max_hops - 1) * walk.frontier)
    expanded = recipe.expansion.max_queries * recipe.expansion.results_per_query
    seeds, pool, best = links + 2 * link.facts, chain.walked + chain.hybrid, link.hybrid_passages
    read = walk.max_entities * walk.passages_per_entity
    graph = {
        "neighbourhood": {
            "facts_of_entities": hops,
            "entities": walk.max_entities,
            "passages_of_entities": links * walk.passages_per_entity + read,
        },
        "guided": {"facts_of_entities": hops, "dense": expanded, "lexical": expanded},
        "activation": {"facts_of_entities": hops},
        "citations": {
            "facts_of_entities": walk.max_hops * walk.max_entities * walk.facts_per_entity,
            "passages_of_entities": links * walk.passages_per_entity + read,
            "entities_of_passages": links * walk.passages_per_entity,
            "entities": links * walk.passages_per_entity,
        },
        "chain": {
            "facts_of_entities": links * link.facts_per_entity + hops + 2 * link.facts * walk.facts_per_entity,
            "facts_of_passages": best * link.facts_per_passage + pool * chain.facts_per_passage,
            "passages_of_entities": read,
            "entities_of_passages": best * walk.entities_per_passage + pool * chain.entities_per_passage,
            "cosines": best + read,
            "entities": seeds,
            "passages": pool,
        },
    }[recipe.graph]
    return {verb: base.get(verb, 0) + graph.get(verb, 0) for verb in base | graph}


caps = st.builds(
    Walk,
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
@settings(max_examples=25)
@given(data=st.data())
def test_a_search_reads_no_more_than_its_caps_however_large_the_hub(
    name: str, hub: Counting, data: st.DataObject
) -> None:
    recipe = replace(data.draw(recipes([name])), walk=data.draw(caps), gate=OPEN)
    hub.given.clear()
    found = ask(hub, "Whom does Ada cite, and in which storm?", recipe)
    assert found.skipped == ""
    limits = most(recipe, links=max(len(found.entities), 1))
    assert {verb: rows for verb, rows in hub.given.items() if rows > limits.get(verb, 0)} == {}


def test_a_name_that_thousands_share_links_to_a_few() -> None:
    [told] = contributions([Told("The Smiths are many", claims=(Claim("Ada", "knows", "Smith"),))])
    like = Entity("", "", aliases=("smith",), vector=EMBEDDER.embed_query("smith"))
    names = [f"John Smith {i}" for i in range(2_000)]
    smiths = [replace(like, id=entity_id(name), name=name) for name in names]
    mentions = [Mention(smith.id, told.passages[0].id) for smith in smiths]
    told = replace(told, entities=(*told.entities, *smiths), mentions=(*told.mentions, *mentions))
    with holding([told], SqliteStore) as store:
        found = ask(store, "Who is Smith?", replace(CHAIN, gate=OPEN))
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
def test_no_more_facts_are_told_than_the_walk_may_follow(name: str, hub: Counting) -> None:
    base = RECIPES[name]
    recipe = replace(base, gate=OPEN, walk=replace(base.walk, max_facts=3), merge=Merge(max_graph_passages=0))
    assert len(ask(hub, "Whom does Ada cite?", recipe).facts) <= 3


# -- what the numbers of a recipe mean -----------------------------------------------------------------


def test_neighbours_are_scored_as_specified(sample: SqliteStore) -> None:
    found = ask(sample, QUESTION, replace(NEIGHBOURHOOD, walk=Walk(max_hops=2), top_k=9, gate=OPEN))
    scores = {hit.passage.text: p.score for hit in found.hits for p in hit.placements if p.search == "graph"}
    engine = 9 / 10 * (0.7 + 0.3 * log2(2 + 1) / 5)  # "needs" weighs 9, and two passages mention the engine
    kiel = 8 / 10 * 0.5 * (0.7 + 0.3 * log2(2 + 1) / 5)
    assert scores["The engine was built there"] == pytest.approx(engine, abs=1e-6)
    assert scores["Kiel has boats"] == pytest.approx(kiel, abs=1e-6)


def test_what_is_cited_counts_a_half_and_what_that_cites_a_quarter(sample: SqliteStore) -> None:
    found = ask(sample, QUESTION, replace(RECIPES["citations"], **GENEROUS))  # type: ignore[arg-type]
    scores = {hit.passage.text: p.score for hit in found.hits for p in hit.placements if p.search == "graph"}
    assert scores == {"Ada keeps the lighthouse": 1.0, "Byron is a poet": 0.5, "Lothair sails": 0.25}


def test_activation_follows_facts_outward_and_only_the_surest(sample: SqliteStore) -> None:
    recipe = replace(RECIPES["activation"], gate=OPEN)
    found = ask(sample, "What of Byron?", recipe, embedder=None)
    assert [str(f) for f in found.facts] == ["Byron —cites→ Lothair", "Lothair —knows→ Zeno"]
    few = replace(recipe, walk=replace(recipe.walk, max_facts=1))
    assert len(ask(sample, "What of Ada?", few, embedder=None).facts) == 1


def test_guided_results_say_which_query_found_them(sample: SqliteStore) -> None:
    recipe = replace(GUIDED, gate=OPEN, top_k=1, expansion=replace(GUIDED.expansion, max_queries=3))
    for embedder in (EMBEDDER, None):
        found = ask(sample, QUESTION, recipe, embedder=embedder)
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
def test_only_facts_that_the_walk_may_follow_are_told(
    name: str, walk: dict[str, Sequence[str]], sample: SqliteStore
) -> None:
    recipe = replace(RECIPES[name], gate=OPEN, walk=replace(RECIPES[name].walk, **walk))  # type: ignore[arg-type]
    found = ask(sample, QUESTION, recipe, embedder=None)
    assert found.skipped == ""
    told = [*found.facts, *(fact for hit in found.hits if hit.path for fact in hit.path.facts)]
    assert {fact.status for fact in told} <= set(walk.get("statuses", ("confirmed", "staged")))
    assert {fact.predicate for fact in told} <= set(walk.get("predicates", ("knows", "needs", "cites", "has")))
