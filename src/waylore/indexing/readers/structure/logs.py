"""Split a long log of dated sections, such as meeting notes or a changelog, into one page for each section.

The address of a page ends in the date or version of its section, so that it stays when entries are added above.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from waylore.indexing.blocks import Block, Reading
from waylore.indexing.readers.structure.titles import is_dated

MIN_CHARACTERS = 10_000  # a shorter log is one page
MIN_SECTIONS = 3
MIN_SECTION_CHARACTERS = 500  # average length; shorter entries are better read together
_NOT_SLUG = re.compile(r"[^\w.]+")


def split_log(reading: Reading) -> Iterator[Reading]:
    """Yield the page above the first dated section and a page for each section, or the reading itself."""
    starts = _find_starts(reading)
    if not starts:
        yield reading
        return
    seen: Counter[str] = Counter()
    for first, last in zip([0, *starts], [*starts, len(reading.blocks)], strict=True):
        if first == last:
            continue
        heading = _get_heading(reading.blocks[first:last]) if first in starts else ""
        slug = _NOT_SLUG.sub("-", heading.lower()).strip("-")[:80]
        seen[slug] += 1
        number = f"-{seen[slug]}" if seen[slug] > 1 else ""
        uri = f"{reading.uri}#section={slug}{number}" if heading else reading.uri
        yield _cut(reading, first, last, uri, f"{reading.title}: {heading}" if heading else reading.title)


def _find_starts(reading: Reading) -> list[int]:
    """Return the places of blocks at which pages begin; none if a document is not a long log."""
    headings = [(n, block) for n, block in enumerate(reading.blocks) if block.kind == "heading" and block.headings]
    dated = Counter(len(block.headings) for _, block in headings if is_dated(block.headings[-1]))
    deep = [depth for depth, count in dated.items() if count >= MIN_SECTIONS]
    if not deep or len(reading.text) < max(MIN_CHARACTERS, MIN_SECTION_CHARACTERS * dated[max(deep)]):
        return []
    above = {n for n, block in headings if len(block.headings) <= max(deep)}
    first = min(n for n, block in headings if len(block.headings) == max(deep) and is_dated(block.headings[-1]))
    while first - 1 in above and len(reading.blocks[first - 1].headings) > 1:
        first -= 1
    return [n for n in sorted(above) if n >= first and (n - 1 not in above or n == first)]


def _get_heading(blocks: tuple[Block, ...]) -> str:
    """Return the heading of a page: the last of the headings at its beginning."""
    heading = ""
    for block in blocks:
        if block.kind != "heading" or (heading and is_dated(heading) and not is_dated(block.headings[-1])):
            break
        heading = block.headings[-1]
    return heading


def _cut(reading: Reading, first: int, last: int, uri: str, title: str) -> Reading:
    """Return a part of a reading as a separate document."""
    blocks = reading.blocks[first:last]
    start = blocks[0].start if first else 0
    end = reading.blocks[last].start if last < len(reading.blocks) else len(reading.text)
    moved = tuple(_move(block, -start) for block in blocks)
    return replace(
        reading, uri=uri, title=title, text=reading.text[start:end], blocks=moved, start=reading.start + start
    )


def _move(block: Block, by: int) -> Block:
    marks = tuple(replace(mark, start=mark.start + by, end=mark.end + by) for mark in block.marks)
    return replace(block, start=block.start + by, end=block.end + by, marks=marks)
