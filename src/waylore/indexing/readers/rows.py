"""Reads JSON Lines and CSV row by row, each row a document: no more than one row is held at a time.

A row's text is its `text` (or `content`, `body`, …) where it has one, else all its fields by name; its other
scalars are metadata. Lines that are conversations are handed to `reading_chat`. It infers no types.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import isfinite
from typing import Any, TextIO

from waylore.indexing.blocks import Block, Reading, Refusal, Refused, Source
from waylore.indexing.encoding import opened, storable
from waylore.indexing.readers.chat import conversation, is_conversation, is_message, joined_messages
from waylore.indexing.readers.plain import paragraphs
from waylore.types.knowledge import Scalar

_TEXTS = ("text", "content", "body", "passage", "abstract", "answer")
_TITLES = ("title", "name", "subject", "heading")
_BROKEN_LINES = 100  # reported one by one; with more of them it is hardly a file of that format
_LARGEST = 2**63 - 1
_TOLD_EVERY = 256  # rows


def json_lines(source: Source) -> Iterator[Reading | Refusal]:
    """Every line a document; or all lines one conversation, if the first is a message."""
    with opened(source) as file:
        rows = _objects(file, source)
        first, broken = next(rows, None), 0
        if first is None:
            raise Refused("it is empty")
        if isinstance(first[1], dict) and is_message(first[1]):
            yield from joined_messages(source, (row for _, row in chain([first], rows)))
            return
        for row in chain([first], rows):
            broken += not isinstance(row[1], dict)
            if broken > _BROKEN_LINES:
                raise Refused(
                    f"more than {_BROKEN_LINES} lines are not JSON objects: "
                    f"from line {row[0]} on it is not read"
                )
            yield from _reached(file, row[0], _row_documents(source, row))


def table(source: Source) -> Iterator[Reading | Refusal]:
    """Every row of a CSV or TSV file a document; its first row names the columns."""
    with opened(source) as file:
        delimiter = "\t" if source.path.suffix.lower() == ".tsv" else ","
        rows = csv.DictReader(_lines(file, source), delimiter=delimiter, restkey="more", restval="")
        try:
            if not rows.fieldnames:
                raise Refused("it is empty")
            number = 1
            for number, row in enumerate(rows, start=2):
                yield from _reached(file, number, _document(source, f"row={number}", row))
            if number == 1:
                raise Refused("it has a row of column names and no other")
        except (csv.Error, UnicodeDecodeError) as error:
            yield Refusal(source.uri, f"from line {rows.line_num + 1} on it cannot be read: {error}")


def _reached(file: TextIO, number: int, found: Iterable[Reading | Refusal]) -> Iterator[Reading | Refusal]:
    """What was found, now and then with how far the file was read: to ask costs a turn of the thread."""
    for item in found:
        if number % _TOLD_EVERY == 0 and isinstance(item, Reading):
            yield replace(item, reached=file.buffer.tell())
        else:
            yield item


def _lines(file: TextIO, source: Source) -> Iterator[str]:
    longest = source.limits.line
    while line := file.readline(longest + 1):
        if len(line) > longest:
            raise Refused(f"a line has more than {longest:,} characters: split it, or raise Limits(line=…)")
        yield line


def _objects(file: TextIO, source: Source) -> Iterator[tuple[int, Any]]:
    """Each line's number and value; a ValueError in its place where a line is broken."""
    for number, line in enumerate(_lines(file, source), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, error


def _row_documents(source: Source, numbered: tuple[int, Any]) -> Iterator[Reading | Refusal]:
    number, row = numbered
    place = f"line={number}"
    if isinstance(row, Exception):
        yield Refusal(f"{source.uri}#{place}", f"it is not JSON: {row}"[:300])
    elif isinstance(row, dict) and is_conversation(row):
        yield conversation(f"{source.uri}#{place}", source.name, row["messages"])
    elif isinstance(row, dict):
        yield from _document(source, place, row)
    else:
        yield Refusal(f"{source.uri}#{place}", "it is not a JSON object: a line must be {…}")


def _document(source: Source, place: str, row: Mapping[str, Any]) -> Iterator[Reading | Refusal]:
    uri = f"{source.uri}#{place}"
    fields = {storable(str(key)): value for key, value in row.items() if value not in (None, "", [], {})}
    own = next((key for key in _TEXTS if isinstance(fields.get(key), str)), "")
    named = next((key for key in _TITLES if isinstance(fields.get(key), str)), "")
    text = storable(
        fields[own] if own else "\n".join(f"{key}: {_said(value)}" for key, value in fields.items())
    )
    if not text.strip():
        yield Refusal(uri, "there is no text in it")
        return
    title = storable(fields[named]).strip() if named else source.name
    blocks = paragraphs(text, source.limits.blocks) if own else (Block("row", 0, len(text)),)
    metadata = {key: kept(value) for key, value in fields.items() if key not in (own, named) and is_kept(value)}
    yield Reading(uri, title, text, blocks, metadata)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def is_kept(value: object) -> bool:
    """Whether metadata can hold it: a scalar that every database takes, or a list of such."""
    if isinstance(value, list):
        return all(not isinstance(item, list) and is_kept(item) for item in value)
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, str) or (isinstance(value, int) and abs(value) <= _LARGEST)


def kept(value: Any) -> Scalar | list[Scalar]:
    """What metadata holds of a value that `is_kept`."""
    if isinstance(value, list):
        return [storable(item) if isinstance(item, str) else item for item in value]
    scalar: Scalar = storable(value) if isinstance(value, str) else value
    return scalar
