"""Test the days that texts speak of.

`spans.jsonl` has phrases with the days that a person means by them. `missed` marks phrases that the rules misread.
"""

import json
import time
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.spans import Span, asks_when, find_spans, tells_time
from waylore.spans.language import TimeRule, load_language
from waylore.spans.meanings import MEANINGS, Expression

PHRASES = [json.loads(line) for line in Path(__file__).with_name("spans.jsonl").read_text("utf-8").splitlines()]
MISREAD = pytest.mark.xfail(reason="the rules misread this phrase")
ENGLISH = load_language("en")
WORDS = """on in the of from to between and a an two 3 9th 31 2024 29 February May march last next this ago week weeks
 months year years weekend Monday fridays since until by yesterday tomorrow was will ? . , - – 2026-04-30 31/12/2025
 end early mid summer Christmas before after first past few 999 0 00 decades hours""".split()
TEXTS = st.text() | st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=12).map(" ".join)
TIMES = st.dates() | st.datetimes() | st.sampled_from([date.min, date.max, date(2024, 2, 29)])


# -- phrases -------------------------------------------------------------------------------------------


def read_time(text: str) -> date:
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)


@pytest.mark.parametrize(
    "phrase",
    [pytest.param(phrase, id=phrase["text"], marks=MISREAD if "missed" in phrase else ()) for phrase in PHRASES],
)
def test_phrase_means_these_days(phrase: dict[str, Any]) -> None:
    spans = find_spans(phrase["text"], read_time(phrase["at"]))
    assert [[span.first.isoformat(), span.last.isoformat()] for span in spans] == phrase["spans"]


@pytest.mark.parametrize("text", [phrase["text"] for phrase in PHRASES if phrase["spans"]])
def test_phrase_with_days_tells_a_time(text: str) -> None:
    assert tells_time(text)


def test_words_are_those_of_the_text() -> None:
    text = "On Friday\nnight we met, and New  Year's Eve 2024 was quiet."
    spans = find_spans(text, date(2026, 11, 17))
    assert [span.words for span in spans] == ["On Friday\nnight", "New  Year's Eve 2024"]


def test_verb_of_another_paragraph_does_not_count() -> None:
    [span] = find_spans("we went home\n \non Saturday", date(2026, 5, 13))
    assert span.first == date(2026, 5, 16)


def test_day_of_the_clock_counts() -> None:
    assert find_spans("today", datetime(2026, 5, 13, 23, 59, tzinfo=UTC)) == find_spans("today", date(2026, 5, 13))


def test_days_from_is_the_distance_to_the_nearest_day() -> None:
    span = Span(date(2026, 5, 4), date(2026, 5, 10), "last week")
    days = [date(2026, 5, 1), date(2026, 5, 4), datetime(2026, 5, 10, 23), date(2026, 5, 13)]
    assert [span.days_from(day) for day in days] == [3, 0, 0, 3]


def list_examples() -> list[list[str]]:
    page = Path(__file__).parents[2] / "docs" / "explanation" / "spans.md"
    rows = [line.strip("| ").split(" | ") for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [row[:3] for row in rows[1:]]


@pytest.mark.parametrize(("text", "first", "last"), list_examples())
def test_examples_of_the_page_are_right(text: str, first: str, last: str) -> None:
    spans = find_spans(text, date(2026, 5, 13))
    found = [(span.first.isoformat(), span.last.isoformat()) for span in spans]
    assert (found or [("none", "none")]) == [(first, last)]


# -- questions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "When did Ann move to Oslo?",
        "when's the concert",
        "What day was the exam?",
        "Which year did we marry?",
        "In which month does the lease end?",
        "How long ago did I stop smoking?",
        "How long have I had the car?",
        "Do you remember when I bought the lamp?",
        "Since when does she work there?",
        "How many weeks have passed since the operation?",
        "On what date is the hearing?",
    ],
)
def test_question_asks_when(text: str) -> None:
    assert asks_when(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where did Ann move?",
        "When I was small we had a dog.",
        "Whenever it rains, the cellar floods.",
        "What did I do in February 2026?",
        "How many weeks of leave do I have?",
        "Who called yesterday?",
        "",
    ],
)
def test_text_does_not_ask_when(text: str) -> None:
    assert not asks_when(text)


