"""Test the graph around an entity: each fact once, within the limit, and visible to the caller."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Filter, Waylore
from waylore.errors import ArgumentError
from waylore.types.results import Branch

NAMES = st.sampled_from("Ada Bo Cy Di Ed Flo".split())
FACTS = st.lists(st.tuples(NAMES, st.sampled_from(["knows", "owns"]), NAMES), min_size=1, max_size=20)


def walk_branches(branches: tuple[Branch, ...]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from walk_branches(branch.branches)


def test_graph_is_a_tree_from_the_entity(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_facts([("login", "needs", "sessions"), ("Mara", "owns", "sessions"), ("Kofi", "leads", "Mara")])
        [around] = memory.graph("Login", hops=3)
        [first] = around.branches
        assert str(first) == "—needs→ sessions"
        [second] = first.branches
        assert str(second) == "←owns— Mara"
        assert [str(b) for b in second.branches] == ["←leads— Kofi"]
        assert memory.graph("nobody") == ()
        with pytest.raises(ArgumentError, match="1 to 3"):
            memory.graph("login", hops=4)


@given(facts=FACTS, hops=st.integers(1, 3), limit=st.integers(1, 10))
def test_graph_has_each_fact_once_within_the_limit(
    tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, str, str]], hops: int, limit: int
) -> None:
    with Waylore.open(tmp_path_factory.mktemp("graph") / "a.waylore") as memory:
        memory.add_facts(facts)
        shown = [
            b.fact.id for around in memory.graph("Ada", hops=hops, limit=limit) for b in walk_branches(around.branches)
        ]
        assert len(shown) == len(set(shown)) <= limit
        if hops == 3 and limit == 10 and len(set(facts)) < 10:
            assert {f.id for f in memory.facts("Ada")} <= set(shown)


def test_graph_hides_facts_without_access(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_facts([("Ada", "knows", "Bo")])
        memory.add_facts([("Bo", "owes", "Cy")], labels=["secret"])
        shown = memory.graph("Ada", hops=2, where=Filter(labels=frozenset()))
        assert [str(b) for around in shown for b in walk_branches(around.branches)] == ["—knows→ Bo"]
