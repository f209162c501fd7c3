"""Read PPTX with python-pptx: the title of each slide is a heading; texts, tables and notes are blocks below it."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Source, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.office.archive import check_archive
from waylore.indexing.readers.structure.keyed import classify_item
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import name_file

_NO_TITLE = "PowerPoint Presentation"  # title that programs give a presentation without one


def read_slides(source: Source) -> Iterator[Reading]:
    """Read a presentation as one document."""
    library = require_library("pptx")
    content = source.read_bytes()
    try:
        check_archive(content, source.limits)
        slides = library.Presentation(io.BytesIO(content))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as error:
        raise ReadError(f"it is not a PPTX that can be read: {error}"[:300]) from error
    writer = TextWriter(source.limits.blocks)
    for slide in slides.slides:
        _add_slide(writer, slide)
    if not writer.blocks:
        raise ReadError("it has no text")
    own = make_storable(slides.core_properties.title or "").strip()
    first = next((block.headings[-1] for block in writer.blocks if block.headings), "")
    title = (own if own != _NO_TITLE else "") or first or name_file(source)
    yield Reading(source.uri, title, writer.text, tuple(writer.blocks))


def _add_slide(writer: TextWriter, slide: Any) -> None:
    heading = slide.shapes.title
    title = " ".join(heading.text_frame.text.split()) if heading is not None else ""
    headings = (make_storable(title),) if title else ()
    writer.add("heading", title, headings)
    for shape in slide.shapes:
        if heading is not None and shape.shape_id == heading.shape_id:
            continue
        if shape.has_text_frame:
            _add_texts(writer, shape.text_frame.paragraphs, headings)
        elif getattr(shape, "has_table", False):
            _add_table(writer, shape.table, headings)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        writer.add("paragraph", slide.notes_slide.notes_text_frame.text, headings)


def _add_texts(writer: TextWriter, paragraphs: Any, headings: tuple[str, ...]) -> None:
    for paragraph in paragraphs:
        text = " ".join("".join(run.text for run in paragraph.runs).split())
        kind, key, cells = classify_item(text, ())
        writer.add(kind, text, headings, key=key, cells=cells)


def _add_table(writer: TextWriter, table: Any, headings: tuple[str, ...]) -> None:
    rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
    columns = rows[0] if rows else []
    writer.add("row", " | ".join(columns), headings)
    for row in rows[1:]:
        cells = list(zip(columns, row, strict=True))
        writer.add("row", format_row(cells), headings, cells=cells)