@pytest.mark.parametrize(
    "text",
    ["Recently I began to knit.", "The other day I lost my keys.", "Many years ago.", "On Fridays.", "Due 05/03/2025."],
)
def test_vague_text_tells_a_time_without_days(text: str) -> None:
    assert tells_time(text)
    assert find_spans(text, date(2026, 5, 13)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "May I borrow it?",
        "My door code is 4471.",
        "It costs 20 euros.",
        "They march on.",
        "He was last in the queue.",
        "",
    ],
)
def test_text_tells_no_time(text: str) -> None:
    assert not tells_time(text)


# -- promises ------------------------------------------------------------------------------------------


@given(TEXTS, TIMES)
def test_spans_of_any_text_are_in_its_order(text: str, at: date) -> None:
    spans, place = find_spans(text, at), 0
    for span in spans:
        assert span.first <= span.last
        place = text.index(span.words, place) + len(span.words)
    assert tells_time(text) or not spans
    assert asks_when(text) in {True, False}


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 6))
def test_weekday_is_in_the_week_before_or_after(at: date, weekday: int) -> None:
    name = (date(2024, 1, 1) + timedelta(weekday)).strftime("%A")
    texts = (f"We met on {name}.", f"We will meet on {name}.", f"Next {name} we meet.")
    (before,), (after,), (following,) = (find_spans(text, at) for text in texts)
    assert {span.first.weekday() for span in (before, after, following)} == {weekday}
    assert 1 <= (at - before.first).days <= 7
    assert 1 <= (after.first - at).days <= 7
    assert (following.first - at).days == 7 - at.weekday() + weekday


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 99))
def test_distances_are_as_exact_as_their_unit(at: date, number: int) -> None:
    texts = (f"It was {number} {unit} ago." for unit in ("days", "months", "years"))
    (days,), (months,), (years,) = (find_spans(text, at) for text in texts)
    assert days.first == days.last == at - timedelta(number)
    assert (months.first.day, (months.last + timedelta(1)).day) == (1, 1)
    assert (at.year - months.first.year) * 12 + at.month - months.first.month == number
    assert (years.first, years.last) == (date(at.year - number, 1, 1), date(at.year - number, 12, 31))


def measure_seconds(text: str) -> float:
    before = time.process_time()
    find_spans(text, date(2026, 5, 13))
    tells_time(text)
    asks_when(text)
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "characters"),
    [
        ("on ", 100_000),
        ("1", 100_000),
        ("1 ", 100_000),
        (" ", 100_000),
        ("\n", 100_000),
        ("how many days ", 40_000),
        ("on the week ", 20_000),
        ("from March to ", 20_000),
        ("May 3 ", 20_000),
        ("we met on Saturday, ", 20_000),
        ("Who came since Monday? ", 20_000),
        ("when was ", 40_000),
    ],
)
def test_cost_is_linear_in_the_text(words: str, characters: int) -> None:
    """Four times as much text may take six times as long in one of five rounds; other processes disturb some."""
    longer, shorter = ((words * characters)[:length] for length in (characters, characters // 4))
    measure_seconds(shorter)
    assert any(measure_seconds(longer) < 6 * measure_seconds(shorter) + 0.02 for _ in range(5))


# -- tables --------------------------------------------------------------------------------------------


def list_rules() -> list[TimeRule]:
    _, rules = ENGLISH._rules
    return list(rules.values())


def test_rules_of_the_table_have_meanings() -> None:
    assert {rule.meaning for rule in list_rules()} == {"nothing", *MEANINGS}


def test_rules_of_the_table_have_values_of_an_expression() -> None:
    known = {field.name for field in fields(Expression)}
    used = {name for rule in list_rules() for name in (*rule.values, *(name for name, _ in rule.groups.values()))}
    assert used <= known
