"""Test facts that change over time: each statement is stored, and what holds at a time is computed from them all."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import NewFact, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval.graph.validity import MAX_ASSERTIONS, compute_periods
from waylore.types.knowledge import SOURCES, Fact, Source, Status

EMBEDDER = HashingEmbedder(64, quiet=True)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def today() -> list[datetime]:
    return [day("2026-01-10")]


@pytest.fixture
def memory(tmp_path: Path, today: list[datetime]) -> Iterator[Waylore]:
    with open_memory(tmp_path / "changes.waylore", today) as opened:
        yield opened


def open_memory(path: Path, today: list[datetime]) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, single_valued=["lives_in", "works_at"], clock=lambda: today[0])


def list_periods(facts: Sequence[Fact]) -> list[tuple[str, str, str]]:
    """Return object, first and last day of facts, in order of time."""
    spans = [(fact.object, format_day(fact.valid_from), format_day(fact.valid_to)) for fact in facts]
    return sorted(spans, key=lambda span: span[1])


def format_day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""


def list_held(memory: Waylore, name: str, as_of: str) -> list[str]:
    return sorted(fact.object for fact in memory.facts(name, as_of=day(as_of)))


@pytest.mark.parametrize("source", ["conversation", "user_edit", "system"])
def test_b2_who_moves_back_lives_there_again(memory: Waylore, today: list[datetime], source: Source) -> None:
    """B 2: Oslo in January, Bergen in March and Oslo in June are three statements and three periods."""
    ids: list[str] = []
    for date, place in (("2026-01-10", "Oslo"), ("2026-03-10", "Bergen"), ("2026-06-10", "Oslo")):
        today[0] = day(date)
        ids += memory.add_facts([("Ann", "lives_in", place)], source=source)
    assert len(set(ids)) == 3
    assert list_periods(memory.facts("Ann")) == [
        ("Oslo", "2026-01-10", "2026-03-10"),
        ("Bergen", "2026-03-10", "2026-06-10"),
        ("Oslo", "2026-06-10", ""),
    ]
    assert [list_held(memory, "Ann", f"2026-{month}-01") for month in ("01", "02", "05", "07")] == [
        [],
        ["Oslo"],
        ["Bergen"],
        ["Oslo"],
    ]
    [found] = memory.search("Where does Ann live?", as_of=day("2026-04-01")).facts
    assert list_periods([found]) == [("Bergen", "2026-03-10", "")]  # Oslo in June was not said yet


def test_b2_with_valid_from(memory: Waylore, today: list[datetime]) -> None:
    """B 2: the same with periods as they were said, on one day and in any order."""
    for date, place in (("2026-06-10", "Oslo"), ("2026-01-10", "Oslo"), ("2026-03-10", "Bergen")):
        memory.add_facts([NewFact("Ann", "lives_in", place, valid_from=day(date))])
    today[0] = day("2026-07-01")
    assert list_periods(memory.facts("Ann")) == [
        ("Oslo", "2026-01-10", "2026-03-10"),
        ("Bergen", "2026-03-10", "2026-06-10"),
        ("Oslo", "2026-06-10", ""),
    ]
    assert list_held(memory, "Ann", "2026-02-01") == ["Oslo"]
    [found] = memory.search("Where does Ann live?", as_of=day("2026-04-01")).facts
    assert list_periods([found]) == [("Bergen", "2026-03-10", "2026-06-10")]


def test_b3_nothing_is_known_before_it_was_said(memory: Waylore, today: list[datetime]) -> None:
    """B 3: `as_of` gives neither passages nor facts that were said later."""
    memory.add("Ann lives in Oslo.", source="conversation", at=today[0], facts=[("Ann", "lives_in", "Oslo")])
    today[0] = day("2026-03-10")
    memory.add("Ann moved to Bergen.", source="conversation", at=today[0], facts=[("Ann", "lives_in", "Bergen")])
    memory.add_facts([("Ann", "likes", "tea")])
    assert memory.facts("Ann", as_of=day("2025-06-01")) == ()
    then = memory.search("Where does Ann live?", as_of=day("2026-02-01"))
    assert [hit.text for hit in then] == ["Ann lives in Oslo."]
    assert [fact.object for fact in then.facts] == ["Oslo"]
    assert list_held(memory, "Ann", "2026-02-01") == ["Oslo"]
    assert list_held(memory, "Ann", "2026-03-11") == ["Bergen", "tea"]


@pytest.mark.parametrize("source", ["conversation", "user_edit"])
def test_t21_who_moves_back_on_the_same_day_is_believed(memory: Waylore, today: list[datetime], source: Source) -> None:
    """T21: Bergen, Oslo and Bergen again within a day: the last statement counts."""
    for place in ("Bergen", "Oslo", "Bergen"):
        memory.add_facts([("Nils", "lives_in", place)], source=source)
        today[0] += SECOND
    assert [str(fact) for fact in memory.facts("Nils") if not fact.valid_to] == ["Nils —lives_in→ Bergen"]
    assert memory.stats().documents == 2


def test_t22_second_period_keeps_the_first(memory: Waylore) -> None:
    """T22: one fact with two periods is two statements."""
    for year, place in ((2019, "Bergen"), (2022, "Oslo"), (2024, "Bergen")):
        memory.add_facts([NewFact("Ida", "lives_in", place, valid_from=day(f"{year}-01-01"))])
    assert list_held(memory, "Ida", "2020-06-01") == ["Bergen"]
    assert list_held(memory, "Ida", "2023-06-01") == ["Oslo"]
    assert list_held(memory, "Ida", "2025-06-01") == ["Bergen"]
    assert list_held(memory, "Ida", "2018-06-01") == []


def test_t23_one_holds_after_a_hundred_changes(memory: Waylore) -> None:
    """T23: of a hundred towns, one a day, the last one holds, and on each day that day's."""
    first = day("2025-01-01")
    towns = [NewFact("Ida", "lives_in", f"Town{n}", valid_from=first + n * DAY) for n in range(100)]
    memory.add_facts(towns)
    assert [fact.object for fact in memory.facts("Ida") if not fact.valid_to] == ["Town99"]
    assert len(memory.facts("Ida")) == 100
    for number in (0, 5, 30, 36, 37, 64, 98, 99):
        assert [fact.object for fact in memory.facts("Ida", as_of=first + number * DAY)] == [f"Town{number}"]
    assert [fact.object for fact in memory.facts("Ida", limit=10) if not fact.valid_to] == ["Town99"]
    assert [each.assertion.fact.object for each in memory.related("Ida", as_of=day("2026-01-01"))] == ["Town99"]
    assert {fact.object for fact in memory.search("Where does Ida live?").facts} == {"Town99"}


