"""Cuts a text into passages at paragraphs, then at sentences, then at words; every piece knows its place.

A piece is at most `longest` characters (about 300 tokens, which every embedder reads whole). It does not
know formats or headings.
"""

import re
from collections.abc import Iterator

LONGEST = 1_200
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_WORDS = re.compile(r"\s+")
_CUTS = (_PARAGRAPHS, _SENTENCES, _WORDS)


def pieces(text: str, *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Where the passages of a text begin and end; together they hold all of it but white space."""
    packed: list[tuple[int, int]] = []
    for start, end in _split(text, 0, len(text), longest, 0):
        if packed and end - packed[-1][0] <= longest:
            packed[-1] = (packed[-1][0], end)
        else:
            packed.append((start, end))
    return packed


def _split(text: str, start: int, end: int, longest: int, level: int) -> Iterator[tuple[int, int]]:
    start, end = _trimmed(text, start, end)
    if start == end:
        return
    if end - start <= longest:
        yield start, end
    elif level == len(_CUTS):
        yield from ((at, min(at + longest, end)) for at in range(start, end, longest))
    else:
        last = start
        for cut in _CUTS[level].finditer(text, start, end):
            yield from _split(text, last, cut.start(), longest, level + 1)
            last = cut.end()
        yield from _split(text, last, end, longest, level + 1)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
