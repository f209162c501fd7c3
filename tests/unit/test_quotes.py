"""Facts that only name two things together are shown by the words of their statement between the names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.types.knowledge import Fact
from waylore.types.quotes import MAX_QUOTED_WORDS, quote_between
from waylore.types.search import GraphPath, Step


def make_fact(statement: str, subject: str = "Login", object_: str = "Sessions", predicate: str = "") -> Fact:
    return Fact("f", "s", subject, predicate, object_, "o", statement=statement)


@pytest.mark.parametrize(
    ("statement", "words", "is_in_order"),
    [
        ("Login asks the Sessions for a token.", "asks the", True),
        ("Sessions is used by Login.", "is used by", False),
        ("Every user is held by Sessions.", "Every user is held by", True),
        ("Login: it waits, then calls sessions.", "it waits, then calls", True),
        ("Login, Sessions and Vault.", "", True),
        ("Nothing is named.", "", True),
        ("", "", True),
    ],
)
def test_words_between_two_names_are_quoted(statement: str, words: str, is_in_order: bool) -> None:
    assert quote_between(statement, "Login", "Sessions") == (words, is_in_order)


def test_names_are_found_as_whole_words_and_not_inside_each_other() -> None:
    assert quote_between("Login logs Log files.", "Login", "Log") == ("logs", True)
    assert quote_between("The New York Times.", "New York", "New York Times") == ("", True)
    assert quote_between("C++ beats c.", "C++", "C")[0] == ""


def test_middle_of_many_words_is_left_out() -> None:
    words, _ = quote_between(f"A {' '.join(map(str, range(30)))} B", "A", "B")
    assert words == "0 1 2 3 4 5 … 24 25 26 27 28 29"
    assert len(words.split()) == MAX_QUOTED_WORDS + 1


@pytest.mark.parametrize(
    ("fact", "text", "forward", "backward"),
    [
        (make_fact("Login asks Sessions."), "Login —“asks”→ Sessions", "—“asks”→ Sessions", "←“asks”— Login"),
        (make_fact("Sessions serves Login."), "Login ←“serves”— Sessions", "←“serves”— Sessions", "—“serves”→ Login"),
        (make_fact("Login, Sessions."), "Login —names→ Sessions", "—names→ Sessions", "←names— Login"),
        (make_fact(""), "Login —names→ Sessions", "—names→ Sessions", "←names— Login"),
        (
            make_fact("Sessions serves Login.", predicate="asks"),
            "Login —asks→ Sessions",
            "—asks→ Sessions",
            "←asks— Login",
        ),
    ],
    ids=["quoted", "quoted backwards", "named", "link", "typed"],
)
def test_arrow_shows_how_the_words_are_read(fact: Fact, text: str, forward: str, backward: str) -> None:
    assert str(fact) == text
    assert str(Step(fact)) == forward
    assert str(Step(fact, is_forward=False)) == backward


def test_step_tells_its_kind() -> None:
    facts = [make_fact("Login asks Sessions."), make_fact("Login, Sessions."), make_fact("", predicate="asks")]
    steps = [Step(fact) for fact in facts]
    assert [(step.kind, step.words) for step in steps] == [("quoted", "asks"), ("named", ""), ("typed", "")]
    assert str(GraphPath("Login", tuple(steps[:1]))) == "Login —“asks”→ Sessions → this passage"


@given(st.text(), st.text(), st.text())
def test_any_statement_can_be_quoted(statement: str, one: str, other: str) -> None:
    words, _ = quote_between(statement, one, other)
    assert len(words.split()) <= MAX_QUOTED_WORDS + 1
    assert "\n" not in words
