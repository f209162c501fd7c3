"""Read XLSX with openpyxl, row by row: each sheet is a section, each row a block with the names of its columns.

The first row of a sheet names its columns. For a formula, the stored result is read. Charts and comments are not read.
"""

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Source, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.office.archive import check_archive
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import name_file


def read_workbook(source: Source) -> Iterator[Reading]:
    """Read a workbook as one document."""
    library = require_library("openpyxl")
    content = source.read_bytes()
    try:
        check_archive(content, source.limits)
        workbook = library.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError, TypeError) as error:
        raise ReadError(f"it is not an XLSX that can be read: {error}"[:300]) from error
    writer = TextWriter(source.limits.blocks)
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # the dimensions that a file declares may be wrong
        _add_sheet(writer, sheet.title, sheet.iter_rows(values_only=True))
    if not any(block.kind == "row" for block in writer.blocks):
        raise ReadError("it has no text")
    title = make_storable(workbook.properties.title or "").strip() or name_file(source)
    yield Reading(source.uri, title, writer.text, tuple(writer.blocks))


def _add_sheet(writer: TextWriter, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    columns: list[str] = []
    for row in rows:
        cells = ["" if value is None else " ".join(str(value).split()) for value in row]
        if not any(cells):
            continue
        if not columns:
            columns = cells
            writer.add("heading", name, (name,))
            writer.add("row", " | ".join(cell for cell in cells if cell), (name,))
            continue
        names = [*columns, *[""] * (len(cells) - len(columns))]
        pairs = [(column, cell) for column, cell in zip(names, cells, strict=False) if cell]
        writer.add("row", format_row(pairs), (name,), cells=pairs)