def test_rumours_do_not_displace_what_was_confirmed(memory: Waylore, today: list[datetime]) -> None:
    """More newer statements than are read do not end one that they may not end."""
    memory.add_facts([NewFact("Ida", "lives_in", "Oslo", source="user_edit")])
    for number in range(MAX_ASSERTIONS + 6):
        today[0] += SECOND
        rumour = NewFact("Ida", "lives_in", f"Town{number}", status="staged", source="conversation")
        memory.add_facts([rumour], source="conversation")
    assert list_held(memory, "Ida", "2026-02-01") == ["Oslo"]


def test_t47_what_went_on_holds_again_after_a_bounded_period(memory: Waylore) -> None:
    """T47: Acme since 2020, and Globex from 2022 to 2023: as of 2025 Acme."""
    memory.add_facts([NewFact("Ada", "works_at", "Acme", valid_from=day("2020-01-01"))], source="file")
    memory.add_facts(
        [NewFact("Ada", "works_at", "Globex", valid_from=day("2022-01-01"), valid_to=day("2023-01-01"))], source="file"
    )
    assert [list_held(memory, "Ada", f"{year}-06-01") for year in (2021, 2022, 2025)] == [
        ["Acme"],
        ["Globex"],
        ["Acme"],
    ]
    assert list_periods(memory.facts("Ada")) == [
        ("Acme", "2020-01-01", "2022-01-01"),
        ("Globex", "2022-01-01", "2023-01-01"),
        ("Acme", "2023-01-01", ""),
    ]


