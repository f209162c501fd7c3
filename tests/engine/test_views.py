"""Test the views of a memory on SQLite and PostgreSQL: timeline, profile, changes and provenance."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import create_database
from waylore import Waylore
from waylore.errors import ArgumentError, Forbidden, NotFound
from waylore.text import estimate_tokens
from waylore.types.author import Author
from waylore.types.views import Assertion, ChangeList, Timeline

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
LIFE = [
    ("2026-01-10", "I live in Oslo.", [("user", "lives_in", "Oslo")]),
    ("2026-02-01", "I play handball.", [("user", "plays", "handball")]),
    ("2026-02-20", "My birthday is on 3 May.", [("user", "birthday", "3 May")]),
    ("2026-03-10", "I have moved to Bergen.", [("user", "lives_in", "Bergen")]),
    ("2026-04-01", "I gave up handball.", [("user", "not plays", "handball")]),
    ("2026-06-10", "I am back in Oslo.", [("user", "lives_in", "Oslo")]),
]
CORRECTION = {
    "subject": "user",
    "predicate": "birthday",
    "object": "5 May",
    "valid_from": "2026-02-20",
}


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Waylore]:
    if request.param == "postgres":
        request.getfixturevalue("postgres")
    url = create_database() if request.param == "postgres" else str(tmp_path / "views.waylore")
    with Waylore.open(url, clock=lambda: NOW) as memory:
        yield memory


def live(memory: Waylore, user: str = "mara", **scope: Any) -> None:
    """Remember what a user says in half a year."""
    for day, text, facts in LIFE:
        memory.remember(text, user=user, at=day, facts=facts, **scope)
    memory.remember("Sorry, it is on 5 May.", user=user, at="2026-05-02", facts=[CORRECTION], **scope)


def describe(timeline: Timeline) -> list[tuple[str, str, str, str]]:
    """Return each entry as its fact, its periods, and how and by whose words it ended."""
    return [
        (
            f"{entry.assertion.fact.predicate} {entry.assertion.fact.object}",
            " ".join(f"{start:%m-%d}/{f'{end:%m-%d}' if end else ''}" for start, end in entry.periods if start),
            entry.end.kind if entry.end else "",
            entry.end.by.passage.text if entry.end and entry.end.by else "",
        )
        for entry in timeline.entries
    ]


def name(assertion: Assertion | None) -> str:
    return f"{assertion.fact.predicate} {assertion.fact.object}" if assertion else ""


def list_changes(found: ChangeList) -> list[tuple[str, str, str, str]]:
    return [(f"{each.at:%m-%d}", each.kind, name(each.before), name(each.after)) for each in found.changes]


def test_timeline_has_periods_and_what_ended_them(memory: Waylore) -> None:
    live(memory)
    timeline = memory.timeline("mara", user="mara")
    assert describe(timeline) == [
        ("lives_in Oslo", "01-10/03-10", "changed", "I have moved to Bergen."),
        ("plays handball", "02-01/04-01", "ended", "I gave up handball."),
        ("birthday 3 May", "", "corrected", "Sorry, it is on 5 May."),
        ("birthday 5 May", "02-20/", "", ""),
        ("lives_in Bergen", "03-10/06-10", "changed", "I am back in Oslo."),
        ("not plays handball", "04-01/", "", ""),
        ("lives_in Oslo", "06-10/", "", ""),
    ]
    first = timeline.entries[0].assertion
    assert (first.passage.text, first.passage.speaker, first.said) == ("I live in Oslo.", "mara", "2026-01-10, mara")
    assert (timeline.has_more, timeline.entity) == (False, "mara")


def test_timeline_of_an_object_has_its_own_assertions(memory: Waylore) -> None:
    live(memory)
    assert [entry[:3] for entry in describe(memory.timeline("Bergen", user="mara"))] == [
        ("lives_in Bergen", "03-10/06-10", "changed")
    ]


def test_timeline_is_limited_and_of_a_time(memory: Waylore) -> None:
    live(memory)
    newest = memory.timeline("mara", user="mara", limit=2)
    assert [name(entry.assertion) for entry in newest.entries] == ["not plays handball", "lives_in Oslo"]
    assert newest.has_more
    january = memory.timeline("mara", user="mara", since="2026-01-01", until="2026-02-01")
    assert [name(entry.assertion) for entry in january.entries] == ["lives_in Oslo"]
    spring = memory.timeline("mara", user="mara", since="2026-03-15", until="2026-03-20")
    assert [name(entry.assertion) for entry in spring.entries] == [
        "plays handball",
        "birthday 5 May",
        "lives_in Bergen",
    ]


def test_timeline_marks_plans_and_ends_that_were_said(memory: Waylore) -> None:
    plan = {"subject": "user", "predicate": "works_at", "object": "Fjord", "valid_from": "2026-09-01"}
    stay = {"subject": "user", "predicate": "stays_in", "object": "Rome", "valid_to": "2026-05-20"}
    memory.remember("I work at Acme.", user="mara", at="2026-01-10", facts=[("user", "works_at", "Acme")])
    memory.remember("In September I start at Fjord.", user="mara", at="2026-05-10", facts=[plan])
    memory.remember("I am in Rome until the 20th.", user="mara", at="2026-05-11", facts=[stay])
    timeline = memory.timeline("mara", user="mara")
    assert [(name(entry.assertion), entry.is_planned) for entry in timeline.entries] == [
        ("works_at Acme", False),
        ("stays_in Rome", False),
        ("works_at Fjord", True),
    ]
    assert [entry[1:] for entry in describe(timeline)][:2] == [
        ("01-10/09-01", "changed", "In September I start at Fjord."),
        ("05-11/05-20", "ended", ""),
    ]


def test_what_returns_after_a_bounded_period_has_two_periods(memory: Waylore) -> None:
    month = {
        "subject": "mara",
        "predicate": "lives_in",
        "object": "Rome",
        "valid_from": "2026-03-01",
        "valid_to": "2026-04-01",
    }
    memory.add_facts([("mara", "lives_in", "Oslo")], user="mara", at="2026-01-10")
    memory.add_facts([month], user="mara")
    assert describe(memory.timeline("mara", user="mara"))[0][:3] == ("lives_in Oslo", "01-10/03-01 04-01/", "")
    assert list_changes(memory.changes(user="mara")) == [
        ("01-10", "began", "", "lives_in Oslo"),
        ("03-01", "changed", "lives_in Oslo", "lives_in Rome"),
        ("04-01", "ended", "lives_in Rome", ""),
        ("04-01", "began", "", "lives_in Oslo"),
    ]


def test_changes_have_both_assertions(memory: Waylore) -> None:
    live(memory)
    assert list_changes(memory.changes(user="mara")) == [
        ("01-10", "began", "", "lives_in Oslo"),
        ("02-01", "began", "", "plays handball"),
        ("03-10", "changed", "lives_in Oslo", "lives_in Bergen"),
        ("04-01", "ended", "plays handball", "not plays handball"),
        ("05-02", "corrected", "birthday 3 May", "birthday 5 May"),
        ("06-10", "changed", "lives_in Bergen", "lives_in Oslo"),
    ]
    spring = memory.changes(user="mara", since="2026-03-10", until="2026-05-02")
    assert [each.kind for each in spring.changes] == ["changed", "ended"]
    newest = memory.changes(user="mara", limit=1)
    assert (list_changes(newest)[0][0], newest.has_more, spring.has_more) == ("06-10", True, False)
    assert list_changes(memory.changes(user="mara", entity="Bergen"))[0][2:] == ("lives_in Oslo", "lives_in Bergen")


def test_changes_include_relatives_of_the_user(memory: Waylore) -> None:
    memory.remember("My sister Anna lives in Rome.", user="mara", at="2026-05-01")
    memory.remember("My sister Anna has moved to Turin.", user="mara", at="2026-05-20")
    assert ("05-20", "changed", "lives_in Rome", "lives_in Turin") in [
        (day, kind, before.replace(" in", "_in"), after.replace(" in", "_in"))
        for day, kind, before, after in list_changes(memory.changes(user="mara", since="2026-05-10"))
    ]


def test_changes_do_not_tell_plans_before_their_time(memory: Waylore) -> None:
    plan = {"subject": "user", "predicate": "works_at", "object": "Fjord", "valid_from": "2026-09-01"}
    memory.remember("In September I start at Fjord.", user="mara", at="2026-05-10", facts=[plan])
    assert memory.changes(user="mara").changes == ()
    assert list_changes(memory.changes(user="mara", until="2027-01-01")) == [("09-01", "began", "", "works_at Fjord")]


def test_profile_has_one_line_a_relation(memory: Waylore) -> None:
    live(memory)
    memory.remember("I like tea.", user="mara", at="2026-05-01", facts=[("user", "likes", "tea")])
    memory.remember("I like jazz.", user="mara", at="2026-05-05", facts=[("user", "likes", "jazz")])
    profile = memory.profile("mara")
    assert [line.text for line in profile.lines] == [
        "lives in: Oslo (since 2026-06-10) “I am back in Oslo.”",
        "likes: jazz (since 2026-05-05), tea (since 2026-05-01) “I like jazz.”",
        "birthday: 5 May (since 2026-02-20) “Sorry, it is on 5 May.”",
    ]
    assert profile.lines[0].assertions[0].passage.at == datetime(2026, 6, 10, tzinfo=UTC)
    assert not profile.has_more


def test_profile_fits_into_its_budget(memory: Waylore) -> None:
    for number in range(40):
        memory.add_facts([("mara", f"relation {number}", "a value of some words")], user="mara")
    profile = memory.profile("mara", budget=100)
    assert 0 < estimate_tokens(profile.text) <= 100
    assert profile.has_more
    assert len(memory.profile("mara", budget=4_000).lines) == 40


def test_profile_begins_with_what_is_used(memory: Waylore) -> None:
    memory.remember("I am allergic to nuts.", user="mara", at="2026-01-01", facts=[("user", "allergic_to", "nuts")])
    memory.remember("I like tea.", user="mara", at="2026-05-01", facts=[("user", "likes", "tea")])
    assert [line.text.partition(":")[0] for line in memory.profile("mara").lines] == ["likes", "allergic to"]
    [fact] = [fact for fact in memory.facts("mara", user="mara") if fact.object == "nuts"]
    memory._store.count_uses(facts=[fact.id], at=NOW)
    assert [line.text.partition(":")[0] for line in memory.profile("mara").lines] == ["allergic to", "likes"]


def test_profile_of_a_memory_without_users(memory: Waylore) -> None:
    memory.remember("I live in Oslo.", at="2026-01-10", facts=[("user", "lives_in", "Oslo")])
    assert [line.text for line in memory.profile().lines] == ["lives in: Oslo (since 2026-01-10) “I live in Oslo.”"]
    assert list_changes(memory.changes()) == [("01-10", "began", "", "lives_in Oslo")]


def test_provenance_has_turns_of_all_roles_around(memory: Waylore) -> None:
    talk = [
        {"role": "user", "content": "I moved to Bergen."},
        {"role": "assistant", "content": "When was that?"},
        {"role": "user", "content": "On the first of March."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Thanks."},
    ]
    memory.remember(talk, user="mara", agent="clerk", session="s1", at="2026-03-08")
    hit = next(hit for hit in memory.search("first of March", user="mara").hits if hit.text == "On the first of March.")
    found = memory.provenance(hit)
    assert (found.speaker, found.session, found.at) == ("mara", "s1", datetime(2026, 3, 8, tzinfo=UTC))
    assert [turn.text for turn in found] == [message["content"] for message in talk]
    one = memory.provenance(hit.id, around=1, user="mara")
    assert [turn.speaker for turn in one] == ["clerk", "mara", "clerk"]
    assert list(memory.provenance(hit, around=0)) == [hit.passage]
    assert found.document.id == hit.document.id


def test_provenance_of_facts_and_of_documents(memory: Waylore) -> None:
    live(memory)
    [fact] = [fact for fact in memory.facts("Bergen", user="mara") if fact.predicate == "lives_in"]
    assert memory.provenance(fact, user="mara").passage.text == "I have moved to Bergen."
    assertion = memory.profile("mara").lines[0].assertions[0]
    assert memory.provenance(assertion).passage == assertion.passage
    text = "\n\n".join(f"Part {n}. " + " ".join(f"word{n}x{m}" for m in range(200)) for n in range(5))
    parts = sorted(memory.get(memory.add(text)).passages, key=lambda part: part.position)
    assert len(parts) > 3
    assert [part.id for part in memory.provenance(parts[1].id, around=1)] == [part.id for part in parts[:3]]
    with pytest.raises(NotFound, match="no passage"):
        memory.provenance(fact)
    with pytest.raises(ArgumentError, match="item must be"):
        memory.provenance(3)  # type: ignore[arg-type]


def test_views_stay_in_the_scope(memory: Waylore) -> None:
    live(memory)
    memory.add_facts([("mara", "owns", "a secret")], user="mara", labels=["hr"], at="2026-06-01")
    memory.add_facts([("mara", "leads", "the harbour")], at="2026-06-01")
    for author in (Author("ben", user="ben"), Author("guest", labels=frozenset({"it"}))):
        view = memory.as_author(author)
        assert [name(entry.assertion) for entry in view.timeline("mara").entries] == ["leads the harbour"]
        assert view.profile().lines == ()
        assert list_changes(view.changes(entity="mara")) == [("06-01", "began", "", "leads the harbour")]
    ben = memory.as_author(Author("ben", user="ben"))
    passage = memory.timeline("mara", user="mara").entries[0].assertion
    calls: list[Any] = [
        lambda: ben.timeline("mara", user="mara"),
        lambda: ben.profile("mara"),
        lambda: ben.changes(user="mara"),
        lambda: ben.provenance(passage),
        lambda: ben.provenance(passage.passage.id, user="mara"),
    ]
    for call in calls:
        with pytest.raises(Forbidden):
            call()
    with pytest.raises(NotFound):
        ben.provenance(passage.passage.id)
    guest = memory.as_author(Author("guest", labels=frozenset({"it"})))
    assert "a secret" not in guest.profile("mara").text
    assert "a secret" in memory.profile("mara").text


def test_forgetting_restores_what_was_ended(memory: Waylore) -> None:
    live(memory)
    moved = next(
        entry for entry in memory.timeline("mara", user="mara").entries if entry.assertion.fact.object == "Bergen"
    )
    memory.forget(moved.assertion.document.id, user="mara")
    assert [entry[1:3] for entry in describe(memory.timeline("Oslo", user="mara"))] == [("01-10/", ""), ("01-10/", "")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda memory: memory.timeline(""), "entity must not be empty"),
        (lambda memory: memory.timeline("x", since="2026-02-01", until="2026-01-01"), "since must not be after until"),
        (lambda memory: memory.timeline("x", limit=0), "limit must be a whole number"),
        (lambda memory: memory.changes(since="soon"), "since must be"),
        (lambda memory: memory.profile("x", budget=0), "budget must be a whole number"),
        (lambda memory: memory.provenance("x", around=-1), "around must be a whole number"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, call: Any, message: str) -> None:
    with Waylore.open(tmp_path / "views.waylore") as memory, pytest.raises(ArgumentError, match=message):
        call(memory)


def test_views_have_async_twins(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "views.waylore", clock=lambda: NOW) as memory:
        live(memory)

        async def run() -> list[Any]:
            return [
                await memory.atimeline("mara", user="mara"),
                await memory.aprofile("mara"),
                await memory.achanges(user="mara"),
            ]

        assert asyncio.run(run()) == [
            memory.timeline("mara", user="mara"),
            memory.profile("mara"),
            memory.changes(user="mara"),
        ]


STATEMENTS = st.lists(
    st.tuples(
        st.sampled_from(["lives_in", "plays", "not plays", "not lives_in", "likes", "works_at", "sails"]),
        st.sampled_from(["Oslo", "Bergen", "chess"]),
        st.integers(1, 28),
        st.sampled_from(["conversation", "file", "user_edit"]),
        st.booleans(),
    ),
    max_size=10,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(statements=STATEMENTS)
def test_profile_shows_what_facts_say(tmp_path: Path, statements: list[Any]) -> None:
    """What `profile` shows equals the facts that hold now, and the timeline agrees on what competes."""
    with Waylore.open(
        tmp_path / "equal.waylore", collection=f"c{abs(hash(str(statements)))}", clock=lambda: NOW
    ) as memory:
        for predicate, value, day, source, is_later in statements:
            month = 9 if is_later else 5
            fact = {
                "subject": "mara",
                "predicate": predicate,
                "object": value,
                "valid_from": f"2026-{month:02}-{day:02}",
            }
            memory.add_facts([fact], user="mara", source=source, at=f"2026-05-{day:02}")
        held = {(fact.predicate, fact.object) for fact in memory.facts("mara", as_of=NOW, user="mara")}
        shown = [each.fact for line in memory.profile("mara", budget=10_000).lines for each in line.assertions]
        assert sorted((fact.predicate, fact.object) for fact in shown) == sorted(held)
        told = {
            (entry.assertion.fact.predicate, entry.assertion.fact.object)
            for entry in memory.timeline("mara", user="mara").entries
            if any((start or NOW) <= NOW and (end is None or end > NOW) for start, end in entry.periods)
        }
        assert {pair for pair in told if not pair[0].startswith("not ")} == {
            pair for pair in held if not pair[0].startswith("not ")
        }
