"""Sentences are cut at their ends, and markup is removed from them while the author's marks are kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.extractors.markup import (
    _SENTENCES,
    _TITLES,
    find_references,
    read_marks,
    read_sentences,
    remove_blocks,
    split_sentences,
    use_references,
)


def list_marks(text: str) -> list[tuple[str, str, str]]:
    read = read_marks(text)
    return [(mark.kind, read.text[mark.start : mark.end], mark.target) for mark in read.marks]


def test_initials_and_titles_do_not_end_sentences() -> None:
    text = "Mr. J. R. Smith left. He saw the U.S. Navy!  (It was late.) 他来了。他走了。"
    found = ("Mr. J. R. Smith left.", "He saw the U.S. Navy!", "(It was late.)", "他来了。", "他走了。")
    assert split_sentences(text) == found


def test_list_items_and_headings_are_sentences() -> None:
    assert split_sentences("# Plan\n\n- first\n- second line\n  goes on\n") == (
        "Plan",
        "first",
        "second line goes on",
    )


@given(st.text(alphabet="aB.!?。！ \n\"'”)]-*#(“Dr5", max_size=60))
def test_fast_pattern_cuts_where_the_plain_one_does(text: str) -> None:
    """The plain pattern looks back at every character, which is ten times slower."""
    unfinished = "".join(rf"(?<!\b{word})" for word in ["[A-Z]", *_TITLES.split(), "vs", "No", "Vol"])
    plain = (
        rf"(?:{unfinished}\.|[!?])[\"'”’)\]]*\s+(?=[\"'“‘`(\[]*[^\W_a-z])|\n\s*\n|\n(?=\s*[-*+#>|])",
        r"(?<=[。！？])",  # apart, because an empty match is lost where another one begins
    )
    cuts = {match.end() for pattern in plain for match in re.finditer(pattern, text)} - {len(text)}
    assert {match.end() for match in _SENTENCES.finditer(text)} - {len(text)} == cuts


@pytest.mark.parametrize(
    ("text", "shown", "marks"),
    [
        ("Run `pip` in **Bash**.", "Run pip in Bash.", [("code", "pip", ""), ("strong", "Bash", "")]),
        ("Use ``a_b`` or :pep:`508`.", "Use a_b or PEP 508.", [("code", "a_b", ""), ("role", "PEP 508", "pep")]),
        ("{ref}`the hub <hub>` runs", "the hub runs", [("role", "the hub", "ref")]),
        ("See [`x`](a(b).md) now", "See x now", [("link", "x", "a(b).md"), ("code", "x", "")]),
        ("See `Conda <https://conda.io>`_.", "See Conda.", [("link", "Conda", "https://conda.io")]),
        ("See [[Login#top|this page]].", "See this page.", [("link", "this page", "[[Login]]")]),
        ("![a plan](plan.png) <b>Go</b> <https://a.org>", "   Go   ", []),
        ("at https://a.org/(b)?c=%20AND%20d", "at  ", []),
        ("2 * 3 * 4 and a_b", "2 * 3 * 4 and a_b", []),
    ],
)
def test_marks_are_kept_without_their_syntax(text: str, shown: str, marks: list[tuple[str, str, str]]) -> None:
    assert read_marks(text).text == shown
    assert list_marks(text) == marks


@given(st.text(alphabet="a B`*_[]()<>:{}!~.", max_size=80))
def test_marks_lie_inside_the_text(text: str) -> None:
    read = read_marks(text)
    assert all(0 <= mark.start <= mark.end <= len(read.text) for mark in read.marks)
    assert len(read.blank_code()) == len(read.text)


def test_headings_and_items_are_recognised() -> None:
    found = read_sentences("# Plan\n\n- first\n\n2. second\n\nSetup\n\nProse.", frozenset(["Setup"]))
    assert [(s.text, s.kind) for s in found] == [
        ("Plan", "heading"),
        ("first", "item"),
        ("second", "item"),
        ("Setup", "heading"),
        ("Prose.", "sentence"),
    ]


def test_blocks_of_code_and_comments_are_removed() -> None:
    prose, code = remove_blocks("A.\n\n```sh\nexport KEY_A=1\n```\n\n<!-- no\nname --> {% raw %}B.\n\n~~~\nopen\n")
    assert prose.split() == ["A.", "B."]
    assert code.split() == ["export", "KEY_A=1", "open"]


def test_reference_links_get_their_addresses() -> None:
    text = "See [Peribolos], [the owners][OWNERS] and [other].\n\n[peribolos]: tools/peribolos\n[owners]: OWNERS"
    references = find_references(text)
    assert references == {"peribolos": "tools/peribolos", "owners": "OWNERS"}
    assert use_references(text, references).split("\n")[0] == (
        "See [Peribolos](tools/peribolos), [the owners](OWNERS) and [other]."
    )
