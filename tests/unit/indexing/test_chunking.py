"""Passages are pieces of a text, in order and of bounded length, that lose nothing but white space."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, BlockKind, Reading
from waylore.indexing.chunking import passages, spans_of
from waylore.text import pieces as tokens
from waylore.types.knowledge import Document, Passage

DOCUMENT = Document("d", title="Guide")
KINDS: list[BlockKind] = ["heading", "paragraph", "code", "turn", "row", "list"]


def read(*blocks: tuple[BlockKind, str, tuple[str, ...]]) -> Reading:
    """A reading of these blocks, two line ends between them."""
    placed, at = [], 0
    for kind, text, headings in blocks:
        placed.append(Block(kind, at, at + len(text), headings))
        at += len(text) + 2
    return Reading("a", "Guide", "\n\n".join(text for _, text, _ in blocks), tuple(placed))


def words(text: str) -> int:
    return len(text.split())


def passages_of(
    *blocks: tuple[BlockKind, str, tuple[str, ...]], longest: int = 10, overlap: int = 3
) -> list[Passage]:
    return passages(read(*blocks), DOCUMENT, longest_tokens=longest, overlap_tokens=overlap, count=words)


NAMED = st.tuples(
    st.sampled_from(KINDS),
    (st.text(min_size=1, max_size=60) | st.text("ab .\n\t。é😀", min_size=1, max_size=200)).filter(str.strip),
    st.lists(st.sampled_from("AB"), max_size=2).map(tuple),
)


@given(
    st.lists(NAMED, max_size=8), st.integers(8, 60), st.integers(0, 7), st.sampled_from([tokens, words, len])
)
def test_passages_are_bounded_in_place_and_lose_nothing(
    blocks: list[tuple[BlockKind, str, tuple[str, ...]]],
    longest: int,
    overlap: int,
    count: Callable[[str], int],
) -> None:
    reading = read(*blocks)
    covered = set[int]()
    last = (-1, -1)
    for start, end, _ in spans_of(reading, longest_tokens=longest, overlap_tokens=overlap, count=count):
        assert last[0] < start < end <= len(reading.text)
        assert last[1] < end
        assert count(reading.text[start:end]) <= longest
        assert reading.text[start:end].strip() == reading.text[start:end]
        covered |= set(range(start, end))
        last = (start, end)
    assert all(at in covered for at, sign in enumerate(reading.text) if not sign.isspace())
    for passage in passages(reading, DOCUMENT, longest_tokens=longest, overlap_tokens=overlap, count=count):
        assert reading.text[passage.start : passage.end] == passage.text


def test_short_blocks_under_a_heading_are_packed_and_a_heading_begins_anew() -> None:
    found = passages_of(
        ("paragraph", "Before.", ()),
        ("heading", "# A", ("A",)),
        ("paragraph", "One two.", ("A",)),
        ("list", "- three", ("A",)),
        ("heading", "# B", ("B",)),
        ("code", "x = 1", ("B",)),
    )
    assert [p.text for p in found] == ["Before.", "# A\n\nOne two.\n\n- three", "# B\n\nx = 1"]
    assert [p.headings for p in found] == [(), ("A",), ("B",)]
    assert [p.position for p in found] == [0, 1, 2]
    assert {p.title for p in found} == {"Guide"}


def test_a_heading_with_nothing_below_goes_with_the_one_inside_it() -> None:
    blocks: list[tuple[BlockKind, str, tuple[str, ...]]] = [
        ("heading", "# A", ("A",)), ("heading", "## B", ("A", "B")), ("paragraph", "Said.", ("A", "B")),
        ("heading", "# C", ("C",)), ("heading", "# D", ("D",)),
    ]  # fmt: skip
    assert [(p.text, p.headings) for p in passages_of(*blocks)] == [
        ("# A\n\n## B\n\nSaid.", ("A", "B")),
        ("# C", ("C",)),
        ("# D", ("D",)),
    ]


@pytest.mark.parametrize("kind", ["code", "turn"])
def test_code_and_turns_are_whole_where_they_fit(kind: BlockKind) -> None:
    whole = "a b. c d.\n\ne f. g h"
    found = passages_of(("paragraph", "one two three", ()), (kind, whole, ()), ("paragraph", "four five", ()))
    assert [p.text for p in found] == ["one two three", whole, "four five"]


def test_what_is_too_long_is_cut_at_sentences_and_overlaps() -> None:
    sentences = "One two three. Four five six. Seven eight nine. Ten eleven twelve. Last."
    assert [p.text for p in passages_of(("paragraph", sentences, ()))] == [
        "One two three. Four five six. Seven eight nine.",
        "Seven eight nine. Ten eleven twelve. Last.",
    ]


def test_code_that_is_too_long_is_cut_at_lines() -> None:
    lines = "\n".join(f"x{n} = y. z" for n in range(5))
    assert [p.text for p in passages_of(("code", lines, ()), overlap=0)] == [
        "x0 = y. z\nx1 = y. z",
        "x2 = y. z\nx3 = y. z",
        "x4 = y. z",
    ]


def test_a_heading_stays_with_the_beginning_of_a_long_block() -> None:
    first, *_ = passages_of(("heading", "# A", ("A",)), ("paragraph", "word " * 30, ("A",)))
    assert first.text.startswith("# A\n\nword")


def test_a_passage_that_comes_again_is_the_same() -> None:
    found = passages_of(
        ("paragraph", "Same.", ("A",)), ("paragraph", "Other.", ("B",)), ("paragraph", "Same.", ("C",))
    )
    assert [(p.text, p.position) for p in found] == [("Same.", 0), ("Other.", 1)]


@pytest.mark.parametrize("overlap", [-1, 300, 301])
def test_an_overlap_must_be_less_than_a_passage(overlap: int) -> None:
    with pytest.raises(ConfigError, match="overlap_tokens"):
        passages(read(("paragraph", "x", ())), DOCUMENT, overlap_tokens=overlap)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text", ["x" * 400_000, "x " * 200_000, "亀" * 100_000, "a. " * 100_000, "\n" * 400_000 + "x"]
)
def test_long_blocks_are_cut_in_time(text: str) -> None:
    found = passages(read(("paragraph", text, ())), DOCUMENT)
    assert all(tokens(p.text) <= 300 for p in found)
