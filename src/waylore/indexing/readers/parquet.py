"""Read Parquet: each row becomes a document, as a line of JSON Lines does; some hundred rows are held in memory."""

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Skipped, Source, require_library
from waylore.indexing.readers.rows import read_row

ROWS = 256  # read at a time


def read_parquet(source: Source) -> Iterator[Reading | Skipped]:
    """Read each row as a document. Times are written as text; bytes are left out."""
    parquet = require_library("pyarrow.parquet", "parquet")
    number = source.first_row
    with parquet.ParquetFile(source.path) as file:
        for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
            for row in batch.to_pylist():
                yield from read_row(source, f"row={number}", _to_plain(row))
                number += 1
    if number == source.first_row:
        raise ReadError("it is empty")


def _to_plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_to_plain(each) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return None if isinstance(value, bytes) else value
