"""Read plain text: a header gives fields, each paragraph is a block, and a long text is split into parts.

Markdown uses the same parts; `HeadingCutter` finds where to cut it. Otherwise the module knows no markup.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple, TextIO, TypeAlias

from waylore.indexing.blocks import Block, Limits, ReadError, Reading, Source, describe_limit
from waylore.indexing.encoding import LINE_END, check_text, decode_text, open_text
from waylore.indexing.readers.structure.front_matter import read_header
from waylore.indexing.readers.structure.titles import get_own_title, name_file

PART_CHARACTERS = 100_000  # a part is longer only if a single line is longer
_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:(?:\r\n?|\n)[^\S\r\n]*[^\s][^\r\n]*)*")
_BLANK = re.compile(r"(?:\r\n?|\n)[^\S\r\n]*(?:\r\n?|\n)(?!\n)")
_FENCE_OR_HEADING = re.compile(r"^ {0,3}(?:(`{3,}|~{3,})([^\r\n]*)|#{1,6}[ \t])", re.MULTILINE)
Cut: TypeAlias = Callable[[str], int]


class TextPart(NamedTuple):
    """A part of a long text: its address, its offset in the file, and the number of bytes read so far."""

    uri: str
    start: int
    text: str
    bytes_read: int


def read_text(source: Source) -> Iterator[Reading]:
    """Read a text file as one document, or a long file as several."""
    if is_long(source):
        for uri, start, part, bytes_read in read_parts(source, cut_after_paragraph):
            blocks = find_paragraphs(part, source.limits.blocks)
            yield Reading(uri, name_file(source), part, blocks, start=start, bytes_read=bytes_read)
        return
    text = decode_text(source.read_bytes(), source.limits)
    head = read_header(text)
    blocks = (*head.fields, *find_paragraphs(text, source.limits.blocks, head.end))
    yield Reading(source.uri, get_own_title(head.metadata) or name_file(source), text, blocks, head.metadata)


def find_paragraphs(text: str, max_blocks: int, start: int = 0) -> tuple[Block, ...]:
    """Return the runs of lines that are not blank. Raise ReadError if there are more than `max_blocks`."""
    blocks = []
    for match in _PARAGRAPH.finditer(text, start):
        blocks.append(Block("paragraph", match.start(), match.end()))
        if len(blocks) > max_blocks:
            raise ReadError(describe_limit("blocks", max_blocks))
    return tuple(blocks)


def is_long(source: Source) -> bool:
    """Return whether a text is split into parts."""
    return source.path.stat().st_size > source.limits.split_bytes


def read_parts(source: Source, cut: Cut) -> Iterator[TextPart]:
    """Yield the parts of a long text; `cut` returns where the first part ends, or 0 if it finds no place."""
    start, rest = 0, ""
    with open_text(source) as file:
        for number in count(1):
            rest = _fill_part(file, rest, source.limits)
            end = (len(rest) >= PART_CHARACTERS and cut(rest)) or len(rest)
            if not end:
                break
            if rest[:end].strip():
                yield TextPart(f"{source.uri}#part={number}", start, rest[:end], file.buffer.tell())
            start, rest = start + end, rest[end:]


def cut_after_paragraph(text: str) -> int:
    """Return where to cut plain text: after a blank line in its second half, else after the last whole line."""
    return _find_last_end(_BLANK, text, len(text) // 2) or _find_last_end(LINE_END, text)


class HeadingCutter:
    """Finds where to cut Markdown: before a heading, else like plain text; inside a code block only if necessary.

    An instance remembers whether the previous part ended inside a code block, so it is for one file.
    """

    def __init__(self) -> None:
        self._fence = ""

    def __call__(self, text: str) -> int:
        """Return the offset where the first part of a text ends."""
        half = len(text) // 2
        headings, fences = _find_marks(text, self._fence)
        borders = [at for at, _ in fences]
        paragraphs = [cut.end() for cut in _BLANK.finditer(text, half)]
        outside = [at for at in paragraphs if bisect_left(borders, at) % 2 == len(self._fence[:1])]
        good = [at for at in headings if at > half] or [at for at in outside if at < len(text)]
        end = good[-1] if good else _find_last_end(LINE_END, text)
        before = bisect_left(borders, end)
        self._fence = fences[before - 1][1] if before else self._fence
        return end


def _find_marks(text: str, fence: str) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the offsets of headings and fences: a beginning has its fence, an end has ""."""
    headings: list[int] = []
    fences: list[tuple[int, str]] = []
    for match in _FENCE_OR_HEADING.finditer(text):
        is_end = bool(fence and match[1] and match[1].startswith(fence) and not match[2].strip())
        if not match[1] and not fence:
            headings.append(match.start())
        elif is_end or (match[1] and not fence):
            fence = "" if is_end else match[1]
            fences.append((match.start(), fence))
    return headings, fences


def _fill_part(file: TextIO, rest: str, limits: Limits) -> str:
    """Fill the rest with further text from the file up to the size of a part; more if a single line is longer."""
    rest += file.read(PART_CHARACTERS - len(rest))
    if len(rest) == PART_CHARACTERS and not LINE_END.search(rest, 0, PART_CHARACTERS - 1):
        rest += file.readline(limits.line)
    check_text(rest, limits)
    return rest


def _find_last_end(pattern: re.Pattern[str], text: str, start: int = 0) -> int:
    """Return the end of the last match, except at the end of the text, which may split a line end."""
    return max((match.end() for match in pattern.finditer(text, start) if match.end() < len(text)), default=0)
