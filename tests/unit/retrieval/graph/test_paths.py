"""Trails are shortest paths over facts, with the best last fact among equals, in whatever order facts come."""

import random

from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.finding import fact
from waylore.retrieval.graph.paths import adjacency, trails
from waylore.types.identity import entity_id
from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Step

NAMES = "ABCDEFG"
links = st.lists(
    st.builds(fact, st.sampled_from(NAMES), st.sampled_from("pq"), st.sampled_from(NAMES)),
    unique_by=lambda f: f.id,
)


def starting(*names: str) -> dict[str, str]:
    return {entity_id(name): name for name in names}


def paths(facts: list[Fact], *starts: str, hops: int = 3, both_ways: bool = True) -> dict[str, str]:
    """All paths in words, by the name of what they lead to; the best fact is the one with the least name."""
    bearing = {f.id: -ord(f.predicate[0]) for f in facts}
    known = trails(starting(*starts), adjacency(facts, bearing, both_ways=both_ways), hops=hops)
    names = {end: name for f in facts for end, name in zip(f.ends, (f.subject, f.object), strict=False)}
    reached = {id_: name for id_, name in (names | starting(*starts)).items() if id_ in known}
    return {name: str(known.to(id_)).removesuffix(" → this passage") for id_, name in reached.items()}


def test_paths_lead_both_ways_along_facts() -> None:
    facts = [fact("A", "p", "B"), fact("C", "q", "B")]
    assert paths(facts, "A") == {"A": "A", "B": "A —p→ B", "C": "A —p→ B ←q— C"}
    assert paths(facts, "A", both_ways=False) == {"A": "A", "B": "A —p→ B"}


def test_paths_are_no_longer_than_allowed() -> None:
    facts = [fact("A", "p", "B"), fact("B", "p", "C"), fact("C", "p", "D")]
    assert sorted(paths(facts, "A", hops=2)) == ["A", "B", "C"]
    assert paths(facts, "A", hops=0) == {"A": "A"}
    assert paths([], "A") == {"A": "A"}


def test_a_shorter_path_goes_before_a_better_one() -> None:
    facts = [fact("A", "p", "B"), fact("B", "p", "C"), fact("A", "q", "C")]
    assert paths(facts, "A")["C"] == "A —q→ C"
    assert paths([*facts, fact("A", "o", "C")], "A")["C"] == "A —o→ C"


def test_what_is_named_needs_no_path_and_plain_values_and_loops_lead_nowhere() -> None:
    facts = [fact("A", "p", "B"), fact("B", "p", "B"), fact("B", "p", "1815", is_value=True)]
    assert paths(facts, "A", "B") == {"A": "A", "B": "B"}


def over(facts: list[Fact], last: Fact, to: str, *starts: str) -> FactPath:
    return trails(starting(*starts), adjacency(facts, {f.id: 1.0 for f in facts}), hops=3).over(
        last, entity_id(to)
    )


def test_a_path_over_a_fact_ends_with_it_unless_a_shorter_one_is_known() -> None:
    ab, bc, ac = fact("A", "p", "B"), fact("B", "p", "C"), fact("A", "p", "C")
    assert str(over([ab], bc, "C", "A")) == "A —p→ B —p→ C → this passage"
    assert str(over([ab, ac], bc, "C", "A")) == "A —p→ C → this passage"
    assert str(over([ab], ab, "A", "A")) == "A → this passage"


def test_a_path_over_a_fact_that_nothing_leads_to_begins_at_its_other_end() -> None:
    assert str(over([], fact("X", "p", "Y"), "Y", "A")) == "X —p→ Y → this passage"
    assert str(over([], fact("X", "p", "Y"), "X", "A")) == "Y ←p— X → this passage"


def test_a_path_over_a_plain_value_begins_at_its_subject() -> None:
    assert over([], fact("X", "born", "1815", is_value=True), "X", "A").start == "X"


@given(links, st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_trails_are_shortest_and_do_not_depend_on_order(
    facts: list[Fact], chance: random.Random, hops: int, both_ways: bool
) -> None:
    found = paths(facts, "A", "B", hops=hops, both_ways=both_ways)
    shuffled = chance.sample(facts, len(facts))
    assert paths(shuffled, "B", "A", hops=hops, both_ways=both_ways) == found
    assert {name: path.count("→") + path.count("←") for name, path in found.items()} == distances(
        facts, hops, both_ways=both_ways
    )


def distances(facts: list[Fact], hops: int, *, both_ways: bool) -> dict[str, int]:
    """How far each name is from A or B, by trying every fact again and again."""
    far = {"A": 0, "B": 0}
    for hop in range(1, hops + 1):
        pairs = [(f.subject, f.object) for f in facts] + [(f.object, f.subject) for f in facts if both_ways]
        near = {name for name, steps in far.items() if steps == hop - 1}
        far |= {other: hop for one, other in pairs if one in near and other not in far}
    return far


@given(links)
def test_every_step_begins_where_the_one_before_it_arrived(facts: list[Fact]) -> None:
    known = trails(starting("A"), adjacency(facts, {f.id: f.weight for f in facts}), hops=6)
    for reached in known.before:
        at = entity_id("A")
        for step in known.to(reached).steps:
            begins, at_last = ends(step)
            assert begins == at
            at = at_last
        assert at == reached


def ends(step: Step) -> tuple[str, str]:
    fact = step.fact
    return (fact.subject_id, fact.object_id) if step.is_forward else (fact.object_id, fact.subject_id)
