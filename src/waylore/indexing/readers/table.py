"""Read CSV and TSV: each row becomes a document, and only a sample of the rows is held in memory.

The sample shows whether the first row names the columns, and which column names the rows, so that a fact about a row
has the row as its subject and not the file.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

from waylore.indexing.blocks import ReadError, Reading, Skipped, Source
from waylore.indexing.encoding import open_text
from waylore.indexing.readers.rows import add_bytes_read, build_reading, get_title_field, read_lines

Cells: TypeAlias = list[str]
_SAMPLE_ROWS = 100
_MAX_NAME_CHARACTERS = 80
_MORE = "more"  # name of cells beyond the columns of the first row
_NUMBER = re.compile(r"\W*\d[\d\s.,:/%+-]*\W*")
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+|https?://\S+")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The names of the columns (none if the first row has values), and the position of the column that names rows."""

    names: tuple[str, ...]
    key: int | None


def read_table(source: Source) -> Iterator[Reading | Skipped]:
    """Read each row of a CSV or TSV file as a document."""
    with open_text(source) as file:
        delimiter = "\t" if source.path.suffix.lower() == ".tsv" else ","
        rows = _parse_rows(source, read_lines(file, source), delimiter)
        sample = list(islice(rows, _SAMPLE_ROWS))
        shape = _find_shape([row for row in sample if not isinstance(row, Skipped)])
        for number, row in enumerate(chain(sample, rows), start=1):
            if isinstance(row, Skipped):
                yield row
            elif number > 1 or not shape.names:
                yield from add_bytes_read(file, number, _read_row(source, f"row={number}", row, shape))


def _parse_rows(source: Source, lines: Iterable[str], delimiter: str) -> Iterator[Cells | Skipped]:
    """Yield the cells of each row that is not empty. A broken row and all rows after it are skipped."""
    rows = csv.reader(lines, delimiter=delimiter)
    try:
        yield from filter(None, rows)
    except (csv.Error, UnicodeDecodeError) as error:
        yield Skipped(source.uri, f"from line {rows.line_num + 1} on it cannot be read: {error}")


def _read_row(source: Source, place: str, row: Cells, shape: _Shape) -> Iterator[Reading | Skipped]:
    name = "" if shape.key is None or shape.key >= len(row) else row[shape.key].strip()
    title = f"{name} ({source.name})" if name else source.name
    if not shape.names:
        yield from build_reading(source, place, {"text": ", ".join(filter(None, map(str.strip, row)))}, title)
        return
    fields: dict[str, str | Cells] = dict(zip(shape.names, row, strict=False))
    if len(row) > len(shape.names):
        fields[_MORE] = row[len(shape.names) :]
    title_field = shape.names[shape.key] if shape.key is not None else ""
    yield from build_reading(source, place, fields, title, title_field)


def _find_shape(sample: Sequence[Cells]) -> _Shape:
    """Find the names of the columns and the column that names rows. Raise ReadError if there are no rows."""
    if not sample:
        raise ReadError("it is empty")
    if len(sample) == 1:
        raise ReadError("it has column names and no rows")
    first, *rest = sample
    names = tuple(first) if _has_names(first, rest) else ()
    values = rest if names else sample
    is_named = bool(get_title_field(dict.fromkeys(names, "")))
    key = None if is_named else next((place for place in range(len(first)) if _names_rows(place, values)), None)
    return _Shape(names, key)


def _has_names(first: Cells, rest: Sequence[Cells]) -> bool:
    """Return whether the first row names the columns: no cell of it is a value of its column.

    Numbers above numbers, addresses above addresses, and cells that recur in their column are values. Years in order
    are names. A row that is equal to the first one repeats the head.
    """
    numbers = [place for place, cell in enumerate(first) if _is_number(cell)]
    years = [first[place].strip() for place in numbers]
    if len(years) > 1 and all(map(_YEAR.fullmatch, years)) and years in (sorted(set(years)), sorted(set(years))[::-1]):
        return True
    values = [row for row in rest if row != first]
    columns = [(cell.strip(), _get_column(place, values)) for place, cell in enumerate(first)]
    return not any(_is_value(cell, column) for cell, column in columns if cell)


def _is_value(cell: str, column: Cells) -> bool:
    """Return whether a cell is one of the values of the column below it."""
    kinds = [kind for kind in (_is_number, _is_address) if kind(cell)]
    return cell in column or any(all(map(kind, column)) for kind in kinds)


def _names_rows(place: int, values: Sequence[Cells]) -> bool:
    """Return whether a column names rows: each row has a distinct short value that is not a number."""
    column = _get_column(place, values)
    is_name = all(len(cell) <= _MAX_NAME_CHARACTERS and not _is_number(cell) for cell in column)
    return is_name and len(set(column)) == len(column) == len(values)


def _get_column(place: int, rows: Iterable[Cells]) -> list[str]:
    """Return the values of a column, without empty cells."""
    cells = (row[place].strip() for row in rows if place < len(row))
    return list(filter(None, cells))


def _is_address(cell: str) -> bool:
    return _ADDRESS.fullmatch(cell) is not None


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None
