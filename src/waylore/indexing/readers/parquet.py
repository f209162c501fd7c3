"""Read Parquet: each row becomes a document, as a line of JSON Lines does; some hundred rows are held in memory."""

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Skipped, Source, require_library
from waylore.indexing.readers.rows import read_row

ROWS = 256  # rows that are read at a time


def read_parquet(source: Source) -> Iterator[Reading | Skipped]:
    """Read each row as a document. Times are written as text; bytes are left out."""
    number = source.first_row - 1
    for number, row in enumerate(_read_rows(source), source.first_row):
        yield from read_row(source, f"row={number}", _to_plain(row))
    if number == source.first_row - 1:
        raise ReadError("it is empty")


def _read_rows(source: Source) -> Iterator[Any]:
    parquet = require_library("pyarrow.parquet", "parquet")
    arrow = require_library("pyarrow", "parquet")
    if not source.path.stat().st_size:
        raise ReadError("it is empty")
    try:
        with parquet.ParquetFile(source.path) as file:
            for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
                yield from batch.to_pylist()
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"it is no Parquet file, or damaged: {error}") from error


def _to_plain(value: Any) -> Any:
    """Return a value as plain JSON."""
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_to_plain(each) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return None if isinstance(value, bytes) else value
