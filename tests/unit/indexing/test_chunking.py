"""Passages are parts of a text, in order and of limited length, that together lose only white space."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, BlockKind, Reading
from waylore.indexing.chunking import find_spans, split_into_passages
from waylore.text import estimate_tokens as tokens
from waylore.types.knowledge import Document, Passage

DOCUMENT = Document("d", title="Guide")
KINDS: list[BlockKind] = ["heading", "paragraph", "item", "term", "row", "field", "code", "turn"]


def make_reading(*blocks: tuple[BlockKind, str, tuple[str, ...]]) -> Reading:
    """Return a reading of these blocks, with two line ends between them."""
    placed, at = [], 0
    for kind, text, headings in blocks:
        placed.append(Block(kind, at, at + len(text), headings))
        at += len(text) + 2
    return Reading("a", "Guide", "\n\n".join(text for _, text, _ in blocks), tuple(placed))


def count_words(text: str) -> int:
    return len(text.split())


def split(*blocks: tuple[BlockKind, str, tuple[str, ...]], longest: int = 10, overlap: int = 3) -> list[Passage]:
    return split_into_passages(
        make_reading(*blocks), DOCUMENT, max_tokens=longest, overlap_tokens=overlap, count=count_words
    )


NAMED = st.tuples(
    st.sampled_from(KINDS),
    (st.text(min_size=1, max_size=60) | st.text("ab .\n\t。é😀", min_size=1, max_size=200)).filter(str.strip),
    st.lists(st.sampled_from("AB"), max_size=2).map(tuple),
)


@given(
    st.lists(NAMED, max_size=8),
    st.integers(8, 60),
    st.integers(0, 7),
    st.sampled_from([tokens, count_words, len]),
)
def test_passages_are_limited_and_lose_nothing(
    blocks: list[tuple[BlockKind, str, tuple[str, ...]]],
    longest: int,
    overlap: int,
    count: Callable[[str], int],
) -> None:
    reading = make_reading(*blocks)
    covered = set[int]()
    last = (-1, -1)
    for start, end, _ in find_spans(reading, max_tokens=longest, overlap_tokens=overlap, count=count):
        assert last[0] < start < end <= len(reading.text)
        assert last[1] < end
        assert count(reading.text[start:end]) <= longest
        assert reading.text[start:end].strip() == reading.text[start:end]
        covered |= set(range(start, end))
        last = (start, end)
    assert all(at in covered for at, sign in enumerate(reading.text) if not sign.isspace())
    for passage in split_into_passages(reading, DOCUMENT, max_tokens=longest, overlap_tokens=overlap, count=count):
        assert reading.text[passage.start : passage.end] == passage.text


def test_short_blocks_are_joined_up_to_the_next_heading() -> None:
    found = split(
        ("paragraph", "Before.", ()),
        ("heading", "# A", ("A",)),
        ("paragraph", "One two.", ("A",)),
        ("item", "- three", ("A",)),
        ("heading", "# B", ("B",)),
        ("code", "x = 1", ("B",)),
    )
    assert [p.text for p in found] == ["Before.", "# A\n\nOne two.\n\n- three", "# B\n\nx = 1"]
    assert [p.headings for p in found] == [(), ("A",), ("B",)]
    assert [p.position for p in found] == [0, 1, 2]
    assert {p.title for p in found} == {"Guide"}


def test_heading_without_text_joins_its_subheading() -> None:
    blocks: list[tuple[BlockKind, str, tuple[str, ...]]] = [
        ("heading", "# A", ("A",)), ("heading", "## B", ("A", "B")), ("paragraph", "Said.", ("A", "B")),
        ("heading", "# C", ("C",)), ("heading", "# D", ("D",)),
    ]  # fmt: skip
    assert [(p.text, p.headings) for p in split(*blocks)] == [
        ("# A\n\n## B\n\nSaid.", ("A", "B")),
        ("# C", ("C",)),
        ("# D", ("D",)),
    ]


@pytest.mark.parametrize("kind", ["code", "turn"])
def test_code_and_turns_stay_whole_if_they_fit(kind: BlockKind) -> None:
    whole = "a b. c d.\n\ne f. g h"
    found = split(("paragraph", "one two three", ()), (kind, whole, ()), ("paragraph", "four five", ()))
    assert [p.text for p in found] == ["one two three", whole, "four five"]


def test_long_text_is_cut_at_sentences_with_overlap() -> None:
    sentences = "One two three. Four five six. Seven eight nine. Ten eleven twelve. Last."
    assert [p.text for p in split(("paragraph", sentences, ()))] == [
        "One two three. Four five six. Seven eight nine.",
        "Seven eight nine. Ten eleven twelve. Last.",
    ]


def test_long_code_is_cut_at_lines() -> None:
    lines = "\n".join(f"x{n} = y. z" for n in range(5))
    assert [p.text for p in split(("code", lines, ()), overlap=0)] == [
        "x0 = y. z\nx1 = y. z",
        "x2 = y. z\nx3 = y. z",
        "x4 = y. z",
    ]


def test_heading_stays_with_start_of_long_block() -> None:
    first, *_ = split(("heading", "# A", ("A",)), ("paragraph", "word " * 30, ("A",)))
    assert first.text.startswith("# A\n\nword")


def test_repeated_text_gives_one_passage() -> None:
    found = split(("paragraph", "Same.", ("A",)), ("paragraph", "Other.", ("B",)), ("paragraph", "Same.", ("C",)))
    assert [(p.text, p.position) for p in found] == [("Same.", 0), ("Other.", 1)]


@pytest.mark.parametrize("overlap", [-1, 300, 301])
def test_overlap_must_be_shorter_than_a_passage(overlap: int) -> None:
    with pytest.raises(ConfigError, match="overlap_tokens"):
        split_into_passages(make_reading(("paragraph", "x", ())), DOCUMENT, overlap_tokens=overlap)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["x" * 400_000, "x " * 200_000, "亀" * 100_000, "a. " * 100_000, "\n" * 400_000 + "x"])
def test_long_blocks_are_split_in_time(text: str) -> None:
    found = split_into_passages(make_reading(("paragraph", text, ())), DOCUMENT)
    assert all(tokens(p.text) <= 300 for p in found)
