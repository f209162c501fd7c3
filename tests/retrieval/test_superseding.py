"""Test what is superseded: it stands below what holds instead, says so, and stays findable with `as_of`."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import NewFact, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.order import KEPT_SHARE, arrange
from waylore.types.search import SearchResult

EMBEDDER = HashingEmbedder(64, quiet=True)
JANUARY, MARCH, JUNE, AUGUST = (datetime(2026, month, 10, tzinfo=UTC) for month in (1, 3, 6, 8))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=EMBEDDER, clock=lambda: AUGUST) as opened:
        yield opened


def say(memory: Waylore, text: str, at: datetime, *facts: tuple[str, str, str] | NewFact, role: str = "user") -> None:
    memory.remember([{"role": role, "content": text}], user="mara", session="chat", at=at, facts=facts)


def ask(memory: Waylore, question: str, as_of: datetime | None = None, top_k: int = 10) -> SearchResult:
    return memory.search(question, user="mara", method="conversation", as_of=as_of, top_k=top_k)


def list_marks(result: SearchResult) -> list[tuple[str, str]]:
    """Return the texts of hits, each with how it was superseded."""
    return [(hit.text, hit.superseded_by.kind if hit.superseded_by else "") for hit in result]


def test_newer_statement_stands_above_what_it_changed(memory: Waylore) -> None:
    say(memory, "I live in Oslo, where I live I like to live.", JANUARY, ("user", "lives_in", "Oslo"))
    say(memory, "The flat in Bergen is ours.", MARCH, ("user", "lives_in", "Bergen"))
    [new, old] = ask(memory, "Where do I live?").hits
    assert (new.text, new.superseded_by) == ("The flat in Bergen is ours.", None)
    assert old.superseded_by is not None
    assert old.superseded_by.passage_id == new.id
    assert (old.superseded_by.kind, old.superseded_by.since, old.superseded_by.text) == ("changed", MARCH, new.text)
    assert "changed 2026-03-10" in old.heading
    assert old.text_with_end.endswith("(until 2026-03-10; then: The flat in Bergen is ours.)")


def test_statement_of_what_is_asked_for_is_relevant(memory: Waylore) -> None:
    say(memory, "The flat in Bergen is ours.", MARCH, ("user", "lives_in", "Bergen"))
    say(memory, "It rains again.", MARCH)
    assert ask(memory, "Where do I live?").is_relevant
    assert not ask(memory, "How high is the tower of Pisa?").is_relevant


def test_who_moves_back_is_believed(memory: Waylore) -> None:
    for place, at in (("Oslo", JANUARY), ("Bergen", MARCH), ("Oslo", JUNE)):
        say(memory, f"{at:%B}: I live in {place}.", at, ("user", "lives_in", place))
    assert list_marks(ask(memory, "Where do I live?"))[0] == ("June: I live in Oslo.", "")
    assert dict(list_marks(ask(memory, "Where do I live?")))["March: I live in Bergen."] == "changed"
    then = ask(memory, "Where do I live?", as_of=MARCH + timedelta(days=1))
    assert list_marks(then) == [("March: I live in Bergen.", ""), ("January: I live in Oslo.", "changed")]


def test_denial_ends_a_fact(memory: Waylore) -> None:
    say(memory, "I play handball on Thursdays.", JANUARY, ("user", "plays", "handball"))
    say(memory, "I play the cello.", JANUARY, ("user", "plays", "cello"))
    say(memory, "My knee hurts, that was it with sports.", MARCH, ("user", "stopped_playing", "handball"))
    marks = list_marks(ask(memory, "Do I still play handball?"))
    assert marks[0] == ("My knee hurts, that was it with sports.", "")
    assert dict(marks)["I play handball on Thursdays."] == "ended"
    assert dict(marks)["I play the cello."] == ""
    now = [str(fact) for fact in memory.facts("mara", user="mara", as_of=AUGUST)]
    assert now == ["mara —plays→ cello"]
    say(memory, "I play handball again.", JUNE, ("user", "plays", "handball"))
    assert list_marks(ask(memory, "Do I still play handball?"))[0] == ("I play handball again.", "")


def test_correction_takes_over_from_the_beginning(memory: Waylore) -> None:
    say(memory, "My birthday is on 14 March.", JANUARY, ("user", "birthday", "14 March"))
    corrected = NewFact("user", "birthday", "24 March", valid_from=JANUARY, source="conversation")
    say(memory, "Sorry, on the 24th.", MARCH, corrected)
    marks = list_marks(ask(memory, "When is my birthday?"))
    assert marks == [("Sorry, on the 24th.", ""), ("My birthday is on 14 March.", "corrected")]
    assert list_marks(ask(memory, "When is my birthday?", as_of=JANUARY + timedelta(days=1))) == [
        ("My birthday is on 14 March.", "")
    ]


def test_plan_stands_below_what_holds_until_it_begins(memory: Waylore) -> None:
    say(memory, "Ada goes to De Linde.", JANUARY, ("Ada", "studies_at", "De Linde"))
    later = NewFact("Ada", "studies_at", "Steiner school", valid_from=AUGUST + timedelta(days=30))
    say(memory, "Ada changes to another school, a Steiner school.", MARCH, later)
    [now, planned] = ask(memory, "Which school does Ada go to?").hits
    assert now.text == "Ada goes to De Linde."
    assert (now.superseded_by, now.is_planned) == (None, False)
    assert (planned.superseded_by, planned.is_planned) == (None, True)
    assert "planned" in planned.heading


def test_own_statement_outranks_a_file(memory: Waylore) -> None:
    """T46: about a person, that person's own statement ends all others but edits of the user."""
    say(memory, "I work at Havblikk.", JANUARY, ("user", "works_at", "Havblikk"))
    memory.add("Staff list.", at=MARCH, user="mara", facts=[("mara", "works_at", "Fjordline")])
    now = [fact.object for fact in memory.facts("mara", user="mara", as_of=AUGUST)]
    assert now == ["Havblikk"]
    edit = NewFact("mara", "works_at", "Skagen", source="user_edit", valid_from=JUNE)
    memory.add_facts([edit], user="mara", source="user_edit")
    assert [fact.object for fact in memory.facts("mara", user="mara", as_of=AUGUST)] == ["Skagen"]


