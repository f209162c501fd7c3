"""Reads plain text: its paragraphs are its blocks. It knows no markup."""

import re
from collections.abc import Iterator

from weft.indexing.blocks import Block, Reading, Refused, Source, over
from weft.indexing.decoding import decoded

_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:(?:\r\n?|\n)[^\S\r\n]*[^\s][^\r\n]*)*")


def text(source: Source) -> Iterator[Reading]:
    """A text file as one document."""
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
