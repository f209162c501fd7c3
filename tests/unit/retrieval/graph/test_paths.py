"""Trails are shortest paths over facts, with the best last fact among equals, in any order of facts."""

import random

from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.samples import make_fact
from waylore.retrieval.graph.paths import build_adjacency, find_trails
from waylore.types.columns import to_fact_columns
from waylore.types.identity import entity_id
from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Step

NAMES = "ABCDEFG"
links = st.lists(
    st.builds(make_fact, st.sampled_from(NAMES), st.sampled_from("pq"), st.sampled_from(NAMES)),
    unique_by=lambda f: f.id,
)


def make_starts(*names: str) -> dict[str, str]:
    return {entity_id(name): name for name in names}


def describe_paths(facts: list[Fact], *starts: str, hops: int = 3, both_ways: bool = True) -> dict[str, str]:
    """Return all paths as text, by the name of their end. The best fact is the one with the first name."""
    bearing = [-float(ord(f.predicate[0])) for f in facts]
    adjacency = build_adjacency(to_fact_columns({"": facts}), bearing, both_ways=both_ways)
    known = find_trails(make_starts(*starts), adjacency, hops=hops)
    names = {end: name for f in facts for end, name in zip(f.ends, (f.subject, f.object), strict=False)}
    reached = {id_: name for id_, name in (names | make_starts(*starts)).items() if id_ in known}
    return {name: str(known.find_path(id_)).removesuffix(" → this passage") for id_, name in reached.items()}


def test_paths_follow_facts_both_ways() -> None:
    facts = [make_fact("A", "p", "B"), make_fact("C", "q", "B")]
    assert describe_paths(facts, "A") == {"A": "A", "B": "A —p→ B", "C": "A —p→ B ←q— C"}
    assert describe_paths(facts, "A", both_ways=False) == {"A": "A", "B": "A —p→ B"}


def test_paths_respect_max_hops() -> None:
    facts = [make_fact("A", "p", "B"), make_fact("B", "p", "C"), make_fact("C", "p", "D")]
    assert sorted(describe_paths(facts, "A", hops=2)) == ["A", "B", "C"]
    assert describe_paths(facts, "A", hops=0) == {"A": "A"}
    assert describe_paths([], "A") == {"A": "A"}


def test_shorter_path_beats_better_fact() -> None:
    facts = [make_fact("A", "p", "B"), make_fact("B", "p", "C"), make_fact("A", "q", "C")]
    assert describe_paths(facts, "A")["C"] == "A —q→ C"
    assert describe_paths([*facts, make_fact("A", "o", "C")], "A")["C"] == "A —o→ C"


def test_plain_values_and_loops_lead_nowhere() -> None:
    facts = [make_fact("A", "p", "B"), make_fact("B", "p", "B"), make_fact("B", "p", "1815", is_value=True)]
    assert describe_paths(facts, "A", "B") == {"A": "A", "B": "B"}


def find_path_over(facts: list[Fact], last: Fact, to: str, *starts: str) -> GraphPath:
    adjacency = build_adjacency(to_fact_columns({"": facts}), [1.0 for _ in facts])
    return find_trails(make_starts(*starts), adjacency, hops=3).find_path_over(last, entity_id(to))


def test_path_over_fact_ends_with_it_unless_shorter_exists() -> None:
    ab, bc, ac = make_fact("A", "p", "B"), make_fact("B", "p", "C"), make_fact("A", "p", "C")
    assert str(find_path_over([ab], bc, "C", "A")) == "A —p→ B —p→ C → this passage"
    assert str(find_path_over([ab, ac], bc, "C", "A")) == "A —p→ C → this passage"
    assert str(find_path_over([ab], ab, "A", "A")) == "A → this passage"


def test_path_over_unreached_fact_starts_at_other_end() -> None:
    assert str(find_path_over([], make_fact("X", "p", "Y"), "Y", "A")) == "X —p→ Y → this passage"
    assert str(find_path_over([], make_fact("X", "p", "Y"), "X", "A")) == "Y ←p— X → this passage"


def test_path_over_plain_value_starts_at_subject() -> None:
    assert find_path_over([], make_fact("X", "born", "1815", is_value=True), "X", "A").start == "X"


@given(links, st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_trails_are_shortest_in_any_order(facts: list[Fact], chance: random.Random, hops: int, both_ways: bool) -> None:
    found = describe_paths(facts, "A", "B", hops=hops, both_ways=both_ways)
    shuffled = chance.sample(facts, len(facts))
    assert describe_paths(shuffled, "B", "A", hops=hops, both_ways=both_ways) == found
    assert {name: path.count("→") + path.count("←") for name, path in found.items()} == compute_distances(
        facts, hops, both_ways=both_ways
    )


def compute_distances(facts: list[Fact], hops: int, *, both_ways: bool) -> dict[str, int]:
    """Return the distance of each name from A or B, by trying every fact again and again."""
    far = {"A": 0, "B": 0}
    for hop in range(1, hops + 1):
        pairs = [(f.subject, f.object) for f in facts] + [(f.object, f.subject) for f in facts if both_ways]
        near = {name for name, steps in far.items() if steps == hop - 1}
        far |= {other: hop for one, other in pairs if one in near and other not in far}
    return far


@given(links)
def test_steps_are_connected(facts: list[Fact]) -> None:
    known = find_trails(
        make_starts("A"), build_adjacency(to_fact_columns({"": facts}), [f.weight for f in facts]), hops=6
    )
    for reached in known.before:
        at = entity_id("A")
        for step in known.find_path(reached).steps:
            begins, at_last = get_ends(step)
            assert begins == at
            at = at_last
        assert at == reached


def get_ends(step: Step) -> tuple[str, str]:
    fact = step.fact
    return (fact.subject_id, fact.object_id) if step.is_forward else (fact.object_id, fact.subject_id)