def test_rumour_of_an_agent_never_ends_what_was_confirmed(memory: Waylore) -> None:
    say(memory, "I live in Oslo.", JANUARY, ("user", "lives_in", "Oslo"))
    rumour = NewFact("user", "lives_in", "Bergen", status="staged", source="conversation")
    say(memory, "You seem to live in Bergen.", MARCH, rumour, role="assistant")
    assert dict(list_marks(ask(memory, "Where do I live?")))["I live in Oslo."] == ""


def test_two_of_one_name_stay_two(memory: Waylore) -> None:
    say(memory, "My colleague Tom lives in Berlin.", JANUARY, ("Tom (colleague of mara)", "lives_in", "Berlin"))
    say(memory, "My brother Tom lives in Madrid.", MARCH, ("Tom (brother of mara)", "lives_in", "Madrid"))
    for kin, place in (("colleague", "Berlin"), ("brother", "Madrid")):
        best = ask(memory, f"Where does my {kin} Tom live?").hits[0]
        assert place in best.text
        assert best.superseded_by is None


def test_question_without_relation_puts_what_is_over_last(memory: Waylore) -> None:
    say(memory, "The trip in May goes to Lisbon.", JANUARY, ("user", "trip_to", "Lisbon"))
    say(memory, "Porto it is.", MARCH, ("user", "trip_to", "Porto"))
    say(memory, "In May we paint the kitchen.", JUNE)
    marks = list_marks(ask(memory, "What is on in May?"))
    assert marks[-1] == ("The trip in May goes to Lisbon.", "changed")


def test_facts_without_a_time_are_not_superseded(memory: Waylore) -> None:
    memory.add("Ann works at Acme.", facts=[("Ann", "works_at", "Acme")])
    memory.add("Ann works at Beta.", facts=[("Ann", "works_at", "Beta")])
    assert {hit.superseded_by for hit in memory.search("Where does Ann work?")} == {None}
    assert len(memory.facts("Ann")) == 2


def test_dated_notes_supersede_each_other(memory: Waylore) -> None:
    for at, day in ((JANUARY, "27 March"), (MARCH, "1 April")):
        memory.add(f"Minutes of {at:%B}: the deadline is {day}.", at=at, facts=[("release", "deadline", day)])
    [new, old] = memory.search("What is the deadline of the release?", method="chain").hits
    assert "1 April" in new.text
    assert old.superseded_by is not None


@given(st.lists(st.sampled_from(["Oslo", "Bergen", "Rome"]), min_size=1, max_size=6), st.integers(1, 6))
def test_order_does_not_depend_on_the_number_of_hits(places: list[str], top_k: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Waylore.open(Path(folder) / "m", clock=lambda: AUGUST) as memory:
        for number, place in enumerate(places):
            at = JANUARY + timedelta(days=number)
            say(memory, f"On day {number} I live in {place}.", at, ("user", "lives_in", place))
        every = [hit.id for hit in ask(memory, "Where do I live?", top_k=10)]
        few = ask(memory, "Where do I live?", top_k=top_k)
        assert [hit.id for hit in few] == every[:top_k]
        assert places[-1] in few.hits[0].text
        assert few.hits[0].superseded_by is None


@given(st.permutations(range(9)), st.dictionaries(st.integers(0, 8), st.integers(0, 8), max_size=4))
def test_best_of_hybrid_search_stay_after_superseding(order: list[int], above: dict[int, int]) -> None:
    """Promise 1: the first n hits have the best n // 3 of hybrid search, and what supersedes one of them above it."""
    hybrid = [FusedCandidate(f"{n}", 1.0 - n / 10, ()) for n in range(9)]
    superseders = {f"{below}": f"{one}" for below, one in above.items() if below != one and one not in above}
    arranged = [each.id for each in arrange(hybrid, [hybrid[n] for n in order], superseders=superseders)]
    assert sorted(arranged) == [f"{n}" for n in range(9)]
    for n in range(1, 10):
        assert {f"{best}" for best in range(n // KEPT_SHARE)} <= set(arranged[:n])
