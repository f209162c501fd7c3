"""The rows of a file that is imported, each with its place: lines of JSON, elements of a list, rows of a table.

A row that cannot be read is refused where it stands and the next one is read; lines are held one at a time, a
JSON file that is one value is held whole. Text is UTF-8 unless a byte order mark says otherwise. What a row
means is the importer's affair.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TextIO, TypeAlias

from waylore.errors import WayloreError
from waylore.indexing.blocks import Refusal, Refused, Source
from waylore.indexing.encoding import marked_encoding, storable
from waylore.indexing.readers.rows import is_kept, kept
from waylore.types.knowledge import Contribution, Metadata

LONGEST_NAME = 1_000
LONGEST_REASON = 300
DELIMITERS = ",\t;"
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that is not UTF-8, as `surrogateescape` reads it
_BROKEN = (Refused, WayloreError, ValueError, TypeError, OverflowError, RecursionError)
Fields: TypeAlias = Mapping[str, Any]


class Row(NamedTuple):
    """One thing that a file says, and where."""

    uri: str
    value: Any


def each(
    rows: Iterable[Row | Refusal], made: Callable[[Any], Iterable[Contribution]]
) -> Iterator[Contribution | Refusal]:
    """What is made of each row's value; a row of which nothing can be made is refused, and the next is read."""
    for row in rows:
        if isinstance(row, Refusal):
            yield row
            continue
        try:
            contributions = list(made(row.value))
        except _BROKEN as error:
            yield Refusal(row.uri, str(error)[:LONGEST_REASON])
        else:
            yield from contributions


def json_rows(source: Source) -> Iterator[Row | Refusal]:
    """Each line of JSON Lines; of a `.json` file that is one value, each element, or the value."""
    if source.path.suffix.lower() == ".json" and not _is_lines(source):
        yield from _elements(source)
        return
    for uri, line in lines(source):
        if isinstance(line, Refusal):
            yield line
        elif line.strip():
            try:
                yield Row(uri, json.loads(line))
            except (ValueError, RecursionError) as error:
                yield Refusal(uri, _not_json(error))


def table_rows(source: Source) -> Iterator[Row | Refusal]:
    """Each row of a CSV or TSV file by the names in its first row, which tells the delimiter too."""
    header: list[str] | None = None
    for row in _cells(source):
        if isinstance(row, Refusal):
            yield row
        elif header is None:
            header = [cell.strip().lower() for cell in row.value]
        elif len(row.value) != len(header):
            yield Refusal(row.uri, f"it has {len(row.value)} cells, the first row has {len(header)}")
        else:
            yield Row(row.uri, dict(zip(header, row.value, strict=True)))


def lines(source: Source) -> Iterator[tuple[str, str | Refusal]]:
    """Each line and its place; one that is too long, or not text, comes as a refusal."""
    longest = source.limits.line
    with _opened(source) as file:
        number = 0
        while line := file.readline(longest + 1):
            number += 1
            uri = f"{source.uri}#line={number}"
            if len(line) > longest:
                _skip(file, line)
                reason = f"it has more than {longest:,} characters: split it, or raise Limits(line=…)"
                yield uri, Refusal(uri, reason)
            elif _ESCAPED.search(line):
                yield uri, Refusal(uri, "it is not UTF-8: save the file as UTF-8")
            else:
                yield uri, line


# -- the fields of a row -------------------------------------------------------------------------------


def said(row: Fields, *names: str) -> str:
    """The text, or the number as text, under the first of these names that has one."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            text = storable(str(value)).strip()
            if text:
                return text
    return ""


def name_in(row: Fields, *names: str) -> str:
    """What is named under one of these names; without it, or with one that no name is so long as, a refusal."""
    name = said(row, *names)
    if not name:
        raise Refused(f"it has no {names[0]}")
    if len(name) > LONGEST_NAME:
        raise Refused(f"its {names[0]} has more than {LONGEST_NAME:,} characters: that is no name")
    return name


def listed(row: Fields, *names: str) -> list[Any]:
    """The values under the first of these names that has any; one that is no list is a list of one."""
    for name in names:
        value = row.get(name)
        if isinstance(value, list) and value:
            return value
        if isinstance(value, str) and value.strip():
            return [value]
    return []


def texts_in(row: Fields, *names: str) -> list[str]:
    """The texts under the first of these names that has any, each once."""
    every = (storable(value).strip() for value in listed(row, *names) if isinstance(value, str))
    return list(dict.fromkeys(text for text in every if text))


def number_in(row: Fields, name: str, default: float) -> float:
    """The number under a name, which may be written as text."""
    value = row.get(name)
    return default if value in (None, "") else float(value)


def moment_in(row: Fields, name: str) -> datetime | None:
    """The moment under a name, in UTC; a date is its first moment."""
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError as error:
        raise Refused(f"its {name} {str(value)[:40]!r} is not a date: write it as 2026-01-31") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def rest_of(row: Fields, used: Iterable[str], frame: Metadata) -> Metadata:
    """What else a row has and metadata can hold; what the caller said of all rows counts more."""
    skipped = set(used)
    fields = {
        storable(str(key)): kept(value)
        for key, value in row.items()
        if key not in skipped and value not in (None, "", []) and is_kept(value)
    }
    return {**fields, **frame}


# -- files ---------------------------------------------------------------------------------------------


def _opened(source: Source) -> TextIO:
    with source.path.open("rb") as file:
        encoding = marked_encoding(file.read(4)) or "utf-8"
    return source.path.open(encoding=encoding, errors="surrogateescape", newline="\n")


def _skip(file: TextIO, line: str) -> None:
    """Read on to the end of a line that is too long, holding little of it."""
    while line and not line.endswith("\n"):
        line = file.readline(65_536)


def _is_lines(source: Source) -> bool:
    """Whether the first line says something by itself: a record, or a list of plain values."""
    for _, line in islice(lines(source), 1):
        try:
            value = json.loads(line) if isinstance(line, str) else None
        except (ValueError, RecursionError):
            return False
        is_flat = isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
        return isinstance(value, dict) or is_flat
    return False


def _elements(source: Source) -> Iterator[Row | Refusal]:
    content = source.content()
    try:
        value = json.loads(content.decode(marked_encoding(content) or "utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(_not_json(error)) from error
    if not isinstance(value, list):
        yield Row(source.uri, value)
        return
    for number, element in enumerate(value, start=1):
        yield Row(f"{source.uri}#item={number}", element)


def _not_json(error: Exception) -> str:
    place = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
    return f"it is not JSON: {place}"[:LONGEST_REASON]


def _cells(source: Source) -> Iterator[Row | Refusal]:
    """The cells of each row that has any; the reader goes on behind a row that is broken."""
    refused: list[Refusal] = []
    rows = csv.reader(_table_lines(source, refused), delimiter=_delimiter(source))
    is_more = True
    while is_more:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            yield Refusal(f"{source.uri}#line={rows.line_num}", f"it is not a row of a table: {error}")
        else:
            is_more = cells is not None
            yield from refused
            refused.clear()
            if cells:
                yield Row(f"{source.uri}#line={rows.line_num}", cells)


def _table_lines(source: Source, refused: list[Refusal]) -> Iterator[str]:
    """Lines for the reader of a table; an empty one for each that is refused, so that it counts right."""
    for _, line in lines(source):
        if isinstance(line, Refusal):
            refused.append(line)
        yield "\n" if isinstance(line, Refusal) else line


def _delimiter(source: Source) -> str:
    first = next((line for _, line in lines(source) if isinstance(line, str)), "")
    return max(DELIMITERS, key=first.count)
