"""Cuts a text into passages by its structure first, then at sentences, then at words; each knows its place.

A heading begins a new passage; short blocks under one heading are packed together; a block is cut only where it
is too long by itself, and only then do its pieces overlap. It knows no formats: `reading` finds the blocks.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, Reading
from waylore.text import pieces as tokens
from waylore.types.identity import passage_id
from waylore.types.knowledge import Document, Passage

LONGEST_TOKENS = 300
OVERLAP_TOKENS = 40
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_LINES = re.compile(r"[\r\n]+")
_WORDS = re.compile(r"\s+")
_CUTS = (_PARAGRAPHS, _SENTENCES, _WORDS)
_CODE_CUTS = (_PARAGRAPHS, _LINES, _WORDS)
Count: TypeAlias = Callable[[str], int]


class Span(NamedTuple):
    """Where a passage lies, and the headings above it."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


def passages(
    reading: Reading,
    document: Document,
    *,
    longest_tokens: int = LONGEST_TOKENS,
    overlap_tokens: int = OVERLAP_TOKENS,
    count: Count = tokens,
) -> list[Passage]:
    """The passages of a document; one that comes again is the same passage, where it came first."""
    found: dict[str, Passage] = {}
    spans = spans_of(reading, longest_tokens=longest_tokens, overlap_tokens=overlap_tokens, count=count)
    for position, (start, end, headings) in enumerate(spans):
        said = reading.text[start:end]
        id_ = passage_id(document.id, said)
        place = (position, reading.start + start, reading.start + end)
        passage = Passage(id_, document.id, said, document.title, *place, headings)
        found.setdefault(id_, passage)
    return list(found.values())


def spans_of(
    reading: Reading, *, longest_tokens: int, overlap_tokens: int = 0, count: Count = tokens
) -> Iterator[Span]:
    """Where the passages of a reading lie; together they hold all its blocks but white space."""
    if not 0 <= overlap_tokens < longest_tokens:
        raise ConfigError(f"overlap_tokens must be 0 to {longest_tokens - 1}, less than longest_tokens")
    cutter = _Cutter(reading.text, longest_tokens, overlap_tokens, count)
    for group in _packed(reading, longest_tokens, count):
        start, end = _trimmed(reading.text, group[0].start, group[-1].end)
        cuts = _CODE_CUTS if group[-1].kind == "code" else _CUTS
        for first, last in cutter.cut(start, end, cuts):
            yield Span(first, last, group[-1].headings)


def _packed(reading: Reading, longest: int, count: Count) -> Iterator[list[Block]]:
    """Blocks that make a passage together: as many as fit under one heading."""
    group: list[Block] = []
    size = 0
    for block in reading.blocks:
        cost = count(reading.text[block.start : block.end]) + 1
        fits = size + cost <= longest
        if group and not (_belongs(group, block) and (fits or _is_heading_only(group))):
            yield group
            group, size = [], 0
        group.append(block)
        size += cost
    if group:
        yield group


def _belongs(group: list[Block], block: Block) -> bool:
    """Whether a block goes on under the same heading; a heading with nothing below it goes with the next."""
    path = group[-1].headings
    if block.kind == "heading" or path != block.headings:
        return _is_heading_only(group) and block.headings[: len(path)] == path and path != block.headings
    return True


def _is_heading_only(group: list[Block]) -> bool:
    return all(block.kind == "heading" for block in group)


class _Cutter:
    """Cuts what is too long into pieces of at most `longest` tokens, each as long as its cuts allow."""

    def __init__(self, text: str, longest: int, overlap: int, count: Count) -> None:
        self.text, self.longest, self.overlap, self.count = text, longest, overlap, count

    def cut(self, start: int, end: int, cuts: tuple[re.Pattern[str], ...]) -> Iterator[tuple[int, int]]:
        """The pieces from `start` to `end`; each begins a little before the last one ended."""
        covered = start
        while covered < end:
            last = self._farthest(start, covered, end)
            if last < end:
                last = self._at_a_cut(start, covered, last, cuts)
            first, trimmed = _trimmed(self.text, start, last)
            if first < trimmed and trimmed > covered:
                yield first, trimmed
            covered = _trimmed(self.text, last, end)[0]
            start = self._back(first, last, cuts) if covered < end else end
            if not self._fits(start, covered + 1, self.longest):
                start = covered

    def _farthest(self, start: int, covered: int, end: int) -> int:
        """The last place up to which it fits; one character at least, or nothing would go on."""
        fits, step = start, max(self.longest, 1)
        while fits < end and self._fits(start, min(fits + step, end), self.longest):
            fits = min(fits + step, end)
            step *= 2
        too_far = min(fits + step, end) + 1 if fits < end else end + 1
        while too_far - fits > 1:
            middle = (fits + too_far) // 2
            fits, too_far = (middle, too_far) if self._fits(start, middle, self.longest) else (fits, middle)
        return fits if fits > covered or start < covered else start + 1

    def _at_a_cut(self, start: int, covered: int, last: int, cuts: tuple[re.Pattern[str], ...]) -> int:
        """The last good place to cut: a strong one in the second half of what fits, or the last white space."""
        least = max(covered, start + (last - start) // 2)
        window = min(last + 1, len(self.text))
        for pattern in cuts:
            places = [cut.start() for cut in pattern.finditer(self.text, covered, window)]
            good = [at for at in places if least < at <= last or (pattern is cuts[-1] and covered < at <= last)]
            if good:
                return good[-1]
        return last

    def _back(self, start: int, last: int, cuts: tuple[re.Pattern[str], ...]) -> int:
        """Where the next piece begins: the first sentence or word whose rest is within the overlap."""
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


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
