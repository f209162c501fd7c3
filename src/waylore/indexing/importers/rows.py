"""Read the rows of a file to import, each with its place: lines of JSON, items of a list, rows of a table.

A row that cannot be read is reported as skipped, and the next one is read. Lines are held one at a time; a JSON file
with a single value is held completely. Text is UTF-8 unless there is a byte order mark. The module does not interpret
rows; the importers do.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TextIO, TypeAlias

from waylore.errors import WayloreError
from waylore.indexing.blocks import ReadError, Skipped, Source
from waylore.indexing.encoding import detect_bom, make_storable
from waylore.indexing.readers.rows import is_metadata, to_metadata
from waylore.types.knowledge import IndexedDocument, Metadata

MAX_NAME_CHARACTERS = 1_000
MAX_REASON_CHARACTERS = 300
DELIMITERS = ",\t;"
_ESCAPED = re.compile("[\udc80-\udcff]")  # the form of a byte that is not UTF-8 with `surrogateescape`
_BROKEN = (ReadError, WayloreError, ValueError, TypeError, OverflowError, RecursionError)
Fields: TypeAlias = Mapping[str, Any]


class ImportRow(NamedTuple):
    """One row of a file, with its address."""

    uri: str
    value: Any


def convert_rows(
    rows: Iterable[ImportRow | Skipped], convert: Callable[[Any], Iterable[IndexedDocument]]
) -> Iterator[IndexedDocument | Skipped]:
    """Yield the documents of each row; a row that cannot be converted is skipped with the reason."""
    for row in rows:
        if isinstance(row, Skipped):
            yield row
            continue
        try:
            documents = list(convert(row.value))
        except _BROKEN as error:
            yield Skipped(row.uri, str(error)[:MAX_REASON_CHARACTERS])
        else:
            yield from documents


def read_json_rows(source: Source) -> Iterator[ImportRow | Skipped]:
    """Yield the value of each line; for a `.json` file with a single value, the items of the list or the value."""
    if source.path.suffix.lower() == ".json" and not _is_lines(source):
        yield from _read_elements(source)
        return
    for uri, line in read_lines(source):
        if isinstance(line, Skipped):
            yield line
        elif line.strip():
            try:
                yield ImportRow(uri, source.clean(json.loads(line)))
            except (ValueError, RecursionError) as error:
                yield Skipped(uri, _describe_json_error(error))


def read_table_rows(source: Source) -> Iterator[ImportRow | Skipped]:
    """Yield each row of a CSV or TSV file as a dict; the first row has the names and shows the delimiter."""
    header: list[str] | None = None
    for row in _read_cells(source):
        if isinstance(row, Skipped):
            yield row
        elif header is None:
            header = [cell.strip().lower() for cell in row.value]
        elif len(row.value) != len(header):
            yield Skipped(row.uri, f"it has {len(row.value)} cells, the first row has {len(header)}")
        else:
            yield ImportRow(row.uri, source.clean(dict(zip(header, row.value, strict=True))))


def read_lines(source: Source) -> Iterator[tuple[str, str | Skipped]]:
    """Yield the address and text of each line, or a `Skipped` if it is too long or not text."""
    max_length = source.limits.line
    with _open(source) as file:
        number = 0
        while line := file.readline(max_length + 1):
            number += 1
            uri = f"{source.uri}#line={number}"
            if len(line) > max_length:
                _skip_line(file, line)
                reason = f"it has more than {max_length:,} characters: split it, or raise the limit `line`"
                yield uri, Skipped(uri, reason)
            elif _ESCAPED.search(line):
                yield uri, Skipped(uri, "it is not UTF-8: save the file as UTF-8")
            else:
                yield uri, line


# -- the fields of a row -------------------------------------------------------------------------------


def get_text(row: Fields, *names: str) -> str:
    """Return the first text or number, as text, among these fields, or an empty string."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            text = make_storable(str(value)).strip()
            if text:
                return text
    return ""


def get_name(row: Fields, *names: str) -> str:
    """Return the first text among these fields. Raise ReadError if all are empty, or it is too long."""
    name = get_text(row, *names)
    if not name:
        raise ReadError(f"it has no {names[0]}")
    if len(name) > MAX_NAME_CHARACTERS:
        raise ReadError(f"its {names[0]} has more than {MAX_NAME_CHARACTERS:,} characters: shorten it")
    return name


