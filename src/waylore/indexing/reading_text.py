"""Reads plain text: its paragraphs are its blocks, and a long one comes in parts. It knows no markup."""

import re
from collections.abc import Iterator

from waylore.indexing.blocks import Block, Reading, Refused, Source, over
from waylore.indexing.decoding import decoded
from waylore.indexing.reading_parts import after_a_paragraph, is_long, parts

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
