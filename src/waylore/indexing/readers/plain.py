"""Reads plain text: its paragraphs are its blocks, and a long one comes in parts. It knows no markup."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple, TextIO, TypeAlias

from waylore.indexing.blocks import Block, Limits, Reading, Refused, Source, over
from waylore.indexing.encoding import LINE_END, checked, decoded, opened

_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:(?:\r\n?|\n)[^\S\r\n]*[^\s][^\r\n]*)*")


def text(source: Source) -> Iterator[Reading]:
    """A text file as one document, or a long one as several."""
    if is_long(source):
        for uri, start, part, reached in parts(source, after_a_paragraph):
            blocks = paragraphs(part, source.limits.blocks)
            yield Reading(uri, source.name, part, blocks, start=start, reached=reached)
        return
    written = decoded(source.content(), source.limits)
    yield Reading(source.uri, source.name, written, paragraphs(written, source.limits.blocks))


def paragraphs(written: str, most: int) -> tuple[Block, ...]:
    """Runs of lines that are not blank."""
    blocks = []
    for found in _PARAGRAPH.finditer(written):
        blocks.append(Block("paragraph", found.start(), found.end()))
        if len(blocks) > most:
            raise Refused(over("blocks", most))
    return tuple(blocks)


PART = 100_000  # characters of a part, at most, unless a line is longer
_BLANK = re.compile(r"(?:\r\n?|\n)[^\S\r\n]*(?:\r\n?|\n)(?!\n)")
_FENCE_OR_HEADING = re.compile(r"^ {0,3}(?:(`{3,}|~{3,})([^\r\n]*)|#{1,6}[ \t])", re.MULTILINE)
Cut: TypeAlias = Callable[[str], int]


class Part(NamedTuple):
    """A piece of a long text: its address, where it begins in the file, and how many bytes were read so far."""

    uri: str
    start: int
    text: str
    reached: int


def is_long(source: Source) -> bool:
    """Whether a text comes in parts."""
    return source.path.stat().st_size > source.limits.whole


def parts(source: Source, cut: Cut) -> Iterator[Part]:
    """The parts of a long text; `cut` says where the first part of a text ends, 0 if it cannot be cut."""
    start, rest = 0, ""
    with opened(source) as file:
        for number in count(1):
            rest = _filled(file, rest, source.limits)
            end = (len(rest) >= PART and cut(rest)) or len(rest)
            if not end:
                break
            if rest[:end].strip():
                yield Part(f"{source.uri}#part={number}", start, rest[:end], file.buffer.tell())
            start, rest = start + end, rest[end:]


def after_a_paragraph(text: str) -> int:
    """Where plain text is best cut: in its second half after a blank line, else after its last line."""
    return _last(_BLANK, text, len(text) // 2) or _last(LINE_END, text)


class BeforeAHeading:
    """Where Markdown is best cut: before a heading, else as plain text is; inside a code block only if need be.

    It remembers whether the part before it ended inside a code block.
    """

    def __init__(self) -> None:
        self._fence = ""

    def __call__(self, text: str) -> int:
        """Where the first part of a text ends."""
        half = len(text) // 2
        headings, fences = _marked(text, self._fence)
        turns = [at for at, _ in fences]
        paragraphs = [cut.end() for cut in _BLANK.finditer(text, half)]
        outside = [at for at in paragraphs if bisect_left(turns, at) % 2 == len(self._fence[:1])]
        good = [at for at in headings if at > half] or [at for at in outside if at < len(text)]
        end = good[-1] if good else _last(LINE_END, text)
        before = bisect_left(turns, end)
        self._fence = fences[before - 1][1] if before else self._fence
        return end


def _marked(text: str, fence: str) -> tuple[list[int], list[tuple[int, str]]]:
    """Where headings stand, and where code blocks begin (with their fence) and end (with none)."""
    headings: list[int] = []
    turns: list[tuple[int, str]] = []
    for found in _FENCE_OR_HEADING.finditer(text):
        is_end = bool(fence and found[1] and found[1].startswith(fence) and not found[2].strip())
        if not found[1] and not fence:
            headings.append(found.start())
        elif is_end or (found[1] and not fence):
            fence = "" if is_end else found[1]
            turns.append((found.start(), fence))
    return headings, turns


def _filled(file: TextIO, rest: str, limits: Limits) -> str:
    """What is left and what comes next, as much as makes a part; more, where a line is longer than that."""
    rest += file.read(PART - len(rest))
    if len(rest) == PART and not LINE_END.search(rest, 0, PART - 1):
        rest += file.readline(limits.line)
    checked(rest, limits)
    return rest


def _last(pattern: re.Pattern[str], text: str, start: int = 0) -> int:
    """Where the last match ends, but for the end of the text, which may split a line end."""
    return max((found.end() for found in pattern.finditer(text, start) if found.end() < len(text)), default=0)
