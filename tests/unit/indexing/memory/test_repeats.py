"""Which texts repeat a memory and which do not: pairs as data, texts around a repeated one, and properties."""

import time
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.memory.known import MIN_RUN_WORDS, KnownPassage, mark_known
from waylore.indexing.memory.repeats import split_new_from_known
from waylore.indexing.memory.wording import LEAD_IN, REPORTING, Wording, get_words, split_wordings

PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text("utf-8"))
TEA = "I like green tea in the morning."
ROME = "Ada lives in Rome with two cats. She plays the cello."
BLOCK = """## Knowledge Graph Context
Query entities: [Ada]

### Ada
Related: Rome (lives in, weight: 5)

### Relevant Relationships
- Ada -> Rome: "lives in" (strength: 5)"""
KNOWN = (KnownPassage("p1", "d1", TEA), KnownPassage("p2", "d2", ROME, "Ada"))


def make_known(*texts: str) -> list[KnownPassage]:
    return [KnownPassage(f"p{n}", f"d{n}", text) for n, text in enumerate(texts, 1)]


@pytest.mark.parametrize("name", PAIRS["repeats"])
def test_repetition_is_not_new(name: str) -> None:
    there, comes = PAIRS["repeats"][name]
    assert split_new_from_known(comes, make_known(there)).new == ""


@pytest.mark.parametrize("name", PAIRS["differs"])
def test_different_text_is_new(name: str) -> None:
    there, comes = PAIRS["differs"][name]
    assert split_new_from_known(comes, make_known(there)).new == comes


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
def test_only_new_sentences_are_stored(comes: str, new: str | None) -> None:
    expected = "On Friday the plumber comes at nine." if new is None else new
    assert split_new_from_known(comes, KNOWN).new == expected


def test_repeated_passages_are_in_order_of_the_text() -> None:
    assert [k.passage_id for k in split_new_from_known(f"{ROME} {TEA}", KNOWN).recalled] == ["p2", "p1"]


def test_short_run_in_longer_text_is_not_repeated() -> None:
    text = "Shall we meet at nine? Yes. Bring the red folder with you."
    assert split_new_from_known(text, make_known("Yes.")).new == text


def test_text_without_words_is_new() -> None:
    assert split_wordings("…\n\n- \n> \n***\n[1]") == []
    assert split_new_from_known("—", KNOWN).new == "—"


anything = st.text(max_size=200)
vocabulary = ["Ada", "likes", "tea", "not", "3", "the", "Rome", "is", "東京", "no", "-3", "%"]
sayings = st.lists(st.sampled_from(vocabulary), min_size=3, max_size=9).map(" ".join)


@given(anything, st.lists(anything, max_size=3))
def test_no_sentence_is_lost(text: str, there: list[str]) -> None:
    """Each sentence is stored, known, or an introduction; without known passages all are stored."""
    found = split_new_from_known(text, make_known(*there))
    assert found.recalled or found.new == text
    assert split_new_from_known(text, []).new == text


@given(sayings, sayings)
def test_repetition_needs_same_words_in_same_order(one: str, two: str) -> None:
    there, comes = get_words(one), get_words(two)
    if split_new_from_known(two, make_known(one)).new == "":
        assert comes == there * (len(comes) // len(there))


@given(anything.filter(lambda text: bool(split_wordings(text))))
def test_same_text_is_never_new(text: str) -> None:
    assert split_new_from_known(text, make_known(text)).new == ""


# -- the table of hashes against the plain definition --------------------------------------------------

WORDS = ["Ada", "likes", "tea", "you", "told", "me", "ok", "Rome"]  # four of them may introduce a repetition
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(lambda words: f"{' '.join(words)}.")
texts = st.lists(sentences, min_size=1, max_size=4).map(" ".join)


def list_runs(words: list[str], known: list[KnownPassage], at: int) -> Iterator[int]:
    """Yield the end of each run of words from a place that equals whole sentences of a passage."""
    for passage in known:
        each = [list(wording.words) for wording in split_wordings(passage.text)]
        for first in range(len(each)):
            for last in range(first + 1, len(each) + 1):
                run = [word for sentence in each[first:last] for word in sentence]
                if words[at : at + len(run)] == run and (len(run) >= MIN_RUN_WORDS or run == words):
                    yield at + len(run)


def list_ways(
    words: list[str], known: list[KnownPassage], at: int, *, repeats: bool = False, introduction: tuple[str, ...] = ()
) -> Iterator[int]:
    """Yield each place that known sentences and introductory words lead to, if the way to it is a repetition."""
    if repeats and (not introduction or not REPORTING.isdisjoint(introduction)):
        yield at
    for end in set(list_runs(words, known, at)):
        yield from list_ways(words, known, end, repeats=True, introduction=introduction)
    if at < len(words) and words[at] in LEAD_IN:
        yield from list_ways(words, known, at + 1, repeats=repeats, introduction=(*introduction, words[at]))


def mark_known_plainly(wordings: list[Wording], known: list[KnownPassage]) -> list[bool]:
    words = [word for wording in wordings for word in wording.words]
    ends = list(accumulate(len(wording.words) for wording in wordings))
    is_known, at = [], 0
    for wording, end in zip(wordings, ends, strict=True):
        if (start := end - len(wording.words)) >= at:
            at = max((place for place in list_ways(words, known, start) if place in ends), default=start)
        is_known.append(end <= at)
    return is_known


@given(st.data(), st.lists(texts, min_size=1, max_size=3))
def test_table_of_hashes_finds_what_the_definition_says(data: st.DataObject, there: list[str]) -> None:
    comes = data.draw(st.lists(sentences | st.sampled_from(there), min_size=1, max_size=3).map(" ".join))
    wordings, known = split_wordings(comes), make_known(*there)
    is_known, recalled = mark_known(wordings, known)
    assert is_known == mark_known_plainly(wordings, known)
    assert bool(recalled) == any(is_known)


def measure_seconds(text: str, known: list[KnownPassage]) -> float:
    before = time.process_time()
    split_new_from_known(text, known)
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sentence", "there"),
    [
        ("The cat sat. ", "The cat sat. " * 80),
        ("You told. ", "You told. " * 80),
        ("You know the cat sat. ", "The cat sat. " * 80),
        ("x x x x ", " ".join(f"{'x ' * length}." for length in range(3, 60))),
    ],
)
def test_cost_is_linear_in_both_texts(sentence: str, there: str) -> None:
    """Four times as much text may take six times as long; before, 25 kB of these took minutes."""
    known = make_known(*[there] * 5)
    shorter = min(measure_seconds(sentence * 1_000, known) for _ in range(3))
    longer = min(measure_seconds(sentence * 4_000, known) for _ in range(3))
    assert longer < 6 * shorter, (shorter, longer)
    assert min(measure_seconds(sentence * 1_000, known * 4) for _ in range(3)) < 6 * shorter
