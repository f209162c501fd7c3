"""Read JSON Lines: each line becomes a document, and only one line is held in memory.

The text of a row is its field `text` (or `content`, `body`, …), or all fields with their names if it has
none. Its other scalars become metadata. Lines that are conversations are read by `readers.chat`. The module
infers no types.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import isfinite
from typing import Any, TextIO

from waylore.indexing.blocks import Block, ReadError, Reading, Skipped, Source
from waylore.indexing.encoding import make_storable, open_text
from waylore.indexing.readers.chat import build_conversation, is_conversation, is_message, read_messages
from waylore.indexing.readers.plain import find_paragraphs
from waylore.types.knowledge import Scalar

_TEXT_FIELDS = ("text", "content", "body", "passage", "abstract", "answer")
_TITLE_FIELDS = ("title", "name", "subject", "heading")
_MAX_BROKEN_LINES = 100  # a file with more broken lines is hardly JSON Lines
_MAX_INTEGER = 2**63 - 1
_REPORT_EVERY = 256  # rows between reports of the bytes read


def read_json_lines(source: Source) -> Iterator[Reading | Skipped]:
    """Read each line as a document, or all lines as one conversation if the first is a message."""
    with open_text(source) as file:
        rows = _read_objects(file, source)
        first, broken = next(rows, None), 0
        if first is None:
            raise ReadError("it is empty")
        if isinstance(first[1], dict) and is_message(first[1]):
            yield from read_messages(source, (row for _, row in chain([first], rows)))
            return
        for row in chain([first], rows):
            broken += not isinstance(row[1], dict)
            if broken > _MAX_BROKEN_LINES:
                raise ReadError(
                    f"more than {_MAX_BROKEN_LINES} lines are not JSON objects: reading stopped at line {row[0]}"
                )
            yield from add_bytes_read(file, row[0], read_row(source, f"line={row[0]}", row[1]))


def add_bytes_read(file: TextIO, number: int, items: Iterable[Reading | Skipped]) -> Iterator[Reading | Skipped]:
    """Yield the items; items of some rows get the number of bytes read, because `tell` is too slow for every row."""
    for item in items:
        if number % _REPORT_EVERY == 0 and isinstance(item, Reading):
            yield replace(item, bytes_read=file.buffer.tell())
        else:
            yield item


def read_lines(file: TextIO, source: Source) -> Iterator[str]:
    """Yield the lines of a file. Raise ReadError if one is too long."""
    max_length = source.limits.line
    while line := file.readline(max_length + 1):
        if len(line) > max_length:
            raise ReadError(f"a line has more than {max_length:,} characters: split it, or raise the limit `line`")
        yield line


def _read_objects(file: TextIO, source: Source) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each line; the value of a broken line is the error."""
    for number, line in enumerate(read_lines(file, source), start=source.first_row):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, error


def read_row(source: Source, place: str, row: Any) -> Iterator[Reading | Skipped]:
    """Yield the document of a row, or the reason for skipping it; a row with messages is a conversation."""
    if isinstance(row, Exception):
        yield Skipped(f"{source.uri}#{place}", f"it is not JSON: {row}"[:300])
    elif isinstance(row, dict) and is_conversation(row):
        yield build_conversation(f"{source.uri}#{place}", source.name, row["messages"])
    elif isinstance(row, dict):
        yield from build_reading(source, place, row)
    else:
        yield Skipped(f"{source.uri}#{place}", "it is not a JSON object: a line must be {…}")


def build_reading(
    source: Source, place: str, row: Mapping[str, Any], title: str = "", title_field: str = ""
) -> Iterator[Reading | Skipped]:
    """Yield the document of a row. Its title is in a field of that name, else `title`, else the name of the file."""
    uri = f"{source.uri}#{place}"
    fields = {make_storable(str(key)): value for key, value in row.items() if value not in (None, "", [], {})}
    text_field = next((key for key in _TEXT_FIELDS if isinstance(fields.get(key), str)), "")
    titled = get_title_field(fields)
    text = make_storable(
        fields[text_field] if text_field else "\n".join(f"{key}: {_to_text(value)}" for key, value in fields.items())
    )
    if not text.strip():
        yield Skipped(uri, "it has no text")
        return
    title = make_storable(fields[titled] if titled else title or source.name).strip()
    cells = tuple((key, make_storable(_to_text(value))) for key, value in fields.items())
    block = Block("row", 0, len(text), cells=cells)
    blocks = find_paragraphs(text, source.limits.blocks) if text_field else (block,)
    others = {key: value for key, value in fields.items() if key not in (text_field, titled or title_field)}
    metadata = {key: to_metadata(value) for key, value in others.items() if is_metadata(value)}
    yield Reading(uri, title, text, blocks, metadata)


def get_title_field(fields: Mapping[str, Any]) -> str:
    """Return the name of the field that has the title of a row; empty if there is none."""
    return next((key for key in _TITLE_FIELDS if isinstance(fields.get(key), str)), "")


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def is_metadata(value: object) -> bool:
    """Return whether metadata can hold a value: a scalar that every database accepts, or a list of scalars."""
    if isinstance(value, list):
        return all(not isinstance(item, list) and is_metadata(item) for item in value)
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, str) or (isinstance(value, int) and abs(value) <= _MAX_INTEGER)


def to_metadata(value: Any) -> Scalar | list[Scalar]:
    """Convert a value to metadata; `is_metadata` must hold."""
    if isinstance(value, list):
        return [make_storable(item) if isinstance(item, str) else item for item in value]
    scalar: Scalar = make_storable(value) if isinstance(value, str) else value
    return scalar