def get_list(row: Fields, *names: str) -> list[Any]:
    """Return the first list among these fields that is not empty; a text becomes a list of one."""
    for name in names:
        value = row.get(name)
        if isinstance(value, list) and value:
            return value
        if isinstance(value, str) and value.strip():
            return [value]
    return []


def get_texts(row: Fields, *names: str) -> list[str]:
    """Return the distinct texts of the first list among these fields that is not empty."""
    every = (make_storable(value).strip() for value in get_list(row, *names) if isinstance(value, str))
    return list(dict.fromkeys(text for text in every if text))


def get_number(row: Fields, name: str, default: float) -> float:
    """Return the number in a field, which may be written as text."""
    value = row.get(name)
    return default if value in (None, "") else float(value)


def get_time(row: Fields, name: str) -> datetime | None:
    """Return the time in a field, in UTC; a date means its beginning."""
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError as error:
        raise ReadError(f"its {name} {str(value)[:40]!r} is not a date: write it as 2026-01-31") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def get_metadata(row: Fields, used: Iterable[str], template: Metadata) -> Metadata:
    """Return the other fields of a row that metadata can hold; the caller's metadata takes precedence."""
    used_names = set(used)
    fields = {
        make_storable(str(key)): to_metadata(value)
        for key, value in row.items()
        if key not in used_names and value not in (None, "", []) and is_metadata(value)
    }
    return {**fields, **template}


# -- files ---------------------------------------------------------------------------------------------


def _open(source: Source) -> TextIO:
    with source.path.open("rb") as file:
        encoding = detect_bom(file.read(4)) or "utf-8"
    return source.path.open(encoding=encoding, errors="surrogateescape", newline="\n")


def _skip_line(file: TextIO, line: str) -> None:
    """Read to the end of a line that is too long, a piece at a time."""
    while line and not line.endswith("\n"):
        line = file.readline(65_536)


def _is_lines(source: Source) -> bool:
    """Return whether the first line is complete JSON: an object, or a list of plain values."""
    for _, line in islice(read_lines(source), 1):
        try:
            value = json.loads(line) if isinstance(line, str) else None
        except (ValueError, RecursionError):
            return False
        is_flat = isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
        return isinstance(value, dict) or is_flat
    return False


def _read_elements(source: Source) -> Iterator[ImportRow | Skipped]:
    content = source.read_bytes()
    try:
        value = source.clean(json.loads(content.decode(detect_bom(content) or "utf-8")))
    except (ValueError, RecursionError) as error:
        raise ReadError(_describe_json_error(error)) from error
    if not isinstance(value, list):
        yield ImportRow(source.uri, value)
        return
    for number, element in enumerate(value, start=1):
        yield ImportRow(f"{source.uri}#item={number}", element)


def _describe_json_error(error: Exception) -> str:
    place = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
    return f"it is not JSON: {place}"[:MAX_REASON_CHARACTERS]


def _read_cells(source: Source) -> Iterator[ImportRow | Skipped]:
    """Yield the cells of each row that is not empty; a broken row is skipped."""
    skipped: list[Skipped] = []
    rows = csv.reader(_read_table_lines(source, skipped), delimiter=_detect_delimiter(source))
    is_more = True
    while is_more:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            yield Skipped(f"{source.uri}#line={rows.line_num}", f"it is not a row of a table: {error}")
        else:
            is_more = cells is not None
            yield from skipped
            skipped.clear()
            if cells:
                yield ImportRow(f"{source.uri}#line={rows.line_num}", cells)


def _read_table_lines(source: Source, skipped: list[Skipped]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one for each skipped line, so that line numbers stay correct."""
    for _, line in read_lines(source):
        if isinstance(line, Skipped):
            skipped.append(line)
        yield "\n" if isinstance(line, Skipped) else line


def _detect_delimiter(source: Source) -> str:
    first = next((line for _, line in read_lines(source) if isinstance(line, str)), "")
    return max(DELIMITERS, key=first.count)
