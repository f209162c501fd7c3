"""Test normalised names, and the terms that questions and passages share."""

import re
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import Stemmer
from hypothesis import example, given
from hypothesis import strategies as st

from waylore import text
from waylore.text import _PIECES, _WORD, STOP_WORDS, _fold, count_pieces, normalise, split_words, terms

NAMES = st.text() | st.text(alphabet="aB1é _-+#!")
HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)


# -- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ｗａｙｌｏｒｅ", "waylore"),
        ("ﬁnal Ⅳ", "final iv"),
        ("e\u0301tude", "étude"),
        ("STRAẞE", "strasse"),
        ("  Lothair \t II.\n", "lothair ii"),
        ("O'Brien-Smith", "o brien smith"),
        ("snake_case", "snake case"),
        ("C++", "c++"),
        ("C#/F#", "c# f#"),
        ("#1 hit", "1 hit"),
        ("issue ++ #5", "issue 5"),
        ("?!", "?!"),
        ("+", "+"),
        ("🙂", "🙂"),
        (" \n", ""),
    ],
)
def test_name_is_normalised(name: str, expected: str) -> None:
    assert normalise(name) == expected


def test_symbols_of_programming_languages_are_preserved() -> None:
    assert len({normalise(name) for name in ("C", "C++", "C#", "F#")}) == 4


@given(NAMES)
@example("a_#")
def test_normalising_is_idempotent(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name)


@given(NAMES)
@example("_")
def test_normalised_name_is_never_empty(name: str) -> None:
    assert bool(normalise(name)) == bool(name.strip())


@pytest.mark.parametrize("word", ["İstanbul", "हिन्दी", "ข้าว", "مُحَمَّد"])
def test_combining_marks_do_not_split_a_name(word: str) -> None:
    assert " " not in normalise(word)


@pytest.mark.parametrize(("one", "other"), [("दिन", "दान"), ("กิน", "กัน"), ("நீர்", "நார்")])
def test_names_with_different_vowel_signs_differ(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)
    assert terms(one) != terms(other)


# -- terms ---------------------------------------------------------------------------------------------


def test_terms_are_ordered_without_stop_words() -> None:
    text = "Ermengarde of Tours was the mother of Lothair II, and of no other Lothair."
    assert terms(text) == ["ermengard", "tour", "mother", "lothair", "ii", "other", "lothair"]
    assert terms(" ".join(STOP_WORDS)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Apollo 11 in 1969", ["apollo", "11", "1969"]),
        ("snake_case", ["snake", "case"]),
        ("À la carte", ["a", "la", "cart"]),
        ("iPhone手机", ["iphon", "手机"]),
        ("手机iPhone", ["手机", "iphon"]),
        ("猫", ["猫"]),
        ("ｶﾅ", ["カナ"]),
        ("", []),
        ("🙂 — _", []),
    ],
)
def test_text_has_the_expected_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("café", "cafe", "CAFÉ", "cafe\u0301", "cafés"),
        ("Straße", "strasse", "STRASSE"),
        ("weaving", "weaves", "weave"),
        ("Москва", "МОСКВЕ", "москвы"),
        ("ёлка", "елки"),
        ("новая", "нового", "новый"),
        ("Istanbul", "İstanbul"),
    ],
)
def test_forms_of_a_word_have_one_term(forms: tuple[str, ...]) -> None:
    first, *others = map(terms, forms)
    assert len(first) == 1
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("北京大学", "我住在北京大学附近"),
        ("新宿", "東京都庁は新宿にある"),
        ("サーバー", "このサーバーは速い"),
        ("서울", "대한민국의수도는서울이다"),
        ("ข้าวผัด", "ฉันชอบกินข้าวผัด"),
    ],
)
def test_phrase_matches_text_without_spaces(phrase: str, text: str) -> None:
    assert set(terms(phrase)) <= set(terms(text))


@given(st.text(HAN, min_size=2), st.data())
def test_part_of_a_chinese_text_shares_its_terms(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 2, len(text)))
    assert set(terms(text[start:end])) <= set(terms(text))


@given(st.text() | st.text(alphabet='a"é ญ漢1\t_\0'))
def test_terms_contain_no_quotes(text: str) -> None:
    for term in terms(text):
        assert term
        assert all(unicodedata.category(character)[0] in "LMN" for character in term)


@given(st.text(st.characters(codec="ascii")))
def test_terms_ignore_case(text: str) -> None:
    assert terms(text) == terms(text.upper())


def test_stemming_is_safe_in_threads() -> None:
    stems, endings = product("bcdfghklmnprstvwz", repeat=2), ("ations", "ingly", "ied", "fulness")
    words = [f"{a}o{b}er{ending}" for (a, b), ending in product(stems, endings)]
    together = threading.Barrier(8)

    def read() -> list[str]:
        together.wait()
        return [term for word in words for term in terms(word)]

    with ThreadPoolExecutor(8) as pool:
        answers = [future.result() for future in [pool.submit(read) for _ in range(8)]]
    assert answers == [Stemmer.Stemmer("english").stemWords(words)] * 8


def test_marks_equal_those_of_unicode() -> None:
    ends = [[int(end, 16) for end in ends.split("-")] for ends in text._MARK_RANGES.split()]
    written = {code for end in ends for code in range(end[0], end[-1] + 1)}
    marks = {code for code in range(0x0300, 0x1E900) if unicodedata.category(chr(code))[0] == "M"}
    assert written <= marks
    if unicodedata.unidata_version == "14.0.0":  # later versions of Python know some more, which stay apart
        assert written == marks


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_folded_and_counted_as_any_text(text: str) -> None:
    """ASCII takes a short way."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    assert terms(text) == terms(f"{text} é")[:-1]
    assert _fold(text) == folded
    assert count_pieces(text) == sum(len(re.findall(pattern, text)) for pattern, _ in _PIECES[:2])


@given(st.text() | st.text(alphabet="aB1é–“ _-\u0301क्षि漢字\u00a0"))
def test_words_are_split_without_a_pattern_as_with_it(text: str) -> None:
    assert split_words(text) == _WORD.findall(_fold(text))
