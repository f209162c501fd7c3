"""What repeats a memory and what does not: pairs as data, texts around what was recalled, and properties."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.memory.repeats import Known, judged
from waylore.indexing.memory.wording import statements, words

PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text("utf-8"))
TEA = "I like green tea in the morning."
ROME = "Ada lives in Rome with two cats. She plays the cello."
BLOCK = """## Knowledge Graph Context
Query entities: [Ada]

### Ada
Related: Rome (lives in, weight: 5)

### Relevant Relationships
- Ada -> Rome: "lives in" (strength: 5)"""
KNOWN = (Known("p1", "d1", TEA), Known("p2", "d2", ROME, "Ada"))


def known(*texts: str) -> list[Known]:
    return [Known(f"p{n}", f"d{n}", text) for n, text in enumerate(texts, 1)]


@pytest.mark.parametrize("name", PAIRS["repeats"])
def test_a_repeat_is_not_new(name: str) -> None:
    there, comes = PAIRS["repeats"][name]
    assert judged(comes, known(there)).new == ""


@pytest.mark.parametrize("name", PAIRS["differs"])
def test_what_differs_is_new(name: str) -> None:
    there, comes = PAIRS["differs"][name]
    assert judged(comes, known(there)).new == comes


@pytest.mark.parametrize(
    ("comes", "new"),
    [
        (f"{TEA}\n\nOn Friday the plumber comes at nine.", "On Friday the plumber comes at nine."),
        (f"On Friday the plumber comes at nine. {TEA}", "On Friday the plumber comes at nine."),
        (f"- {TEA}\n- On Friday the plumber comes at nine.\n- Ada lives in Rome with two cats.", None),
        (f"{TEA} {ROME}", ""),
        (f"{TEA[:-1]}\n{ROME}", ""),
        (f"[1] Ada\n{ROME}\n\n[2]\n{TEA}\n\n## Sources\n[1] file:///ada.md\n", ""),
        ("[1] Ada\nAda lives in Rome with two cats. …", ""),
        (f"{TEA} That is not true.", f"{TEA} That is not true."),
        (f"Not any more. {TEA} {ROME}", f"Not any more.\n{TEA}"),
        (f"{BLOCK}\n\n## Passages\n\n[1] Ada\n{ROME}", ""),
        (f"### CONTEXT: Ada\n- lives in: Rome\n\n## Passages\n\n[1] Ada\n{ROME}", ""),
    ],
)
def test_only_what_is_new_around_the_recalled_is_kept(comes: str, new: str | None) -> None:
    expected = "On Friday the plumber comes at nine." if new is None else new
    assert judged(comes, KNOWN).new == expected


def test_what_was_recalled_is_told_in_the_order_of_the_text() -> None:
    assert [k.passage_id for k in judged(f"{ROME} {TEA}", KNOWN).recalled] == ["p2", "p1"]


def test_a_word_or_two_in_a_longer_text_are_no_repeat() -> None:
    text = "Shall we meet at nine? Yes. Bring the red folder with you."
    assert judged(text, known("Yes.")).new == text


def test_what_is_not_a_word_is_no_statement() -> None:
    assert statements("…\n\n- \n> \n***\n[1]") == []
    assert judged("—", KNOWN).new == "—"


anything = st.text(max_size=200)
vocabulary = ["Ada", "likes", "tea", "not", "3", "the", "Rome", "is", "東京", "no", "-3", "%"]
sayings = st.lists(st.sampled_from(vocabulary), min_size=3, max_size=9).map(" ".join)


@given(anything, st.lists(anything, max_size=3))
def test_nothing_is_lost_of_any_text(text: str, there: list[str]) -> None:
    """Each statement is stored, or known, or only frames what is known; without knowledge all is stored."""
    found = judged(text, known(*there))
    assert found.recalled or found.new == text
    assert judged(text, []).new == text


@given(sayings, sayings)
def test_only_the_same_words_in_the_same_order_are_a_repeat(one: str, two: str) -> None:
    there, comes = words(one), words(two)
    if judged(two, known(one)).new == "":
        assert comes == there * (len(comes) // len(there))


@given(anything.filter(lambda text: bool(statements(text))))
def test_the_same_again_is_never_new(text: str) -> None:
    assert judged(text, known(text)).new == ""
