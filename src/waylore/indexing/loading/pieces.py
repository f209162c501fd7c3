"""Split long files of rows, JSON Lines and Parquet, into pieces that several processes prepare.

A piece is a small file of the same format with the number of its first row. So the same reader reads it, and its
documents have the same addresses. All other files stay whole.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any, TypeAlias

from waylore.indexing.blocks import Skipped, Source, catch_read_errors, describe_open_error, require_library
from waylore.indexing.encoding import open_text
from waylore.indexing.files.compare import KnownFile, compare_file
from waylore.indexing.loading.job import LoadJob, Piece, Unit
from waylore.indexing.loading.sources import fetch
from waylore.indexing.readers.chat import is_message
from waylore.indexing.readers.parquet import ROWS
from waylore.indexing.readers.rows import read_lines

Rows: TypeAlias = tuple[int, bytes]  # the number of the first row, and the bytes of a file with the rows


def split_files(files: Sequence[KnownFile], job: LoadJob) -> Iterator[Unit]:
    """Yield units of work: several small files, or a piece of a long one."""
    split = SPLITTERS.get(files[0].path.suffix.lower())
    if len(files) == 1 and split and files[0].size > job.unit_bytes:
        yield from ([piece] for piece in _split_file(files[0], split, job))
    else:
        yield [Piece(file) for file in files]


def _split_file(file: KnownFile, split: "Splitter", job: LoadJob) -> Iterator[Piece]:
    """Yield the pieces of a file; if a part cannot be read, also a piece with the reason."""
    whole = Piece(file)
    try:
        with fetch(whole) as path:
            read = compare_file(replace(file, path=path), job.task, job.stamp)
            if read.is_unchanged:
                yield replace(whole, read=read)
                return
            yield from _number_pieces(replace(whole, read=read), split(read.source, job.unit_bytes))
    except OSError as error:
        yield replace(whole, skipped=(Skipped(whole.key, describe_open_error(error)),), content=b"")


def _number_pieces(whole: Piece, found: Iterator[Rows | None]) -> Iterator[Piece]:
    """Yield a piece for each part of a file; the whole file if it must not be split."""
    number, skipped = 0, list[Skipped]()
    last: Piece | None = None
    for rows in catch_read_errors(whole.key, lambda: found):
        if rows is None:
            yield whole
            return
        if isinstance(rows, Skipped):
            skipped.append(rows)
            continue
        if last is not None:
            yield last
        last = replace(whole, number=number, is_last=False, content=rows[1], first_row=rows[0])
        number += 1
    if last is None:
        yield replace(whole, skipped=tuple(skipped)) if skipped else whole
    else:
        yield replace(last, is_last=True, skipped=tuple(skipped))


def _split_lines(source: Source, max_bytes: int) -> Iterator[Rows | None]:
    """Yield lines in UTF-8; None if the lines are the messages of one conversation."""
    lines, size, first = list[str](), 0, 1
    with open_text(source) as file:
        for number, line in enumerate(read_lines(file, source), start=1):
            if number == 1 and _is_conversation(line):
                yield None
                return
            if size >= max_bytes:
                yield from _join_lines(first, lines)
                lines, size, first = [], 0, number
            lines.append(line)
            size += len(line)
    yield from _join_lines(first, lines)


def _join_lines(first: int, lines: Sequence[str]) -> Iterator[Rows]:
    content = "".join(lines).encode()
    if content.strip():
        yield first, content


def _is_conversation(line: str) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return not line.strip()  # the first row comes later, so the file stays whole
    return isinstance(row, dict) and is_message(row)


def _split_parquet(source: Source, max_bytes: int) -> Iterator[Rows | None]:
    """Yield small files of Parquet."""
    parquet, arrow = require_library("pyarrow.parquet", "parquet"), require_library("pyarrow", "parquet")
    batches, size, rows, first = [], 0, 0, 1
    with parquet.ParquetFile(source.path) as file:
        for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
            batches.append(batch)
            size, rows = size + batch.nbytes, rows + batch.num_rows
            if size >= max_bytes:
                yield first, _write_parquet(parquet, arrow.Table.from_batches(batches))
                batches, size, first = [], 0, rows + 1
    if batches:
        yield first, _write_parquet(parquet, arrow.Table.from_batches(batches))


def _write_parquet(parquet: Any, table: Any) -> bytes:
    content = BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()


Splitter: TypeAlias = Callable[[Source, int], Iterator[Rows | None]]
SPLITTERS: dict[str, Splitter] = {".jsonl": _split_lines, ".ndjson": _split_lines, ".parquet": _split_parquet}