def test_t47_objects_of_one_call_hold_together(memory: Waylore, today: list[datetime]) -> None:
    """T47: of two objects that begin in the same moment neither ends the other; a later one ends both."""
    memory.add_facts([("Ada", "works_at", "Acme"), ("Ada", "works_at", "Globex")])
    assert list_held(memory, "Ada", "2026-02-01") == ["Acme", "Globex"]
    today[0] = day("2026-03-01")
    memory.add_facts([("Ada", "works_at", "Initech")])
    assert list_held(memory, "Ada", "2026-04-01") == ["Initech"]


def test_same_object_again_prolongs_its_period(memory: Waylore, today: list[datetime]) -> None:
    for date, place in (("2026-01-10", "Oslo"), ("2026-02-10", "Oslo"), ("2026-03-10", "Bergen")):
        today[0] = day(date)
        memory.add_facts([("Ann", "lives_in", place)])
    assert list_periods(memory.facts("Ann")) == [("Oslo", "2026-01-10", "2026-03-10"), ("Bergen", "2026-03-10", "")]


def test_statement_of_a_day_or_session_stays_one(memory: Waylore, today: list[datetime]) -> None:
    likes = [("Ann", "likes", "tea")]
    first = memory.add_facts(likes)
    today[0] += SECOND
    assert memory.add_facts(likes) == first
    assert memory.facts("Ann")[0].access_count == 1
    in_session = memory.add_facts(likes, session="one")
    today[0] += DAY
    assert memory.add_facts(likes, session="one") == in_session != first
    assert memory.add_facts(likes) not in (first, in_session)
    assert memory.stats().documents == 3
    assert memory.mark_same("Ann", "Anna") == memory.mark_same("Ann", "Anna")
    today[0] += DAY
    assert memory.mark_same("Ann", "Anna") == memory.mark_same("Ann", "Anna")
    assert memory.stats().documents == 4


def test_fact_of_a_file_is_believed_again_after_a_change(memory: Waylore, today: list[datetime]) -> None:
    [first] = memory.add_facts([NewFact("Ann", "lives_in", "Oslo", source="conversation")], source="file")
    lives = [("Ann", "lives_in", "Oslo")]
    today[0] += DAY
    assert memory.add_facts(lives, source="conversation") == (first,)  # a file without a time says so already
    today[0] += DAY
    memory.add_facts([("Ann", "lives_in", "Bergen")], source="conversation")
    today[0] += DAY
    assert memory.add_facts(lives, source="conversation") != (first,)
    assert list_periods(memory.facts("Ann")) == [
        ("Oslo", "", "2026-01-12"),
        ("Bergen", "2026-01-12", "2026-01-13"),
        ("Oslo", "2026-01-13", ""),
    ]


def test_later_word_about_the_same_start_wins(memory: Waylore, today: list[datetime]) -> None:
    since = day("2025-01-01")
    memory.add_facts([NewFact("Ann", "lives_in", "Oslo", valid_from=since)], at=today[0])
    memory.add_facts([NewFact("Ann", "lives_in", "Bergen", valid_from=since)], at=today[0] + DAY)
    assert list_held(memory, "Ann", "2026-02-01") == ["Bergen"]
    assert list_held(memory, "Ann", "2026-01-10") == ["Oslo"]  # as it was believed then


def test_fact_that_was_over_when_it_was_said_holds_before(memory: Waylore) -> None:
    memory.add_facts([NewFact("Ann", "lives_in", "Rome", valid_to=day("2020-01-01"))], source="file")
    memory.add_facts([NewFact("Ann", "lives_in", "Oslo", valid_from=day("2019-01-01"))], source="file")
    assert [list_held(memory, "Ann", f"{year}-06-01") for year in (2018, 2019, 2021)] == [["Rome"], ["Oslo"], ["Oslo"]]


