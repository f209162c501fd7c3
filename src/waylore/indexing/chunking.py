"""Split a text into passages: by structure first, then at sentences, then at words.

A heading begins a new passage, and short blocks under one heading are joined. A block is split only if it is
too long by itself, and only then do its pieces overlap. Each passage has its offsets in the file. The module
knows no formats: the readers find the blocks.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, Reading
from waylore.text import estimate_tokens
from waylore.types.identity import passage_id
from waylore.types.knowledge import Document, Passage

MAX_TOKENS = 300
OVERLAP_TOKENS = 40
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_LINES = re.compile(r"[\r\n]+")
_WORDS = re.compile(r"\s+")
_CUTS = (_PARAGRAPHS, _SENTENCES, _WORDS)
_CODE_CUTS = (_PARAGRAPHS, _LINES, _WORDS)
Count: TypeAlias = Callable[[str], int]


class Span(NamedTuple):
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
    count: Count = estimate_tokens,
) -> list[Passage]:
    """Split a document into passages; a text that occurs again is listed once, at its first place."""
    passages: dict[str, Passage] = {}
    spans = find_spans(reading, max_tokens=max_tokens, overlap_tokens=overlap_tokens, count=count)
    for position, (start, end, headings) in enumerate(spans):
        text = reading.text[start:end]
        id_ = passage_id(document.id, text)
        place = (position, reading.start + start, reading.start + end)
        passage = Passage(id_, document.id, text, document.title, *place, headings)
        passages.setdefault(id_, passage)
    return list(passages.values())


def find_spans(
    reading: Reading, *, max_tokens: int, overlap_tokens: int = 0, count: Count = estimate_tokens
) -> Iterator[Span]:
    """Yield the spans of the passages of a reading; together they cover all its blocks except white space."""
    if not 0 <= overlap_tokens < max_tokens:
        raise ConfigError(f"overlap_tokens must be 0 to {max_tokens - 1}, got {overlap_tokens}")
    cutter = _Cutter(reading.text, max_tokens, overlap_tokens, count)
    for group in _group_blocks(reading, max_tokens, count):
        start, end = _trim(reading.text, group[0].start, group[-1].end)
        if start < end and count(reading.text[start:end]) <= max_tokens:
            yield Span(start, end, group[-1].headings)
            continue
        cuts = _CODE_CUTS if group[-1].kind == "code" else _CUTS
        for first, last in cutter.cut(start, end, cuts):
            yield Span(first, last, group[-1].headings)


def _group_blocks(reading: Reading, longest: int, count: Count) -> Iterator[list[Block]]:
    """Yield groups of blocks that become one passage: as many as fit under one heading."""
    group: list[Block] = []
    size = 0
    for block in reading.blocks:
        cost = count(reading.text[block.start : block.end]) + 1
        fits = size + cost <= longest
        if group and not (_is_same_section(group, block) and (fits or _is_heading_only(group))):
            yield group
            group, size = [], 0
        group.append(block)
        size += cost
    if group:
        yield group


def _is_same_section(group: list[Block], block: Block) -> bool:
    """Return whether a block is under the heading of a group; a heading without text joins the next block."""
    path = group[-1].headings
    if block.kind == "heading" or path != block.headings:
        return _is_heading_only(group) and block.headings[: len(path)] == path and path != block.headings
    return True


def _is_heading_only(group: list[Block]) -> bool:
    return all(block.kind == "heading" for block in group)


class _Cutter:
    """Splits a long text into pieces of at most `longest` tokens, each as long as its cuts allow."""

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
        """Return the last offset up to which the text fits; at least one character, so that the loop ends."""
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
        """Return the start of the next piece: the first sentence or word that lies within the overlap."""
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
