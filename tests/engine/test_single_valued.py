"""Test single-valued predicates: a newer fact ends the older one, which stays stored."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Filter, NewFact, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval.graph.validity import FOREVER, compute_periods
from waylore.types.knowledge import Fact, Source, Status

YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in range(2020, 2027)]
PUBLIC = Filter(labels=frozenset())


@pytest.fixture
def today() -> list[datetime]:
    return [YEARS[0]]


@pytest.fixture
def memory(tmp_path: Path, today: list[datetime]) -> Iterator[Waylore]:
    embedder = HashingEmbedder(64, quiet=True)
    path = tmp_path / "work.waylore"
    with Waylore.open(path, embedder=embedder, single_valued=["works at"], clock=lambda: today[0]) as waylore:
        yield waylore


def list_objects(facts: tuple[Fact, ...]) -> set[str]:
    return {fact.object for fact in facts}


def test_newer_fact_ends_the_older_one(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme"), ("Mara", "likes", "tea")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech"), ("Mara", "likes", "chess")])
    assert list_objects(memory.facts("Mara", as_of=YEARS[4])) == {"Initech", "tea", "chess"}
    assert list_objects(memory.facts("Mara", as_of=YEARS[1])) >= {"Acme"}
    stored = {fact.object: fact.valid_to for fact in memory.facts("Mara")}
    assert stored == {"Acme": YEARS[3], "Initech": None, "tea": None, "chess": None}


@pytest.mark.parametrize("method", ["chain", "neighbourhood", "activation", "guided"])
def test_search_uses_valid_facts(memory: Waylore, today: list[datetime], method: str) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech")])
    now = memory.search("Where does Mara work?", method=method)
    then = memory.search("Where does Mara work?", method=method, as_of=YEARS[1])
    assert list_objects(now.facts) == {"Initech"}
    assert "Acme" in list_objects(then.facts)


def test_valid_from_decides_which_fact_is_newer(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([NewFact("Mara", "works_at", "Initech", valid_from=YEARS[3])])
    today[0] = YEARS[5]  # a fact that is added later may be older
    memory.add_facts([NewFact("Mara", "works_at", "Acme", valid_from=YEARS[1])])
    assert list_objects(memory.facts("Mara", as_of=YEARS[5])) == {"Initech"}
    assert list_objects(memory.facts("Mara", as_of=YEARS[2])) == {"Acme"}


def test_time_without_a_zone_is_utc(memory: Waylore) -> None:
    for year, place in ((0, "Acme"), (2, "Globex")):
        memory.add_facts([NewFact("Ada", "works at", place, valid_from=YEARS[year])])
    for moment in (datetime(2021, 6, 1), "2021-06-01", datetime(2021, 6, 1, tzinfo=UTC)):
        assert list_objects(memory.facts("Ada", as_of=moment)) == {"Acme"}
        assert list_objects(tuple(each.assertion.fact for each in memory.related("Ada", as_of=moment))) == {"Acme"}
        assert "Acme" in list_objects(memory.search("Where does Ada work?", as_of=moment).facts)


def test_forgetting_the_newer_fact_restores_the_older(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    newer = memory.add_facts([("Mara", "works_at", "Initech")])
    memory.forget(*newer)
    assert list_objects(memory.facts("Mara", as_of=YEARS[4])) == {"Acme"}


def test_hidden_fact_ends_no_visible_one(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Mara", "works_at", "Initech")], labels=["staff"])
    assert list_objects(memory.facts("Mara", as_of=YEARS[4], where=PUBLIC)) == {"Acme"}
    assert list_objects(memory.search("Mara", where=PUBLIC, as_of=YEARS[4]).facts) == {"Acme"}


def test_object_may_have_many_subjects(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("Mara", "works_at", "Acme")])
    today[0] = YEARS[3]
    memory.add_facts([("Kofi", "works_at", "Acme")])
    assert {f.subject for f in memory.facts("Acme", as_of=YEARS[4])} == {"Mara", "Kofi"}


def test_staged_fact_ends_no_confirmed_one(memory: Waylore) -> None:
    """T46: a rumour does not end what the user has confirmed."""
    bergen = NewFact("Ida", "works_at", "Bergen", valid_from=YEARS[0], source="user_edit")
    rumour = NewFact("Ida", "works_at", "Oslo", valid_from=YEARS[4], status="staged", source="conversation")
    memory.add_facts([bergen])
    memory.add_facts([rumour], source="conversation")
    assert list_objects(memory.facts("Ida", as_of=YEARS[5])) == {"Bergen"}


def make_rival(object_: str, year: int, source: Source = "file", status: Status = "confirmed") -> Fact:
    return Fact(object_, "s", "Ida", "works_at", object_, source=source, status=status, valid_from=YEARS[year])


@pytest.mark.parametrize(
    ("older", "newer", "ends"),
    [
        (make_rival("a", 1), make_rival("b", 3), {"a": YEARS[3]}),
        (make_rival("a", 1), make_rival("b", 3, status="staged"), {}),
        (make_rival("a", 1, status="staged"), make_rival("b", 3), {"a": YEARS[3]}),
        (make_rival("a", 1, status="staged"), make_rival("b", 3, status="staged"), {"a": YEARS[3]}),
        (make_rival("a", 1, "user_edit"), make_rival("b", 3), {"b": YEARS[3]}),
        (make_rival("a", 1, "conversation"), make_rival("b", 3, "system"), {"a": YEARS[3]}),
        (make_rival("a", 1, "conversation"), make_rival("b", 3, "user_edit", "staged"), {}),
        (make_rival("a", 1, "user_edit", "staged"), make_rival("b", 3), {}),
        (make_rival("a", 1), make_rival("b", 1), {}),
        (make_rival("a", 1, "user_edit"), make_rival("b", 1), {"b": YEARS[1]}),
        (replace(make_rival("a", 1, "user_edit"), valid_to=YEARS[2]), make_rival("b", 3), {}),
    ],
)
def test_more_trusted_source_ends_the_other_fact(older: Fact, newer: Fact, ends: dict[str, datetime]) -> None:
    for told in ([older, newer], [newer, older]):
        periods = compute_periods(told)
        assert {p.assertions[0].id: p.end for p in periods if p.end not in (FOREVER, p.assertions[0].valid_to)} == ends


moments = st.sampled_from(YEARS)
rivals = st.lists(st.tuples(st.sampled_from("XYZ"), moments), unique_by=lambda r: r[0], max_size=3)


@given(rivals, moments)
def test_one_fact_holds_at_a_time_unless_both_began_together(stated: list[tuple[str, datetime]], now: datetime) -> None:
    facts = [Fact(o, "s", "Mara", "works_at", o, o, recorded_at=at) for o, at in stated]
    held = [p.assertions[0] for p in compute_periods(facts) if p.holds_at(now)]
    assert len({fact.recorded_at for fact in held}) <= 1
    assert bool(held) == bool(facts)  # the beginning of the first is unknown
