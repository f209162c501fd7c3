"""Test what the rules read in turns: of whom, which relation, and what a turn denies, corrects, or only asks."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Waylore
from waylore.indexing.memory.statements import corrects, find_statements

SAID = datetime(2026, 4, 2, 12, tzinfo=UTC)


def read(text: str, speaker: str = "mara") -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in find_statements(text, speaker, SAID).facts]


STATED = {
    "I live in Oslo and I work at Fjordline as a planner.": [
        ("mara", "lives in", "Oslo"),
        ("mara", "works at", "Fjordline"),
        ("mara", "role", "planner"),
    ],
    "We have just moved to New York.": [("mara", "lives in", "New York")],
    "We moved back to Ghent.": [("mara", "lives in", "Ghent")],
    "Our new flat is in Bergen, on Marken.": [("mara", "lives in", "Bergen")],
    "Piet lives in Leuven, ten minutes from the station.": [("Piet", "lives in", "Leuven")],
    "I have left Fjordline.": [("mara", "not works at", "Fjordline")],
    "I'm head of planning at Havblikk.": [
        ("mara", "works at", "Havblikk"),
        ("mara", "role", "head of planning"),
    ],
    "My birthday is on 14 March.": [("mara", "birthday", "14 March")],
    "Ada's birthday is on 9 February.": [("Ada", "birthday", "9 February")],
    "My favourite drink is green tea now.": [("mara", "favourite drink", "green tea")],
    "Coffee is my favorite drink.": [("mara", "favourite drink", "Coffee")],
    "You can text me on 555 0123.": [("mara", "phone number", "555 0123")],
    "My email address is mara@havblikk.example.": [("mara", "email", "mara@havblikk.example")],
    "I play the cello and I play handball on Thursdays.": [("mara", "plays", "cello"), ("mara", "plays", "handball")],
    "I no longer play handball, my knee hurts.": [("mara", "not plays", "handball")],
    "I am allergic to peanuts.": [("mara", "allergic to", "peanuts")],
    "I am no longer allergic to kiwi.": [("mara", "not allergic to", "kiwi")],
    "I do not eat meat any more.": [("mara", "diet", "no meat")],
    "My doctor is Dr. Lund.": [("mara", "doctor", "Dr. Lund")],
    "My sister Ingrid is a vet.": [
        ("Ingrid (sister of mara)", "sister of", "mara"),
        ("Ingrid (sister of mara)", "profession", "vet"),
    ],
    "My brother Tom lives in Madrid.": [
        ("Tom (brother of mara)", "brother of", "mara"),
        ("Tom (brother of mara)", "lives in", "Madrid"),
    ],
    "My aunt has moved to Delft.": [("aunt of mara", "lives in", "Delft")],
    "The trip goes to Porto instead, in September.": [("mara", "trip to", "Porto")],
    "Kofi is responsible for the billing service.": [("billing service", "owner", "Kofi")],
    "Ledgerleaf 5.0 is here.": [("Ledgerleaf", "version", "5.0")],
}
SILENT = [
    "Do I live in Oslo?",
    "I would live in Rome if I could.",
    "I am staying with my parents in Oslo this week.",
    "Maybe we move to Porto.",
    "I hope to work at Havblikk.",
    "On Friday I see Dr. Lund about my knee.",
    "This works at last.",
    "He moved to the window.",
    "It lives in the cellar.",
]


@pytest.mark.parametrize("text", STATED)
def test_statements_are_read(text: str) -> None:
    assert read(text) == STATED[text]


@pytest.mark.parametrize("text", SILENT)
def test_questions_wishes_and_visits_state_nothing(text: str) -> None:
    assert read(text) == []


def test_beginning_is_what_the_sentence_says() -> None:
    [work, _] = find_statements("Since 1 April I am head of planning at Havblikk.", "mara", SAID).facts
    assert work.valid_from == datetime(2026, 4, 1, tzinfo=UTC)
    [home] = find_statements("I live in Oslo.", "mara", SAID).facts
    assert home.valid_from is None


def test_corrections_are_recognised() -> None:
    assert corrects("Sorry, I misspoke: my birthday is on 24 March.")
    assert not corrects("My birthday is on 24 March.")


@given(st.text(max_size=400), st.sampled_from(["", "mara", "Ann Lee"]))
def test_any_text_is_read(text: str, speaker: str) -> None:
    for fact in find_statements(text, speaker or "user", SAID).facts:
        assert fact.subject
        assert fact.predicate
        assert fact.object


def test_corrected_fact_begins_with_what_it_corrects(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore", clock=lambda: SAID) as memory:
        memory.remember("My birthday is on 14 March.", user="mara", at="2026-01-05")
        memory.remember("Sorry, I misspoke: my birthday is on 24 March.", user="mara", at="2026-02-02")
        [held] = memory.facts("mara", user="mara", as_of="2026-02-03")
        assert (held.object, held.valid_from) == ("24 March", datetime(2026, 1, 5, tzinfo=UTC))
        [before] = memory.facts("mara", user="mara", as_of="2026-01-06")
        assert before.object == "14 March"


def test_bare_name_is_the_one_person_of_that_name(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore", clock=lambda: SAID) as memory:
        memory.remember("My brother Tom lives in Madrid.", user="mara", at="2026-01-05")
        memory.remember("Tom has moved to Rome.", user="mara", at="2026-02-02")
        facts = {fact.object: fact for fact in memory.facts("Tom", user="mara") if fact.predicate == "lives in"}
        assert facts["Rome"].subject == "Tom (brother of mara)"
        assert facts["Madrid"].valid_to == datetime(2026, 2, 2, tzinfo=UTC)


def test_what_an_assistant_says_states_nothing(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.remember([{"role": "assistant", "content": "I live in Oslo."}], user="mara")
        assert memory.facts("mara", user="mara") == ()
        assert memory.facts("assistant", user="mara") == ()
