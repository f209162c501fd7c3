"""Split a text into passages: by structure first, then at sentences, then at words.

Blocks are joined until a passage is full. A passage ends before its last section if it is at least half full without
it, so that short sections stay together. The line above a list stays with its first item, and fields stay with the text
below them. Only a block that is too long for a passage is split, and only its pieces overlap. Each passage has its
offsets in the file. The module knows no formats: the readers find the blocks.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, takewhile
from typing import NamedTuple, TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, Reading, has_words
from waylore.text import count_pieces
from waylore.types.identity import passage_id
from waylore.types.knowledge import Document, Passage

MAX_TOKENS = 300
OVERLAP_TOKENS = 40
MIN_WORDS = 12  # a shorter passage joins its neighbour
MAX_WORD_CHARACTERS = 100  # a text with a longer average word is never short
MAX_LEAD_CHARACTERS = 300  # a longer paragraph is more than the line above a list
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_LINES = re.compile(r"[\r\n]+")
_WORDS = re.compile(r"\s+")
_CUTS = (_PARAGRAPHS, _SENTENCES, _WORDS)
_CODE_CUTS = (_PARAGRAPHS, _LINES, _WORDS)
Count: TypeAlias = Callable[[str], int]


class PassageOffsets(NamedTuple):
    """Offsets of a passage in a text, and the headings above it."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


def split_into_passages(
    reading: Reading,
    document: Document,
    *,
    max_tokens: int = MAX_TOKENS,
    overlap_tokens: int = OVERLAP_TOKENS,
    count: Count = count_pieces,
) -> list[Passage]:
    """Split a document into passages; a repeated text becomes one passage, at its first place."""
    passages: dict[str, Passage] = {}
    spans = find_spans(reading, max_tokens=max_tokens, overlap_tokens=overlap_tokens, count=count)
    for position, (start, end, headings) in enumerate(spans):
        text = reading.text[start:end]
        id_ = passage_id(document.id, text)
        place = (position, reading.start + start, reading.start + end)
        passage = Passage(id_, document.id, text, document.title, *place, headings, at=document.at)
        passages.setdefault(id_, passage)
    return list(passages.values())


def find_spans(
    reading: Reading, *, max_tokens: int, overlap_tokens: int = 0, count: Count = count_pieces
) -> Iterator[PassageOffsets]:
    """Yield the spans of the passages of a reading; together they cover all its blocks except text without words."""
    if not 0 <= overlap_tokens < max_tokens:
        raise ConfigError(f"overlap_tokens must be 0 to {max_tokens - 1}, got {overlap_tokens}")
    spans = list(_cut_groups(reading, max_tokens, overlap_tokens, count))
    with_words = [span for span in spans if has_words(reading.text[span.start : span.end])]
    return iter(with_words or spans)


def _cut_groups(reading: Reading, max_tokens: int, overlap_tokens: int, count: Count) -> Iterator[PassageOffsets]:
    cutter = _Cutter(reading.text, max_tokens, overlap_tokens, count)
    for group in _join_short(reading.text, _group_blocks(reading, max_tokens, count), max_tokens, count):
        start, end = _trim(reading.text, group[0].start, group[-1].end)
        headings = _find_shared_headings(group)
        if start < end and count(reading.text[start:end]) <= max_tokens:
            yield PassageOffsets(start, end, headings)
            continue
        cuts = _CODE_CUTS if group[-1].kind == "code" else _CUTS
        for first, last in cutter.cut(start, end, cuts):
            yield PassageOffsets(first, last, headings)


def _group_blocks(reading: Reading, longest: int, count: Count) -> Iterator[list[Block]]:
    """Yield groups of blocks, each as long as fits into one passage.

    A passage ends at the beginning of a section if it is half full there. A definition of source code has its own
    passage.
    """
    group: list[Block] = []
    costs: list[int] = []
    for block in reading.blocks:
        cost = count(reading.text[block.start : block.end]) + 1
        if group and _begins_definition(group[-1], block):
            yield group
            group, costs = [], []
        while group and sum(costs) + cost > longest:
            end = _find_end(reading.text, group, costs, block, longest)
            if not end:
                break
            yield group[:end]
            group, costs = group[end:], costs[end:]
        group.append(block)
        costs.append(cost)
    if group:
        yield group


def _begins_definition(last: Block, block: Block) -> bool:
    return block.kind == last.kind == "code" and block.headings != last.headings


def _find_end(text: str, group: list[Block], costs: list[int], block: Block, longest: int) -> int:
    """Return how many blocks of a full group make a passage; the others join the next block.

    The others are headings, the line above a list, and the last section if the passage is half full without it. 0 means
    that the whole group joins the next block.
    """
    end = len(group) - _count_lead(text, group, block)
    if block.kind == "heading" or not end:
        return end
    filled = list(accumulate(costs, initial=0))
    for number in range(end - 1, 0, -1):
        if 2 * filled[number] < longest:
            break
        if _begins_section(group[number - 1], group[number]) and _has_text(group[:number]):
            return number
    return end


