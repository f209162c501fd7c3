"""By a functional predicate a subject has one object at a time: a newer fact ends the older, which is kept."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Claim, Filter, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval.graph.validity import begins, ends_of
from waylore.types.knowledge import Fact

YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in range(2020, 2027)]
PUBLIC = Filter(labels=frozenset())


@pytest.fixture
def today() -> list[datetime]:
    return [YEARS[0]]


@pytest.fixture
def memory(tmp_path: Path, today: list[datetime]) -> Iterator[Waylore]:
    embedder = HashingEmbedder(64, quiet=True)
    path = tmp_path / "work.waylore"
    with Waylore.open(path, embedder=embedder, functional=["works at"], clock=lambda: today[0]) as waylore:
        yield waylore


def objects(facts: tuple[Fact, ...]) -> set[str]:
    return {fact.object for fact in facts}


def test_a_newer_fact_ends_the_older_one_which_is_kept(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme"), ("Mara", "likes", "tea")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech"), ("Mara", "likes", "chess")])
    assert objects(memory.facts("Mara", as_of=YEARS[4])) == {"Initech", "tea", "chess"}
    assert objects(memory.facts("Mara", as_of=YEARS[1])) >= {"Acme"}
    kept = {fact.object: fact.valid_to for fact in memory.facts("Mara")}
    assert kept == {"Acme": YEARS[3], "Initech": None, "tea": None, "chess": None}


@pytest.mark.parametrize("method", ["chain", "neighbourhood", "activation", "guided"])
def test_a_search_goes_by_what_holds(memory: Waylore, today: list[datetime], method: str) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech")])
    now = memory.search("Where does Mara work?", method=method)
    then = memory.search("Where does Mara work?", method=method, as_of=YEARS[1])
    assert objects(now.facts) == {"Initech"}
    assert "Acme" in objects(then.facts)


def test_a_fact_says_itself_when_it_began(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([Claim("Mara", "works_at", "Initech", valid_from=YEARS[3])])
    today[0] = YEARS[5]  # what is learnt later may be older
    memory.add_facts([Claim("Mara", "works_at", "Acme", valid_from=YEARS[1])])
    assert objects(memory.facts("Mara", as_of=YEARS[5])) == {"Initech"}
    assert objects(memory.facts("Mara", as_of=YEARS[2])) == {"Acme"}


def test_forgetting_the_newer_brings_the_older_back(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    newer = memory.add_facts([("Mara", "works_at", "Initech")])
    memory.forget(*newer)
    assert objects(memory.facts("Mara", as_of=YEARS[4])) == {"Acme"}


def test_what_is_hidden_ends_nothing(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech")], labels=["staff"])
    assert objects(memory.facts("Mara", as_of=YEARS[4], where=PUBLIC)) == {"Acme"}
    assert objects(memory.search("Mara", where=PUBLIC, as_of=YEARS[4]).facts) == {"Acme"}


def test_the_object_may_have_many_subjects(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Kofi", "works_at", "Acme")])
    assert {f.subject for f in memory.facts("Acme", as_of=YEARS[4])} == {"Mara", "Kofi"}


moments = st.sampled_from(YEARS)
rivals = st.lists(st.tuples(st.sampled_from("XYZ"), moments), unique_by=lambda r: r[0], max_size=3)


@given(rivals, moments)
def test_at_every_moment_at_most_one_holds_but_for_those_that_began_together(
    told: list[tuple[str, datetime]], now: datetime
) -> None:
    facts = [Fact(o, "s", "Mara", "works_at", o, o, recorded_at=at) for o, at in told]
    ends = ends_of(facts)
    held = [f for f in facts if begins(f) <= now < ends.get(f.id, now + timedelta(1))]
    assert len({begins(f) for f in held}) <= 1
    assert bool(held) == any(begins(f) <= now for f in facts)