def test_other_users_end_nothing(memory: Waylore, today: list[datetime]) -> None:
    memory.add_facts([("user", "lives_in", "Oslo")], user="ann")
    today[0] += DAY
    memory.add_facts([("user", "lives_in", "Rome")], user="ben")
    [own] = memory.facts("user", user="ann")
    assert (own.object, own.valid_to) == ("Oslo", None)
    assert memory.facts("user") == ()


# -- against a model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """A statement: the object, the day on which it was said and began, for how many days, its source and status."""

    object: str
    day: int
    days: int | None
    source: Source
    status: Status

    @property
    def start(self) -> datetime:
        return day("2026-01-01") + self.day * DAY

    @property
    def end(self) -> datetime | None:
        return None if self.days is None else self.start + self.days * DAY

    def is_active(self, on: int) -> bool:
        return self.day <= on and (self.days is None or on < self.day + self.days)

    def outranks(self, other: "Told") -> bool:
        """Return whether this statement ends another one while both are active."""
        if self.status == "staged" and other.status == "confirmed":
            return False
        own, others = SOURCES.index(self.source), SOURCES.index(other.source)
        return own < others or (own == others and self.day > other.day)

    @property
    def fact(self) -> Fact:
        return Fact(
            self.object,
            "s",
            "Ann",
            "lives_in",
            self.object,
            passage_id=f"{self.day} {self.object}",
            source=self.source,
            status=self.status,
            valid_to=self.end,
            at=self.start,
        )


def list_expected(told: Sequence[Told], on: int) -> set[str]:
    """Return the objects that hold on a day, by brute force."""
    active = [each for each in told if each.is_active(on)]
    return {
        each.object
        for each in active
        if not any(rival.object != each.object and rival.outranks(each) for rival in active)
    }


statements = st.builds(
    Told,
    st.sampled_from("XYZ"),
    st.integers(0, 8),
    st.none() | st.integers(1, 4),
    st.sampled_from(SOURCES),
    st.sampled_from(["confirmed", "staged"]),
)
stories = st.lists(statements, min_size=1, max_size=7, unique_by=lambda told: (told.object, told.day))


@given(stories, st.randoms(use_true_random=False))
def test_periods_hold_what_the_model_expects_in_any_order(told: list[Told], random: Random) -> None:
    mixed = list(told)
    random.shuffle(mixed)
    periods = compute_periods(each.fact for each in mixed)
    for on in range(14):
        moment = day("2026-01-01") + on * DAY
        held = [period.assertions[0].object for period in periods if period.holds_at(moment)]
        assert len(held) == len(set(held))
        assert set(held) == list_expected(told, on)
    assert {fact.passage_id for p in periods for fact in p.assertions} == {each.fact.passage_id for each in told}


@settings(max_examples=10, deadline=None)
@given(stories, st.data())
def test_memory_holds_what_the_model_expects(told: list[Told], data: st.DataObject) -> None:
    """What holds does not depend on the order of adding, and forgetting one statement restores what it ended."""
    order = data.draw(st.permutations(told))
    with (
        tempfile.TemporaryDirectory() as folder,
        open_memory(Path(folder) / "x.waylore", [day("2027-01-01")]) as memory,
    ):
        ids = {}
        for each in order:
            fact = NewFact("Ann", "lives_in", each.object, source=each.source, status=each.status, valid_to=each.end)
            [ids[each]] = memory.add_facts([fact], source=each.source, at=each.start)
        check_days(memory, told)
        gone = data.draw(st.sampled_from(told))
        memory.forget(ids[gone])
        check_days(memory, [each for each in told if each != gone])


def check_days(memory: Waylore, told: Sequence[Told]) -> None:
    for on in range(0, 14, 2):
        moment = day("2026-01-01") + on * DAY
        assert {fact.object for fact in memory.facts("Ann", as_of=moment)} == list_expected(told, on)
