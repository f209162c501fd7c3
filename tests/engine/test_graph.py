"""What stands around an entity: each fact once, bounded, and only what the caller may see."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Filter, Waylore
from waylore.errors import QueryError
from waylore.types.results import Branch

NAMES = st.sampled_from("Ada Bo Cy Di Ed Flo".split())
FACTS = st.lists(st.tuples(NAMES, st.sampled_from(["knows", "owns"]), NAMES), min_size=1, max_size=20)


def every(branches: tuple[Branch, ...]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from every(branch.branches)


def test_a_tree_leads_outward(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_facts(
            [("login", "needs", "sessions"), ("Mara", "owns", "sessions"), ("Kofi", "leads", "Mara")]
        )
        [around] = memory.graph("Login", hops=3)
        [first] = around.branches
        assert str(first) == "—needs→ sessions"
        [second] = first.branches
        assert str(second) == "←owns— Mara"
        assert [str(b) for b in second.branches] == ["←leads— Kofi"]
        assert memory.graph("nobody") == ()
        with pytest.raises(QueryError, match="1 to 3"):
            memory.graph("login", hops=4)


@given(facts=FACTS, hops=st.integers(1, 3), most=st.integers(1, 10))
def test_every_fact_is_shown_once_and_no_more_than_asked(
    tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, str, str]], hops: int, most: int
) -> None:
    with Waylore.open(tmp_path_factory.mktemp("graph") / "a.waylore") as memory:
        memory.add_facts(facts)
        shown = [
            b.fact.id for around in memory.graph("Ada", hops=hops, most=most) for b in every(around.branches)
        ]
        assert len(shown) == len(set(shown)) <= most
        if hops == 3 and most == 10 and len(set(facts)) < 10:
            assert {f.id for f in memory.facts("Ada")} <= set(shown)


def test_what_may_not_be_seen_is_not_around(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_facts([("Ada", "knows", "Bo")])
        memory.add_facts([("Bo", "owes", "Cy")], labels=["secret"])
        shown = memory.graph("Ada", hops=2, where=Filter(labels=frozenset()))
        assert [str(b) for around in shown for b in every(around.branches)] == ["—knows→ Bo"]
