"""Bridges lead from what a candidate states to what another mentions; features are what they say they are."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.retrieval.finding import fact
from waylore.retrieval.graph.features import (
    FIRST,
    LEAST,
    MOST,
    SECOND,
    Pool,
    bridges,
    features,
    second_features,
)
from waylore.types.identity import entity_id
from waylore.types.knowledge import Fact, Mention, Vector


def unit(*values: float) -> Vector:
    vector = np.array(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


QUESTION = unit(1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Candidate:
    """One candidate of a pool: what it is about and mentions by name, and the facts that it states."""

    vector: Vector
    facts: tuple[Fact, ...] = ()
    about: str = ""
    mentions: str = ""
    activation: float = 0.1
    lexical: float = 0.0


def pool(candidates: Sequence[Candidate], named: str = "") -> Pool:
    mentions = [
        tuple(Mention(entity_id(name), str(place), is_own=name in c.about) for name in c.about + c.mentions)
        for place, c in enumerate(candidates)
    ]
    return Pool(
        ids=tuple(str(place) for place in range(len(candidates))),
        vectors=np.stack([c.vector for c in candidates]),
        lexical=np.array([c.lexical for c in candidates]),
        activation=np.array([c.activation for c in candidates]),
        facts=tuple(c.facts for c in candidates),
        mentions=tuple(mentions),
        named=frozenset(entity_id(name) for name in named),
    )


def told(subject: str, object_: str, vector: Vector = QUESTION) -> Fact:
    return replace(fact(subject, "knows", object_), vector=vector)


def joined(candidates: Sequence[Candidate], *, common: int = 8) -> set[tuple[int, int, str, bool]]:
    """Bridges as source, target, the name that they lead to, and whether the target is about it."""
    found = bridges(pool(candidates), common=common)
    names = {entity_id(name): name for name in "ABCDE"}
    rows = zip(found.source, found.target, found.fact, found.end, found.is_own, strict=True)
    return {(int(s), int(t), names[found.facts[f].ends[e]], bool(own)) for s, t, f, e, own in rows}


def columns(candidates: Sequence[Candidate], named: str = "") -> dict[str, list[float]]:
    world = pool(candidates, named)
    found, _ = features(world, QUESTION, bridges(world, common=8))
    return {name: column.tolist() for name, column in found.items()}


# -- bridges -------------------------------------------------------------------------------------------


def test_a_bridge_leads_to_whoever_mentions_an_end_but_not_back_to_what_its_source_is_about() -> None:
    source = Candidate(QUESTION, (told("A", "B"),), about="A", mentions="B")
    others = [
        Candidate(QUESTION, about="B"),
        Candidate(QUESTION, mentions="B"),
        Candidate(QUESTION, mentions="A"),
    ]
    assert joined([source, *others]) == {(0, 1, "B", True), (0, 2, "B", False)}


def test_what_many_mention_leads_only_to_its_own_passage() -> None:
    source = Candidate(QUESTION, (told("A", "B"),), about="A")
    many = [Candidate(QUESTION, mentions="B") for _ in range(3)]
    assert joined([source, *many], common=3) == {(0, place, "B", False) for place in (1, 2, 3)}
    assert joined([source, *many, Candidate(QUESTION, about="B")], common=3) == {(0, 4, "B", True)}


def test_a_plain_value_leads_by_its_subject_only() -> None:
    born = replace(fact("A", "born", "B", is_value=True), vector=QUESTION)
    candidates = [
        Candidate(QUESTION, (born,), mentions="A"),
        Candidate(QUESTION, about="A"),
        Candidate(QUESTION, about="B"),
    ]
    assert joined(candidates) == {(0, 1, "A", True)}


def test_without_facts_there_is_no_bridge_and_there_are_features_all_the_same() -> None:
    found = columns([Candidate(QUESTION), Candidate(unit(0, 1, 0))])
    assert found["is_bridged"] == found["bridge_cosine"] == found["bridges"] == [0.0, 0.0]
    assert found.keys() == FIRST.keys()


# -- features ------------------------------------------------------------------------------------------


def test_a_candidate_is_known_by_its_cosine_its_words_and_what_it_mentions() -> None:
    near = Candidate(
        unit(4, 3, 0), (told("C", "D", unit(3, 4, 0)), told("C", "E", unit(1, 2, 2))), about="AB", lexical=0.5
    )
    far = Candidate(unit(0, 1, 0), mentions="BA", lexical=1.0, activation=0.2)
    found = columns([near, far], named="BA")
    assert found["cosine"] == pytest.approx([0.8, 0.0])
    assert found["cosine_below_best"] == pytest.approx([0.0, -0.8])
    assert found["hybrid_rank"] == [1.0, 0.5]
    assert found["lexical"] == [0.5, 1.0]
    assert found["activation"] == pytest.approx([0.0, 1.0])
    assert found["is_named"] == [1.0, 0.0]
    assert found["names"] == [2.0, 2.0]
    assert found["best_fact"] == pytest.approx([0.6, 0.5])


def test_a_bridge_is_judged_by_how_near_its_target_is_to_question_and_fact_together() -> None:
    along = unit(0.2, 0.9, 0.3)
    source = Candidate(unit(1, 1, 0), (told("A", "B", along),), about="A", activation=0.3)
    target = Candidate(unit(0, 1, 1), about="B")
    found = columns([source, target, Candidate(unit(0, 0, 1))], named="A")
    together = QUESTION + along
    expected = float(target.vector @ together / np.linalg.norm(together))
    assert found["bridge_cosine"] == pytest.approx([0.0, expected, 0.0], abs=1e-6)
    assert found["best_cosine"] == pytest.approx([2**-0.5, max(expected, 0.0), 0.0], abs=1e-6)
    assert found["bridge_fact"] == pytest.approx([0.0, float(along[0]), 0.0], abs=1e-6)
    assert found["bridge_source"] == pytest.approx([0.0, 2**-0.5, 0.0], abs=1e-6)
    assert found["bridge_activation"] == pytest.approx([0.0, 1.0, 0.0])
    assert found["bridge_to_own"] == found["is_bridged"] == found["from_named"] == [0.0, 1.0, 0.0]
    assert found["bridges"] == pytest.approx([0.0, np.log(2), 0.0])


def test_the_best_of_several_bridges_is_the_one_that_leads() -> None:
    target = Candidate(unit(0, 1, 0), mentions="B")
    weak = Candidate(QUESTION, (told("C", "B", unit(0, 0, 1)),), about="C")
    strong = Candidate(QUESTION, (told("D", "B", unit(0, 1, 0)),), about="D")
    for candidates in ([target, weak, strong], [target, strong, weak]):
        world = pool(candidates)
        found = bridges(world, common=8)
        columns, best = features(world, QUESTION, found)
        assert found.facts[found.fact[best[0]]].subject == "D"
        assert columns["bridges"][0] == pytest.approx(np.log(3))


def test_the_second_judgement_hears_the_best_of_those_at_the_other_ends() -> None:
    hub = Candidate(QUESTION, (told("A", "B"), told("A", "C")), about="A")
    world = pool([hub, Candidate(QUESTION, about="B"), Candidate(QUESTION, mentions="C"), Candidate(QUESTION)])
    found = bridges(world, common=8)
    first, _ = features(world, QUESTION, found)
    second = second_features(first, np.array([9.0, -1.0, 2.0, -99.0]), found)
    assert second.keys() == SECOND.keys()
    assert second["first_rank"].tolist() == [1.0, 1 / 3, 1 / 2, 1 / 4]
    assert second["source_odds"].tolist() == [LEAST, MOST, MOST, LEAST]
    assert second["own_source_odds"].tolist() == [LEAST, MOST, LEAST, LEAST]
    assert second["target_odds"].tolist() == [2.0, LEAST, LEAST, LEAST]
    assert second["own_target_odds"].tolist() == [-1.0, LEAST, LEAST, LEAST]


numbers = st.floats(0.01, 1.0)
vectors = st.builds(unit, numbers, numbers, numbers)
candidates = st.builds(
    Candidate,
    vectors,
    st.lists(st.builds(told, st.sampled_from("ABC"), st.sampled_from("DE"), vectors), max_size=2).map(tuple),
    about=st.sampled_from(["", "A", "D"]),
    mentions=st.sampled_from(["", "B", "BC", "E"]),
    activation=numbers,
    lexical=numbers,
)


@settings(max_examples=60)
@given(st.lists(candidates, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_number_of_bridges_and_all_that_is_a_candidates_own_does_not_depend_on_its_place(
    world: list[Candidate], chance: random.Random
) -> None:
    order = chance.sample(range(len(world)), len(world))
    found, moved = columns(world, "AE"), columns([world[place] for place in order], "AE")
    for name in ("cosine", "lexical", "activation", "is_named", "names", "bridges", "is_bridged", "from_named"):
        assert moved[name] == pytest.approx([found[name][place] for place in order], abs=1e-6)


# -- what is not as it should be -----------------------------------------------------------------------


def test_a_fact_in_other_words_has_another_cosine() -> None:
    one = Candidate(QUESTION, (told("A", "B", unit(1, 0, 0)),))
    other = Candidate(QUESTION, (told("A", "B", unit(0, 1, 0)),))
    assert columns([one, other])["best_fact"] == pytest.approx([1.0, 0.0])


def test_what_a_thing_has_to_do_with_itself_is_one_bridge() -> None:
    loop = Candidate(QUESTION, (told("B", "B"),), about="A")
    assert columns([loop, Candidate(QUESTION, about="B")])["bridges"] == pytest.approx([0.0, np.log(2)])


def test_a_fact_that_is_the_opposite_of_the_question_does_no_harm() -> None:
    source = Candidate(QUESTION, (told("A", "B", -QUESTION),), about="A")
    assert np.isfinite(columns([source, Candidate(unit(0, 1, 0), about="B")])["bridge_cosine"]).all()
