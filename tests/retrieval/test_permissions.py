"""Who may see what, as properties of random worlds: nothing that is hidden is told, and nothing hidden counts.

Documents carry tokens in all that they say, so that any text of an answer tells where it came from; the answer
of a caller is compared with that of a store which holds only what he may see.
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
    Told,
    ask,
    cases,
    contributions,
    everything_in,
    holding,
    ids,
    is_seen,
    promised,
    sources_of,
    written,
)
from waylore.config import Gate, Hybrid, Linking, Merge
from waylore.recipes import RECIPES
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Claim, Contribution
from waylore.types.search import Filter, Found

VECTORS_ONLY = Hybrid(text_weight=0.0)
NOBODY = Filter(labels=frozenset())
OPEN = Gate(min_confidence=0.0, min_graph_score=0.0)
callers = st.builds(Filter, labels=st.sampled_from([frozenset(), frozenset({"red"}), frozenset({"green"})]))


@promised(80, cases())
def test_nothing_in_an_answer_comes_from_what_its_caller_may_not_see(case: Case) -> None:
    with case.store() as store:
        found = case.ask(store)
    assert all(is_seen(case.world[number], case.where) for number, _ in sources_of(everything_in(found)))
    assert {hit.document.id for hit in found.hits} <= {
        written(told, number, embedder=None).document.id
        for number, told in enumerate(case.world)
        if is_seen(told, case.where)
    }


@promised(35, cases(["hybrid", "guided", "activation", "citations"], callers))
def test_what_a_caller_may_not_see_does_not_change_his_answer(case: Case) -> None:
    """By meaning and over facts.

    Not the same, for the whole collection is counted: the scores of BM25, how many passages mention an entity
    (which chain and neighbourhood weigh), and whether the graph is empty.
    """
    case = replace(case, recipe=replace(case.recipe, hybrid=VECTORS_ONLY), embedder=EMBEDDER)
    told = contributions(case.world)
    assert_unchanged(case, told, [c for c, t in zip(told, case.world, strict=True) if is_seen(t, case.where)])


@promised(35, cases(["chain", "neighbourhood"], callers))
def test_what_is_hidden_and_speaks_of_other_things_does_not_change_an_answer(case: Case) -> None:
    """For recipes that ask how many passages mention an entity, which counts the hidden ones."""
    case = replace(case, recipe=replace(case.recipe, hybrid=VECTORS_ONLY), embedder=EMBEDDER)
    seen = [written(t, i) for i, t in enumerate(case.world) if is_seen(t, case.where)]
    hidden = [of_other_things(t, i) for i, t in enumerate(case.world) if not is_seen(t, case.where)]
    assert_unchanged(case, [*hidden, *seen], seen)


@promised(15, cases(["keyword"], callers))
def test_words_find_the_same_passages_whatever_else_is_hidden(case: Case) -> None:
    case = replace(case, recipe=replace(case.recipe, top_k=20))
    seen = [written(t, i) for i, t in enumerate(case.world) if is_seen(t, case.where)]
    with case.store() as store, holding(seen, SqliteStore) as alone:
        assert sorted(ids(case.ask(store))) == sorted(ids(case.ask(alone)))


@promised(40, cases(GRAPHS, callers))
def test_what_is_hidden_takes_no_place_in_any_ranking(case: Case) -> None:
    """Where all that is seen is shown, each search ranks it from one on, without a gap."""
    recipe = replace(case.recipe, top_k=50, hybrid=Hybrid(), merge=Merge(max_graph_passages=None))
    case = replace(case, embedder=EMBEDDER, recipe=replace(recipe, gate=OPEN))
    with case.store() as store:
        found = case.ask(store)
    assert_no_gaps(found)


def assert_no_gaps(found: Found) -> None:
    rankings: dict[str, list[int]] = defaultdict(list)
    for hit in found.hits:
        for placement in hit.placements:
            rankings[placement.search].append(placement.rank)
    assert all(sorted(ranks) == [*range(1, len(ranks) + 1)] for ranks in rankings.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_of_what_is_related_only_what_is_seen_is_ranked(name: str) -> None:
    secret = tuple(Claim(one, "cites", other, weight=10) for one, other in pairwise(NAMES))
    hidden = [Told(one, one, frozenset({"red"}), claims=secret) for one in NAMES]
    recipe = replace(RECIPES[name], gate=OPEN, top_k=50)
    with holding(contributions([*SAMPLE, *hidden]), SqliteStore) as store:
        found = ask(store, QUESTION, recipe, where=NOBODY)
    assert found.skipped == ""
    assert len(found.hits) == len(SAMPLE)
    assert_no_gaps(found)


@pytest.mark.xfail(strict=True, reason="namesakes go by how many passages mention them, and hidden ones count")
def test_which_namesake_is_meant_does_not_depend_on_what_is_hidden() -> None:
    seen = written(Told("Smith", claims=(Claim("Ada", "knows", "Byron"),)), 0)
    seen = replace(seen, entities=tuple(replace(entity, aliases=("Smith",)) for entity in seen.entities))
    last = max(seen.entities, key=lambda entity: entity.id).name
    hidden = [
        Told("storm", labels=frozenset({"red"}), claims=(Claim(last, "needs", "Zeno"),)) for _ in range(3)
    ]
    recipe = replace(RECIPES["guided"], gate=OPEN, linking=Linking(namesakes=1))
    with holding([seen], SqliteStore) as alone, holding([seen, *contributions(hidden)], SqliteStore) as store:
        named = [
            ask(s, "Who is Smith?", recipe, where=Filter(labels=frozenset())).entities for s in (alone, store)
        ]
    assert [entity.name for entity in named[0]] == [entity.name for entity in named[1]]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_retraction_hides_a_fact_only_from_those_who_see_it(name: str) -> None:
    anyone, red = answers_with_a_retraction(Claim("Ada", "cites", "Byron", source="conversation"), name)
    assert "said0x0" in {fact.statement for fact in anyone.facts}
    assert "said0x0" not in {fact.statement for fact in red.facts}


def test_a_retraction_closes_a_bridge_only_to_those_who_see_it() -> None:
    """The fact is none of Ada's: it is known from the passage that states it, and leads to Byron's."""
    claim = Claim("Kiel", "cites", "Byron", source="conversation")
    anyone, red = (
        {p.search for hit in found.hits if hit.passage.text == "Byron" for p in hit.placements}
        for found in answers_with_a_retraction(claim, "chain")
    )
    assert (anyone, red) == ({"dense", "walk", "chain"}, {"dense", "walk"})


def answers_with_a_retraction(claim: Claim, name: str) -> list[Found]:
    """What anyone is told of Ada, and what one is told who also sees that a claim was retracted."""
    retracted = replace(claim, source="user_edit", status="retracted")
    told = [
        Told("Ada", claims=(claim, Claim("Ada", "knows", "Zeno"))),
        Told("Byron", "Byron", claims=(Claim("Byron", "has", "a boat", is_value=True),)),
        Told("storm", labels=frozenset({"red"}), claims=(retracted,)),
    ]
    recipe = replace(RECIPES[name], gate=OPEN, linking=Linking(ways=("names",)))
    who = [NOBODY, Filter(labels=frozenset({"red"}))]
    with holding(contributions(told), SqliteStore) as store:
        return [ask(store, "What of Ada?", recipe, where=where) for where in who]


def of_other_things(told: Told, number: int) -> Contribution:
    """The same words, but claims about names that no other document has."""
    claims = tuple(
        replace(c, subject=f"Hush{number}x {c.subject}", object=f"Hush{number}x {c.object}")
        for c in told.claims
    )
    apart = written(replace(told, labels=frozenset(), claims=claims), number)
    return replace(apart, document=replace(apart.document, labels=told.labels))


def assert_unchanged(case: Case, told: Sequence[Contribution], seen: Sequence[Contribution]) -> None:
    assume(len(seen) < len(told))
    with holding(told, SqliteStore) as store, holding(seen, SqliteStore) as alone:
        found, expected = case.ask(store), case.ask(alone)
    assert found.hits == expected.hits
    assert found.facts == expected.facts
    assert [replace(e, passages=0) for e in found.entities] == [
        replace(e, passages=0) for e in expected.entities
    ]
    if expected.skipped != "the graph is empty":
        assert replace_entities(found) == replace_entities(expected)


def replace_entities(found: Found) -> Found:
    return replace(found, entities=())
