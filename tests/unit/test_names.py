"""Test keys of names, as tables: names that share a key, names that do not, and short forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.names import (
    get_subject,
    is_section,
    is_short,
    is_short_for,
    keys,
    list_matching_keys,
    split_significant_words,
    strip_number,
)


def find_shared_kinds(one: str, other: str) -> set[str]:
    """Return the kinds of the keys that two names share."""
    return {key.split(":")[0] for key in set(list_matching_keys(one)) & set(keys(other))}


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        ("World Health Organization", "The World Health Organization", {"words"}),
        ("Ada Byron", "Byron, Ada", {"words"}),
        ("Dr. Jane Goodall", "Jane Goodall", {"words"}),
        ("Acme, Inc.", "Acme Corporation", {"words"}),
        ("Québec", "Quebec", {"words"}),
        ("Academy Award", "Academy Awards", {"words"}),
        ("Московский университет", "Московского университета", {"words"}),
        ("東京大学", "東京大学", {"words"}),
        ("Treaty of Versailles", "Versailles Treaty", {"words"}),
        ("World Health Organization", "WHO", {"short"}),
        ("W.H.O.", "World Health Organization", {"initials"}),
        ("J. R. R. Tolkien", "John Tolkien", {"person"}),
        ("Ludwig van Beethoven", "L. van Beethoven", {"brief"}),
        ("A. Byron", "Ada Byron", {"person"}),
    ],
)
def test_similar_names_share_keys(one: str, other: str, kinds: set[str]) -> None:
    assert find_shared_kinds(one, other) == kinds


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Albert", "Albert I"),
        ("Vitamin A", "Vitamin"),
        ("his country", "her country"),
        ("Mercury", "Mercury (planet)"),
        ("John Smith", "Jane Smith"),
        ("Byron", "A. Byron"),
        ("World Health Organization", "Wild Horse Ostrich"),
        ("Entity Number 5", "Entity Number 6"),
        ("東京大学", "京都大学"),
        ("йод", "иод"),
    ],
)
def test_names_of_different_things_share_no_key(one: str, other: str) -> None:
    assert find_shared_kinds(one, other) == set()


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("WHO", "World Health Organization"),
        ("UN", "United Nations"),
        ("DoD", "Department of Defense"),
        ("USA", "United States of America"),
        ("LOTR", "The Lord of the Rings"),
        ("DNA", "Deoxyribonucleic acid"),
        ("TV", "Television"),
        ("GPUs", "graphics processing units"),
        ("LSTM", "Long Short-Term Memory"),
        ("AT&T", "American Telephone and Telegraph"),
        ("IBM", "International Business Machines Corporation"),
        ("UNESCO", "United Nations Educational, Scientific and Cultural Organization"),
        ("МГУ", "Московский государственный университет"),
        ("TUM", "Technische Universität München"),
        ("OTAN", "Organisation du traité de l'Atlantique nord"),
    ],
)
def test_initials_are_short_for_a_name(short: str, full: str) -> None:
    assert is_short_for(short, full)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("FBI", "Central Intelligence Agency"),
        ("UK", "United Nations"),
        ("WHO", "WHO"),
        ("WHO", "World Health"),
        ("France", "Francophone Republic And Nation Called Earth"),
        ("NOTE", "Paris"),
        ("who", "World Health Organization"),
        ("", "World"),
        ("WHO", ""),
    ],
)
def test_other_initials_are_not_short_for_a_name(short: str, full: str) -> None:
    assert not is_short_for(short, full)


@pytest.mark.parametrize(("name", "short"), [("WHO", True), ("W.H.O.", True), ("PhD", True), ("3M", False)])
def test_short_form_is_one_word_of_capitals(name: str, short: bool) -> None:
    assert is_short(name) is short
    assert not is_short(f"{name} and more")


@given(st.text(max_size=60))
def test_any_text_has_few_keys_and_matches_itself(name: str) -> None:
    assert len(keys(name)) <= 4
    assert {key for key in keys(name) if key.startswith("words:")} <= set(list_matching_keys(name))
    assert is_short_for(name, name) is False
    split_significant_words(name)


@given(st.text(max_size=12), st.text(max_size=200))
def test_checking_initials_terminates(short: str, full: str) -> None:
    assert is_short_for(short, full) in {True, False}


@pytest.mark.parametrize(
    ("heading", "subject"),
    [
        ("A.8. Curlew", "Curlew"),
        ("9.2. Remote Login", "Remote Login"),
        ("Chapter 12. Boats and Ports", "Boats and Ports"),
        ("Part IV: Tides", "Tides"),
        ("Section 9.2.2, “Using Ropes”", "Using Ropes"),
        ("Chapitre 2, Gestion des ports", "Gestion des ports"),
        ("Section 10.1, « Cordages »", "Cordages"),
        ("Mercury (planet)", "Mercury"),
        ("PEP 8: Style Guide", "PEP 8"),
    ],
)
def test_subject_has_no_section_number(heading: str, subject: str) -> None:
    assert get_subject(heading) == subject


@pytest.mark.parametrize(
    "name", ["1. FC Köln", "2.4.0", "3.1.1 - 2023", "Part of the plan", "Part time: job", "8 Mile"]
)
def test_other_numbers_belong_to_a_name(name: str) -> None:
    assert strip_number(name) == name


@pytest.mark.parametrize(
    ("name", "is_number"),
    [("Chapter 2", True), ("Section", True), ("B.1.5", True), ("X.509", False), ("Part Two", False)],
)
def test_number_of_section_is_no_name(name: str, is_number: bool) -> None:
    assert is_section(name) is is_number


@given(st.text())
def test_every_title_names_something(title: str) -> None:
    assert bool(get_subject(title)) is bool(title.strip())