def _begins_section(last: Block, block: Block) -> bool:
    return last.kind != "heading" and (block.kind == "heading" or block.headings != last.headings)


def _has_text(group: list[Block]) -> bool:
    """Return whether a group has more than headings and fields of the page: these join the text below."""
    return any(map(_is_text, group))


def _is_text(block: Block) -> bool:
    return block.kind != "heading" and (block.kind != "field" or bool(block.headings))


def _count_lead(text: str, group: list[Block], block: Block) -> int:
    """Return how many blocks at the end of a group belong to the next block: headings, and a line ending in a colon."""
    lead, after = 0, block
    for each in reversed(group):
        if not (each.kind == "heading" or _is_lead(text, each, after)):
            break
        lead, after = lead + 1, each
    return lead


def _is_lead(text: str, block: Block, after: Block) -> bool:
    """Return whether a block belongs to the next one: column names of a table, or the line above a list or table."""
    if block.kind == "row":
        return after.kind == "row" and not block.cells and bool(after.cells)
    if after.kind not in ("item", "term", "field", "row", "code") or block.kind not in ("paragraph", "item"):
        return False
    return block.end - block.start <= MAX_LEAD_CHARACTERS and text[block.start : block.end].rstrip().endswith(
        (":", "：")
    )


def _join_short(text: str, groups: Iterable[list[Block]], longest: int, count: Count) -> Iterator[list[Block]]:
    """Yield the groups; join a group of few words with its neighbour if both fit into one passage."""
    last: list[Block] = []
    for group in groups:
        is_short = _is_short(text, last) or _is_short(text, group)
        if last and is_short and count(text[last[0].start : group[-1].end]) <= longest:
            last = [*last, *group]
            continue
        if last:
            yield last
        last = group
    if last:
        yield last


def _is_short(text: str, group: list[Block]) -> bool:
    if not group or group[-1].end - group[0].start > MIN_WORDS * MAX_WORD_CHARACTERS:
        return False
    return len(text[group[0].start : group[-1].end].split()) < MIN_WORDS


def _find_shared_headings(group: list[Block]) -> tuple[str, ...]:
    """Return the headings that apply to all text of a passage; text above the first heading has none."""
    texts = [block for block in group if _is_text(block)] or group
    shared = texts[-1].headings
    for block in texts:
        pairs = zip(shared, block.headings, strict=False)
        shared = tuple(heading for heading, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared


class _Cutter:
    """Splits a long text into pieces of at most `longest` tokens, each as long as possible."""

    def __init__(self, text: str, longest: int, overlap: int, count: Count) -> None:
        self.text, self.longest, self.overlap, self.count = text, longest, overlap, count

    def cut(self, start: int, end: int, cuts: tuple[re.Pattern[str], ...]) -> Iterator[tuple[int, int]]:
        """Yield the pieces between `start` and `end`; each overlaps the end of the piece before it."""
        covered = start
        while covered < end:
            last = self._find_farthest(start, covered, end)
            if last < end:
                last = self._find_cut(start, covered, last, cuts)
            first, trimmed = _trim(self.text, start, last)
            if first < trimmed and trimmed > covered:
                yield first, trimmed
            covered = _trim(self.text, last, end)[0]
            start = self._step_back(first, last, cuts) if covered < end else end
            if not self._fits(start, covered + 1, self.longest):
                start = covered

    def _find_farthest(self, start: int, covered: int, end: int) -> int:
        """Return the end of the longest text that fits, at least one character, so that the loop ends."""
        fits, step = start, max(self.longest, 1)
        while fits < end and self._fits(start, min(fits + step, end), self.longest):
            fits = min(fits + step, end)
            step *= 2
        too_far = min(fits + step, end) + 1 if fits < end else end + 1
        while too_far - fits > 1:
            middle = (fits + too_far) // 2
            fits, too_far = (middle, too_far) if self._fits(start, middle, self.longest) else (fits, middle)
        return fits if fits > covered or start < covered else start + 1

    def _find_cut(self, start: int, covered: int, last: int, cuts: tuple[re.Pattern[str], ...]) -> int:
        """Return the best offset to cut: the strongest cut in the second half, or the last white space."""
        least = max(covered, start + (last - start) // 2)
        window = min(last + 1, len(self.text))
        for pattern in cuts:
            places = [cut.start() for cut in pattern.finditer(self.text, covered, window)]
            good = [at for at in places if least < at <= last or (pattern is cuts[-1] and covered < at <= last)]
            if good:
                return good[-1]
        return last

    def _step_back(self, start: int, last: int, cuts: tuple[re.Pattern[str], ...]) -> int:
        """Return the start of the next piece: the first sentence or word within the overlap."""
        if not self.overlap:
            return last
        near, far = last, start
        while near - far > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if self._fits(middle, last, self.overlap) else (near, middle)
        for pattern in cuts[1:]:
            for cut in pattern.finditer(self.text, near - 1, last):
                if near <= cut.end() < last:
                    return cut.end()
        return near

    def _fits(self, start: int, end: int, longest: int) -> bool:
        return self.count(self.text[start:end]) <= longest


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Move both offsets inwards, past white space."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
