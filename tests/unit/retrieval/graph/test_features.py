"""Bridges lead from a fact of one candidate to a mention in another, and features have the right values."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.retrieval.samples import make_fact
from waylore.config import ChainConfig
from waylore.retrieval.graph.coverage import find_coverage
from waylore.retrieval.graph.features import (
    FIRST_FEATURES,
    LONG_SHARE,
    MAX_LOG_ODDS,
    MIN_LOG_ODDS,
    SECOND_FEATURES,
    Pool,
    blend_weights,
    compute_features,
    compute_long_share,
    compute_second_features,
    find_bridges,
)
from waylore.text import terms
from waylore.types.columns import to_fact_columns, to_mention_columns
from waylore.types.identity import entity_id
from waylore.types.knowledge import Fact, Mention, Passage, Vector
from waylore.types.search import CosineScale, Query, TermCounts


def normalise_vector(*values: float) -> Vector:
    vector = np.array(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


QUESTION = normalise_vector(1.0, 0.0, 0.0)
QUERY = Query("", QUESTION)


@dataclass(frozen=True)
class Candidate:
    """One candidate of a pool: its subject and mentions by name, and the facts that it states."""

    vector: Vector
    facts: tuple[Fact, ...] = ()
    about: str = ""
    mentions: str = ""
    activation: float = 0.1
    keyword: float = 0.0
    text: str = ""
    title: str = ""


def make_pool(candidates: Sequence[Candidate], named: str = "", pages: int | None = None) -> Pool:
    mentions = [
        tuple(Mention(entity_id(name), str(place), is_own=name in c.about) for name in c.about + c.mentions)
        for place, c in enumerate(candidates)
    ]
    facts = to_fact_columns({str(place): c.facts for place, c in enumerate(candidates)})
    return Pool(
        ids=tuple(str(place) for place in range(len(candidates))),
        vectors=np.stack([c.vector for c in candidates]),
        keyword=np.array([c.keyword for c in candidates]),
        activation=np.array([c.activation for c in candidates]),
        facts=facts,
        stating=np.repeat(np.arange(len(candidates)), [len(c.facts) for c in candidates]),
        mentions=to_mention_columns({str(place): of_one for place, of_one in enumerate(mentions)}),
        mentioning=np.repeat(np.arange(len(candidates)), [len(of_one) for of_one in mentions]),
        named=frozenset(entity_id(name) for name in named),
        documents=tuple(str(min(place, (pages or len(candidates)) - 1)) for place in range(len(candidates))),
        coverage=find_coverage(
            TermCounts(100, {"harbour": 10, "winter": 1}),
            [Passage(str(place), "", c.text, c.title) for place, c in enumerate(candidates)],
            facts,
        ),
    )


def make_embedded_fact(subject: str, object_: str, vector: Vector = QUESTION) -> Fact:
    return replace(make_fact(subject, "knows", object_), vector=vector)


def list_bridges(candidates: Sequence[Candidate], *, common: int = 8) -> set[tuple[int, int, str, bool]]:
    """Return bridges as source, target, the name they lead to, and whether the target is about it."""
    pool = make_pool(candidates)
    found = find_bridges(pool, common=common)
    names = {entity_id(name): name for name in "ABCDE"}
    rows = zip(found.source, found.target, found.fact, found.end, found.is_own, strict=True)
    return {(int(s), int(t), names[pool.facts.make(f).ends[e]], bool(own)) for s, t, f, e, own in rows}


def compute_columns(candidates: Sequence[Candidate], named: str = "") -> dict[str, list[float]]:
    world = make_pool(candidates, named)
    found, _ = compute_features(world, QUERY, find_bridges(world, common=8))
    return {name: column.tolist() for name, column in found.items()}


# -- bridges -------------------------------------------------------------------------------------------


def test_bridge_leads_to_mention_but_not_back_to_source() -> None:
    source = Candidate(QUESTION, (make_embedded_fact("A", "B"),), about="A", mentions="B")
    others = [
        Candidate(QUESTION, about="B"),
        Candidate(QUESTION, mentions="B"),
        Candidate(QUESTION, mentions="A"),
    ]
    assert list_bridges([source, *others]) == {(0, 1, "B", True), (0, 2, "B", False)}


def test_common_entity_leads_to_own_passage_only() -> None:
    source = Candidate(QUESTION, (make_embedded_fact("A", "B"),), about="A")
    many = [Candidate(QUESTION, mentions="B") for _ in range(3)]
    assert list_bridges([source, *many], common=3) == {(0, place, "B", False) for place in (1, 2, 3)}
    assert list_bridges([source, *many, Candidate(QUESTION, about="B")], common=3) == {(0, 4, "B", True)}


def test_plain_value_bridges_by_subject_only() -> None:
    born = replace(make_fact("A", "born", "B", is_value=True), vector=QUESTION)
    candidates = [
        Candidate(QUESTION, (born,), mentions="A"),
        Candidate(QUESTION, about="A"),
        Candidate(QUESTION, about="B"),
    ]
    assert list_bridges(candidates) == {(0, 1, "A", True)}


def test_cosines_of_another_model_are_mapped_by_its_line() -> None:
    stated = make_embedded_fact("A", "B", normalise_vector(1, 1, 0))
    world = make_pool([Candidate(QUESTION, (stated,), about="A"), Candidate(normalise_vector(0, 1, 0), about="B")])
    bridges = find_bridges(world, common=8)
    plain, _ = compute_features(world, QUERY, bridges)
    mapped, _ = compute_features(world, Query("", QUESTION, scale=CosineScale(slope=0.5, offset=0.3)), bridges)
    for name in ("cosine", "best_fact", "bridge_fact"):
        at = slice(None) if name == "cosine" else slice(0, 1) if name == "best_fact" else slice(1, 2)
        assert mapped[name][at].tolist() == pytest.approx((0.5 * plain[name][at] + 0.3).tolist())
    cosines = 0.5 * np.array([0.0, 0.5**0.5, 0.5**0.5]) + 0.3  # question and target, fact and target, question and fact
    assert mapped["bridge_cosine"][1] == pytest.approx((cosines[0] + cosines[1]) / (2 + 2 * cosines[2]) ** 0.5)


def test_features_exist_without_bridges() -> None:
    found = compute_columns([Candidate(QUESTION), Candidate(normalise_vector(0, 1, 0))])
    assert found["is_bridged"] == found["bridge_cosine"] == found["bridges"] == [0.0, 0.0]
    assert found.keys() == FIRST_FEATURES.keys()


# -- features ------------------------------------------------------------------------------------------


def test_features_of_candidate_have_expected_values() -> None:
    near = Candidate(
        normalise_vector(4, 3, 0),
        (
            make_embedded_fact("C", "D", normalise_vector(3, 4, 0)),
            make_embedded_fact("C", "E", normalise_vector(1, 2, 2)),
        ),
        about="AB",
        keyword=0.5,
    )
    far = Candidate(normalise_vector(0, 1, 0), mentions="BA", keyword=1.0, activation=0.2)
    found = compute_columns([near, far], named="BA")
    assert found["cosine"] == pytest.approx([0.8, 0.0])
    assert found["cosine_below_best"] == pytest.approx([0.0, -0.8])
    assert found["hybrid_rank"] == [1.0, 0.5]
    assert found["keyword"] == [0.5, 1.0]
    assert found["activation"] == pytest.approx([0.0, 1.0])
    assert found["is_named"] == [1.0, 0.0]
    assert found["names"] == [2.0, 2.0]
    assert found["best_fact"] == pytest.approx([0.6, 0.5])


def test_bridge_cosine_combines_question_and_fact() -> None:
    along = normalise_vector(0.2, 0.9, 0.3)
    source = Candidate(normalise_vector(1, 1, 0), (make_embedded_fact("A", "B", along),), about="A", activation=0.3)
    target = Candidate(normalise_vector(0, 1, 1), about="B")
    found = compute_columns([source, target, Candidate(normalise_vector(0, 0, 1))], named="A")
    together = QUESTION + along
    expected = float(target.vector @ together / np.linalg.norm(together))
    assert found["bridge_cosine"] == pytest.approx([0.0, expected, 0.0], abs=1e-6)
    assert found["best_cosine"] == pytest.approx([2**-0.5, max(expected, 0.0), 0.0], abs=1e-6)
    assert found["bridge_fact"] == pytest.approx([0.0, float(along[0]), 0.0], abs=1e-6)
    assert found["bridge_source"] == pytest.approx([0.0, 2**-0.5, 0.0], abs=1e-6)
    assert found["bridge_activation"] == pytest.approx([0.0, 1.0, 0.0])
    assert found["bridge_to_own"] == found["is_bridged"] == found["from_named"] == [0.0, 1.0, 0.0]
    assert found["bridges"] == pytest.approx([0.0, np.log(2), 0.0])


def test_best_of_several_bridges_is_used() -> None:
    target = Candidate(normalise_vector(0, 1, 0), mentions="B")
    weak = Candidate(QUESTION, (make_embedded_fact("C", "B", normalise_vector(0, 0, 1)),), about="C")
    strong = Candidate(QUESTION, (make_embedded_fact("D", "B", normalise_vector(0, 1, 0)),), about="D")
    for candidates in ([target, weak, strong], [target, strong, weak]):
        world = make_pool(candidates)
        found = find_bridges(world, common=8)
        columns, best = compute_features(world, QUERY, found)
        assert world.facts.make(found.fact[best[0]]).subject == "D"
        assert columns["bridges"][0] == pytest.approx(np.log(3))


def test_second_features_use_best_odds_over_bridges() -> None:
    hub = Candidate(QUESTION, (make_embedded_fact("A", "B"), make_embedded_fact("A", "C")), about="A")
    world = make_pool([hub, Candidate(QUESTION, about="B"), Candidate(QUESTION, mentions="C"), Candidate(QUESTION)])
    found = find_bridges(world, common=8)
    first, _ = compute_features(world, QUERY, found)
    second = compute_second_features(first, np.array([9.0, -1.0, 2.0, -99.0]), found, world.coverage)
    assert second.keys() == SECOND_FEATURES.keys()
    assert second["first_rank"].tolist() == [1.0, 1 / 3, 1 / 2, 1 / 4]
    assert second["source_odds"].tolist() == [MIN_LOG_ODDS, MAX_LOG_ODDS, MAX_LOG_ODDS, MIN_LOG_ODDS]
    assert second["own_source_odds"].tolist() == [MIN_LOG_ODDS, MAX_LOG_ODDS, MIN_LOG_ODDS, MIN_LOG_ODDS]
    assert second["target_odds"].tolist() == [2.0, MIN_LOG_ODDS, MIN_LOG_ODDS, MIN_LOG_ODDS]
    assert second["own_target_odds"].tolist() == [-1.0, MIN_LOG_ODDS, MIN_LOG_ODDS, MIN_LOG_ODDS]


# -- coverage ------------------------------------------------------------------------------------------


def test_coverage_weighs_rare_terms_more_and_counts_title_and_text() -> None:
    both = Candidate(QUESTION, text="Winters in the south.", title="Harbour lights")
    found = compute_columns([both, Candidate(QUESTION, text="A harbour."), Candidate(QUESTION, text="winter")])
    harbour, winter = found["coverage"][1], found["coverage"][2]
    assert winter > harbour > 0
    assert found["coverage"][0] == pytest.approx(1.0) == pytest.approx(harbour + winter)
    assert found["title_coverage"] == pytest.approx([harbour, 0.0, 0.0])
    assert found["title_share"] == pytest.approx([0.5, 0.0, 0.0])
    assert found["rarest_term"] == pytest.approx([1.0, harbour / winter, 1.0])
    assert found["scarce_terms"] == pytest.approx([0.5, harbour / 2, winter / 2])


def test_bridge_adds_what_its_source_leaves_open() -> None:
    source = Candidate(QUESTION, (make_embedded_fact("A", "B"),), about="A", text="The harbour.")
    found = compute_columns([source, Candidate(QUESTION, about="B", text="winter"), Candidate(QUESTION)])
    assert found["pair_coverage"] == pytest.approx([1.0, 1.0, 0.0])
    assert found["pair_gain"] == pytest.approx([0.0, found["coverage"][1], 0.0])
    assert found["pair_rest"] == pytest.approx([0.0, 1.0, 0.0])


def test_words_of_facts_count_for_who_states_them_and_along_bridges() -> None:
    fact = replace(make_fact("A", "winters in", "B"), vector=QUESTION)
    found = compute_columns(
        [Candidate(QUESTION, (fact,), about="A"), Candidate(QUESTION, about="B", text="harbour"), Candidate(QUESTION)]
    )
    assert found["fact_coverage"] == pytest.approx([1.0 - found["coverage"][1], 0.0, 0.0])
    assert found["bridge_coverage"] == pytest.approx([0.0, 1.0, 0.0])


def test_need_is_what_no_likely_candidate_has() -> None:
    """A term that a certain candidate has counts nothing for others, and fully for it."""
    world = make_pool([Candidate(QUESTION, text="harbour winter"), Candidate(QUESTION, text="harbour")])
    found = find_bridges(world, common=8)
    first, _ = compute_features(world, QUERY, found)
    certain = compute_second_features(first, np.array([9.0, -9.0]), found, world.coverage)
    unlikely = compute_second_features(first, np.array([-9.0, -9.0]), found, world.coverage)
    assert certain["need"] == pytest.approx([1.0, 0.0], abs=2e-3)
    assert unlikely["need"] == pytest.approx(first["coverage"], abs=2e-3)
    assert unlikely["need_share"] == pytest.approx([1.0, 1.0], abs=2e-3)
    assert certain["best_pair_open"].tolist() == [1.0, 1.0]


def test_question_without_known_terms_covers_nothing() -> None:
    [passage] = [Passage("0", "", "harbour", "winter")]
    empty = find_coverage(TermCounts(100, {}), [passage], to_fact_columns({}))
    world = replace(make_pool([Candidate(QUESTION)]), coverage=empty)
    bridges = find_bridges(world, common=8)
    first, _ = compute_features(world, QUERY, bridges)
    second = compute_second_features(first, np.zeros(1), bridges, empty)
    assert [second[name].tolist() for name in ("coverage", "rarest_term", "scarce_terms", "need")] == [[0.0]] * 4


numbers = st.floats(0.01, 1.0)
vectors = st.builds(normalise_vector, numbers, numbers, numbers)
candidates = st.builds(
    Candidate,
    vectors,
    st.lists(st.builds(make_embedded_fact, st.sampled_from("ABC"), st.sampled_from("DE"), vectors), max_size=2).map(
        tuple
    ),
    about=st.sampled_from(["", "A", "D"]),
    mentions=st.sampled_from(["", "B", "BC", "E"]),
    activation=numbers,
    keyword=numbers,
    text=st.sampled_from(["", "harbour", "winter", "harbour in winter"]),
)


@settings(max_examples=60)
@given(st.lists(candidates, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_features_do_not_depend_on_order(world: list[Candidate], chance: random.Random) -> None:
    order = chance.sample(range(len(world)), len(world))
    found, moved = compute_columns(world, "AE"), compute_columns([world[place] for place in order], "AE")
    own = ("cosine", "keyword", "activation", "is_named", "names", "coverage", "scarce_terms", "fact_coverage")
    for name in (*own, "bridges", "is_bridged", "from_named", "pair_coverage", "pair_gain", "pair_rest"):
        assert moved[name] == pytest.approx([found[name][place] for place in order], abs=1e-6)


# -- what is not as it should be -----------------------------------------------------------------------


def test_fact_in_other_words_has_other_cosine() -> None:
    one = Candidate(QUESTION, (make_embedded_fact("A", "B", normalise_vector(1, 0, 0)),))
    other = Candidate(QUESTION, (make_embedded_fact("A", "B", normalise_vector(0, 1, 0)),))
    assert compute_columns([one, other])["best_fact"] == pytest.approx([1.0, 0.0])


def test_fact_about_itself_is_one_bridge() -> None:
    loop = Candidate(QUESTION, (make_embedded_fact("B", "B"),), about="A")
    assert compute_columns([loop, Candidate(QUESTION, about="B")])["bridges"] == pytest.approx([0.0, np.log(2)])


def test_opposite_fact_gives_finite_features() -> None:
    source = Candidate(QUESTION, (make_embedded_fact("A", "B", -QUESTION),), about="A")
    assert np.isfinite(
        compute_columns([source, Candidate(normalise_vector(0, 1, 0), about="B")])["bridge_cosine"]
    ).all()


def test_passages_of_one_page_share_the_name_that_the_page_is_about() -> None:
    page = [Candidate(normalise_vector(1.0, 0.1 * place, 0.0), about="a") for place in range(4)]
    alone = Candidate(normalise_vector(0.5, 0.5, 0.0), about="b", mentions="a")
    pool = make_pool([*page, alone], named="ab")
    columns, _ = compute_features(pool, QUERY, find_bridges(pool, common=8))
    assert columns["is_named"].tolist() == [0.25, 0.25, 0.25, 0.25, 1.0]


@given(st.integers(1, 60), st.data())
def test_weights_of_long_pages_count_as_far_as_candidates_share_pages(candidates: int, data: st.DataObject) -> None:
    """If every candidate is a page of its own, the weights are exactly those of short pages."""
    pages = data.draw(st.integers(1, candidates))
    pool = make_pool([Candidate(QUESTION)] * candidates, pages=pages)
    short, long = (("cosine", 1.0), ("coverage", 1.0)), (("cosine", 3.0),)
    first, second = blend_weights(
        ChainConfig(first=short, second=short, long_first=long, long_second=long), compute_long_share(pool)
    )
    assert first == second
    (name, weight), (covered, left) = first
    assert (name, covered) == ("cosine", "coverage")
    assert left == pytest.approx((3.0 - weight) / 2)  # long pages have no weight for it
    assert weight == 1.0 if pages == candidates else 1.0 < weight <= 3.0
    assert weight == 3.0 or candidates - pages < LONG_SHARE * candidates


PIECES = ["harbour", "Harbours", "Łódź", "Café", "é", "e\u0301", "\u0301", "東京", "ß", "K", "İzmir", "10–12", "x²"]
GAPS = [" ", "", "-", "\n", "\u00a0", "\u2003", "\u3000", "\x1c", "\u200b", "\u00b4", "_"]


@given(st.lists(st.sampled_from([*PIECES, *GAPS]) | st.text(max_size=4), max_size=12).map("".join))
def test_terms_of_a_candidate_are_those_of_its_text(text: str) -> None:
    wanted = sorted({*terms(text), "harbour"})[:20]
    counted = TermCounts(100, dict.fromkeys(wanted, 1))
    found = find_coverage(counted, [Passage("0", "", text)], to_fact_columns({}))
    assert {term for term, has in zip(found.terms, found.texts[0], strict=True) if has} == {*terms(text)} & {*wanted}
