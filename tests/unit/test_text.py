"""How words are read: names that compare as people compare them, terms that question and passage share."""

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import Stemmer
from hypothesis import example, given
from hypothesis import strategies as st

from waylore.text import STOP_WORDS, normalise, terms

NAMES = st.text() | st.text(alphabet="aB1é _-+#!")
HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)


# -- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ｗｅｆｔ", "waylore"),
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
def test_a_name_is_made_comparable(name: str, expected: str) -> None:
    assert normalise(name) == expected


def test_languages_that_differ_by_their_marks_stay_apart() -> None:
    assert len({normalise(name) for name in ("C", "C++", "C#", "F#")}) == 4


@given(NAMES)
@example("a_#")
def test_normalising_twice_is_normalising_once(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name)


@given(NAMES)
@example("_")
def test_no_name_becomes_empty(name: str) -> None:
    assert bool(normalise(name)) == bool(name.strip())


@pytest.mark.parametrize("word", ["İstanbul", "हिन्दी", "ข้าว", "مُحَمَّد"])
def test_marks_do_not_cut_a_name(word: str) -> None:
    assert " " not in normalise(word)


@pytest.mark.parametrize(("one", "other"), [("दिन", "दान"), ("กิน", "กัน"), ("நீர்", "நார்")])
def test_names_that_differ_in_a_vowel_sign_stay_apart(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)
    assert terms(one) != terms(other)


# -- terms ---------------------------------------------------------------------------------------------


def test_terms_come_in_order_without_stop_words() -> None:
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
def test_what_the_terms_of_a_text_are(text: str, expected: list[str]) -> None:
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
def test_forms_of_a_word_are_one_term(forms: tuple[str, ...]) -> None:
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
def test_a_phrase_shares_its_terms_with_a_text_that_writes_no_spaces(phrase: str, text: str) -> None:
    assert set(terms(phrase)) <= set(terms(text))


@given(st.text(HAN, min_size=2), st.data())
def test_a_stretch_of_chinese_shares_its_terms_with_the_whole(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 2, len(text)))
    assert set(terms(text[start:end])) <= set(terms(text))


@given(st.text() | st.text(alphabet='a"é ญ漢1\t_\0'))
def test_a_term_can_stand_in_quotes(text: str) -> None:
    for term in terms(text):
        assert term
        assert all(unicodedata.category(character)[0] in "LMN" for character in term)


@given(st.text(st.characters(codec="ascii")))
def test_case_does_not_matter(text: str) -> None:
    assert terms(text) == terms(text.upper())


def test_threads_that_stem_at_once_do_not_disturb_each_other() -> None:
    stems, endings = product("bcdfghklmnprstvwz", repeat=2), ("ations", "ingly", "ied", "fulness")
    words = [f"{a}o{b}er{ending}" for (a, b), ending in product(stems, endings)]
    together = threading.Barrier(8)

    def read() -> list[str]:
        together.wait()
        return [term for word in words for term in terms(word)]

    with ThreadPoolExecutor(8) as pool:
        answers = [future.result() for future in [pool.submit(read) for _ in range(8)]]
    assert answers == [Stemmer.Stemmer("english").stemWords(words)] * 8
