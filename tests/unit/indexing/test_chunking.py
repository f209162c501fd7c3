"""Passages are parts of a text, in order and of limited length, that together lose only text without words."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, BlockKind, Reading, has_words
from waylore.indexing.chunking import find_spans, split_into_passages
from waylore.text import count_pieces as tokens
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
def test_passages_are_limited_and_lose_no_words(
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
    lost = "".join(sign for at, sign in enumerate(reading.text) if at not in covered)
    assert not has_words(lost) if has_words(reading.text) else not lost.strip()
    for passage in split_into_passages(reading, DOCUMENT, max_tokens=longest, overlap_tokens=overlap, count=count):
        assert reading.text[passage.start : passage.end] == passage.text


TEN = "one two three four five six seven eight nine ten"


def test_short_sections_stand_together_up_to_half_a_passage() -> None:
    found = split(
        ("paragraph", TEN, ()),
        ("heading", "# A", ("A",)),
        ("paragraph", TEN, ("A",)),
        ("item", "- three", ("A",)),
        ("heading", "# B", ("B",)),
        ("code", TEN, ("B",)),
        ("paragraph", "End.", ("B",)),
        longest=40,
    )
    assert [p.text for p in found] == [f"{TEN}\n\n# A\n\n{TEN}\n\n- three", f"# B\n\n{TEN}\n\nEnd."]
    assert [p.headings for p in found] == [(), ("B",)]
    assert [p.position for p in found] == [0, 1]
    assert {p.title for p in found} == {"Guide"}


def test_passage_has_the_headings_that_all_its_blocks_share() -> None:
    blocks: list[tuple[BlockKind, str, tuple[str, ...]]] = [
        ("heading", "# A", ("A",)), ("heading", "## B", ("A", "B")), ("paragraph", TEN, ("A", "B")),
        ("heading", "## C", ("A", "C")), ("paragraph", TEN, ("A", "C")),
    ]  # fmt: skip
    assert [p.headings for p in split(*blocks, longest=40)] == [("A",)]
    assert [p.headings for p in split(*blocks, longest=20)] == [("A", "B"), ("A", "C")]


def test_full_passage_leaves_heading_to_the_next() -> None:
    found = split(("paragraph", TEN, ()), ("heading", "# A", ("A",)), ("paragraph", TEN, ("A",)), longest=20)
    assert [p.text for p in found] == [TEN, f"# A\n\n{TEN}"]


@pytest.mark.parametrize("kind", ["item", "row", "code", "field"])
def test_line_that_leads_a_list_stays_with_it(kind: BlockKind) -> None:
    found = split(("paragraph", TEN, ()), ("paragraph", "These are:", ()), (kind, TEN, ()), longest=20)
    assert [p.text for p in found] == [TEN, f"These are:\n\n{TEN}"]


def test_fields_stay_with_the_text_after_them() -> None:
    head: list[tuple[BlockKind, str, tuple[str, ...]]] = [("field", f"a{n}: b", ()) for n in range(10)]
    body: list[tuple[BlockKind, str, tuple[str, ...]]] = [("heading", "# A", ("A",)), ("paragraph", "Said.", ("A",))]
    [passage] = split(*head, *body, longest=40)
    assert passage.text.startswith("a0: b")
    assert passage.text.endswith("Said.")
    assert passage.headings == ("A",)


def test_column_names_stay_with_first_row() -> None:
    text = f"{TEN}\n\na | b\n\n1 | 2"
    blocks = [Block("paragraph", 0, 48), Block("row", 50, 55), Block("row", 57, 62, cells=(("a", "1"), ("b", "2")))]
    found = find_spans(Reading("a", "a", text, tuple(blocks)), max_tokens=15, count=count_words)
    assert [text[start:end] for start, end, _ in found] == [TEN, "a | b\n\n1 | 2"]


def test_short_passage_joins_its_neighbour_if_both_fit() -> None:
    definitions: list[tuple[BlockKind, str, tuple[str, ...]]] = [
        ("code", f"def a(): {TEN} eleven", ("a",)), ("code", "def b(): pass", ("b",)),
        ("code", f"def c(): {TEN} eleven", ("c",)),
    ]  # fmt: skip
    assert [p.text.count("def") for p in split(*definitions, longest=20)] == [2, 1]
    assert [p.text.count("def") for p in split(*definitions, longest=14)] == [1, 1, 1]


@pytest.mark.parametrize("wordless", ["---", "https://example.org/a/b", "<!-- a comment -->", "* * *"])
def test_passage_without_words_is_left_out(wordless: str) -> None:
    found = split(("paragraph", TEN, ()), ("paragraph", wordless, ()), ("paragraph", TEN, ()), longest=10)
    assert [p.text for p in found] == [TEN]
    assert [p.text for p in split(("paragraph", wordless, ()))] == [wordless]


@pytest.mark.parametrize("kind", ["code", "turn"])
def test_code_and_turns_stay_whole_if_they_fit(kind: BlockKind) -> None:
    whole = "a b. c d.\n\ne f. g h"
    found = split(("paragraph", "one two three", ()), (kind, whole, ()), ("paragraph", "four five", ()))
    assert any(whole in p.text for p in found)


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
    found = split(("paragraph", TEN, ("A",)), ("paragraph", TEN.upper(), ("B",)), ("paragraph", TEN, ("C",)))
    assert [(p.text, p.position) for p in found] == [(TEN, 0), (TEN.upper(), 1)]


@pytest.mark.parametrize("overlap", [-1, 300, 301])
def test_overlap_must_be_shorter_than_a_passage(overlap: int) -> None:
    with pytest.raises(ConfigError, match="overlap_tokens"):
        split_into_passages(make_reading(("paragraph", "x", ())), DOCUMENT, overlap_tokens=overlap)


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["x" * 400_000, "x " * 200_000, "亀" * 100_000, "a. " * 100_000, "\n" * 400_000 + "x"])
def test_long_blocks_are_split_in_time(text: str) -> None:
    found = split_into_passages(make_reading(("paragraph", text, ())), DOCUMENT)
    assert all(tokens(p.text) <= 300 for p in found)
