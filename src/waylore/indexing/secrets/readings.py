"""Leave secrets out of readings, and correct the offsets of their blocks and marks."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace

from waylore.indexing.blocks import Block, Mark, Reading
from waylore.indexing.secrets.leave_out import (
    PRIVATE,
    CleanText,
    Offsets,
    Secret,
    merge_secrets,
    replace_secrets,
)
from waylore.indexing.secrets.sieve import Sieve, find_field_kind


def clean_reading(reading: Reading, sieve: Sieve) -> tuple[Reading, CleanText]:
    """Return a reading without secrets, and its clean text with the list of its secrets."""
    if not sieve.is_on:
        return reading, CleanText(reading.text)
    clean = _clean_text(reading, sieve)
    metadata = sieve.clean_fields(reading.metadata)
    if not clean.secrets and not sieve.has_secrets(_list_labels(reading)):
        return replace(reading, metadata=metadata), clean
    places = Places(clean)
    moved = replace(reading, text=clean.text, metadata=metadata)
    renamed = dict(_rename_headings(reading, moved, places))
    blocks = (_move_block(block, places) for block in reading.blocks)
    kept = tuple(_clean_block(block, renamed, sieve) for block in blocks if block)
    title = sieve.clean_title(renamed.get(reading.title, reading.title))
    return replace(moved, blocks=kept, title=title), clean


class Places:
    """The new places of blocks in a text without its secrets."""

    def __init__(self, clean: CleanText) -> None:
        self.move = Offsets(clean.secrets).move
        self._secrets = clean.secrets
        self._ends = [secret.end for secret in clean.secrets]
        self._private = [secret for secret in clean.secrets if secret.kind == PRIVATE]
        self._private_ends = [secret.end for secret in self._private]

    def is_within(self, start: int, end: int) -> bool:
        """Return whether a span of the original is part of a secret."""
        number = bisect_right(self._ends, start)
        return number < len(self._ends) and self._secrets[number].start <= start and end <= self._ends[number]

    def has_private(self, block: Block) -> bool:
        """Return whether a block has a private part. Its headings and cells may be without the tags."""
        number = bisect_right(self._private_ends, block.start)
        return number < len(self._private) and self._private[number].start < block.end


def _clean_text(reading: Reading, sieve: Sieve) -> CleanText:
    """Return the text without secrets, and without values of data fields whose names mean passwords."""
    clean = sieve.take(reading.text)
    named = list(_find_named_fields(reading))
    if named:
        clean = replace_secrets(reading.text, merge_secrets([*clean.secrets, *named]))
        sieve.count(reading.text, clean)
    return clean


def _find_named_fields(reading: Reading) -> Iterator[Secret]:
    for block in reading.blocks:
        for key, value in block.cells:
            if kind := find_field_kind(key, value):
                start = reading.text.find(value, block.start, block.end)
                if start >= 0:
                    yield Secret(start, start + len(value), kind)


def _list_labels(reading: Reading) -> dict[str, None]:
    """Return the distinct texts beside the text of a reading: its title, headings, cells and addresses of links."""
    labels = {reading.title: None}
    for block in reading.blocks:
        labels |= dict.fromkeys((*block.headings, block.key, block.about))
        labels |= dict.fromkeys(text for cell in block.cells for text in cell)
        labels |= dict.fromkeys(mark.target for mark in block.marks)
    return labels


def _move_block(block: Block, places: Places) -> Block | None:
    """Return a block at its new place; None if it is within a secret, because the mark is part of the first block."""
    start, end = places.move(block.start), places.move(block.end)
    if start == end and block.start < block.end:
        return None
    moved = replace(block, start=start, end=end, marks=tuple(_move_marks(block, places)))
    return replace(moved, key="", cells=(), about="") if places.has_private(block) else moved


def _move_marks(block: Block, places: Places) -> Iterator[Mark]:
    """Yield the marks of a block at their new places, without marks inside of a secret."""
    for mark in block.marks:
        start, end = places.move(mark.start), places.move(mark.end)
        if start < end and (mark.kind == "markup" or not places.is_within(mark.start, mark.end)):
            yield replace(mark, start=start, end=end)


def _rename_headings(reading: Reading, moved: Reading, places: Places) -> Iterator[tuple[str, str]]:
    """Yield the headings with a private part, each with its remaining words."""
    for block in reading.blocks:
        if block.headings and block.kind == "heading" and places.has_private(block):
            here = _move_block(block, places)
            yield block.headings[-1], moved.strip_markup(here)[0].strip() if here else ""


def _clean_block(block: Block, renamed: Mapping[str, str], sieve: Sieve) -> Block:
    return replace(
        block,
        headings=tuple(sieve.clean(renamed.get(heading, heading)) for heading in block.headings),
        key=sieve.clean(block.key),
        cells=tuple(sieve.clean_cell(*cell) for cell in block.cells),
        marks=tuple(replace(mark, target=sieve.clean(mark.target)) for mark in block.marks),
        about=sieve.clean(renamed.get(block.about, block.about)),
    )
