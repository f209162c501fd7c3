"""Passages are pieces of a text, in order and of bounded length, that lose nothing but white space."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.indexing.chunking import LONGEST, pieces

TEXTS = st.text() | st.text(alphabet="ab. !\n\t。？\u00a0é", max_size=80)


def cut(text: str, longest: int) -> list[str]:
    return [text[start:end] for start, end in pieces(text, longest=longest)]


@given(TEXTS, st.integers(1, 30))
def test_pieces_are_in_order_and_bounded_and_lose_nothing(text: str, longest: int) -> None:
    found = pieces(text, longest=longest)
    last = 0
    for start, end in found:
        assert last <= start < end <= len(text)
        assert end - start <= longest
        assert text[start:end].strip() == text[start:end]
        last = end
    assert "".join("".join(text[start:end].split()) for start, end in found) == "".join(text.split())


@given(TEXTS, st.integers(1, 30))
def test_neighbours_that_fit_together_are_together(text: str, longest: int) -> None:
    found = pieces(text, longest=longest)
    assert all(later[1] - earlier[0] > longest for earlier, later in pairwise(found))


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("One two. Three.\n\nFour five.", 20, ["One two. Three.", "Four five."]),
        ("One two. Three.\n \t\nFour five.", 20, ["One two. Three.", "Four five."]),
        ("One two! Three four? Five.", 14, ["One two!", "Three four?", "Five."]),
        ("One two\nthree four", 10, ["One two", "three four"]),
        ("一二。三四五六！七八九？十", 5, ["一二。", "三四五六！", "七八九？十"]),
        ("a incomprehensibilities b", 8, ["a", "incompre", "hensibil", "ities b"]),
        ("一二三四五六七", 3, ["一二三", "四五六", "七"]),
        ("Version 1.5 is out. Yes.", 19, ["Version 1.5 is out.", "Yes."]),
        (" \n short \n ", 10, ["short"]),
        ("one\n\ntwo", 10, ["one\n\ntwo"]),
        (" \n\n ", 10, []),
        ("", 10, []),
    ],
)
def test_cuts_at_paragraphs_then_sentences_then_words(text: str, longest: int, expected: list[str]) -> None:
    assert cut(text, longest) == expected


def test_paragraphs_that_fit_are_not_cut_where_their_sentences_end() -> None:
    one, other = "Aa bb. Cc dd.", "Ee. Ff gg hh ii."
    assert len(f"{one}\n\nEe.") == 18
    assert cut(f"{one}\n\n{other}", 18) == [one, other]


def test_the_ends_of_a_long_sentence_join_its_neighbours() -> None:
    assert cut("Short. One two three four five six. Short.", 16) == [
        "Short. One two",
        "three four five",
        "six. Short.",
    ]


def test_a_piece_is_as_long_as_an_embedder_reads() -> None:
    assert LONGEST == 1_200
    assert pieces("word " * 240) == [(0, 1_199)]
    assert [end - start for start, end in pieces("x" * 2_500)] == [1_200, 1_200, 100]
