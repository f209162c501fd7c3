"""Read DOCX with python-docx: headings, paragraphs, lists, tables and text boxes; offsets are into the extracted text.

The archive is unpacked once beforehand to check its real size. Pictures, comments, headers and footers are not
read, and the old `.doc` format is not supported.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import (
    Block,
    Mark,
    ReadError,
    Reading,
    Source,
    describe_limit,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.office.archive import check_archive
from waylore.indexing.readers.structure.keyed import classify_item
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import name_file

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_SIGNS = {f"{_WORD}tab": "\t", f"{_WORD}ptab": "\t", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}
_PARAGRAPH = 1  # python-docx's WD_STYLE_TYPE.PARAGRAPH
_NO_TITLE = "Word Document"  # title that python-docx gives a document without properties


def read_docx(source: Source) -> Iterator[Reading]:
    """Read a Word document as one document; each row of a table is a block."""
    library = require_library("docx")
    content = source.read_bytes()
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is encrypted or an old .doc: save it as .docx without a password")
    try:
        check_archive(content, source.limits)
        document = library.Document(io.BytesIO(content))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as error:
        raise ReadError(f"it is not a DOCX that can be read: {error}"[:300]) from error
    if len(document.element.body) > source.limits.blocks:  # also empty blocks, which take time too
        raise ReadError(describe_limit("blocks", source.limits.blocks))
    writer = TextWriter(source.limits.blocks)
    _DocumentReader(document, writer).add_all()
    if not writer.blocks:
        raise ReadError("it has no text")
    own = make_storable(document.core_properties.title or "").strip()
    title = (own if own != _NO_TITLE else "") or _find_title(writer.blocks) or name_file(source)
    yield Reading(source.uri, title, writer.text, tuple(writer.blocks))


class _DocumentReader:
    """Adds the paragraphs and tables of a document to a writer."""

    def __init__(self, document: Any, writer: TextWriter) -> None:
        self._document, self._writer = document, writer
        self._styles = _list_styles(document)
        self._path: list[tuple[int, str]] = []
        self._headings: tuple[str, ...] = ()

    def add_all(self) -> None:
        """Add every block of the body."""
        for part in self._document.element.body:
            if part.tag == f"{_WORD}tbl":
                self._add_table(part)
            elif part.tag == f"{_WORD}p":
                self._add_paragraph(part)
                for text in dict.fromkeys(_read_boxes(part)):
                    self._writer.add("paragraph", text, self._headings)

    def _add_paragraph(self, paragraph: Any) -> None:
        written, marks = self._read_runs(paragraph)
        text = written.strip()
        cut = len(written) - len(written.lstrip())
        moved = [Mark(m.kind, max(m.start - cut, 0), min(m.end - cut, len(text)), m.target) for m in marks]
        style = self._styles.get(_get_style_id(paragraph), self._styles[None])
        if not text:
            return
        if level := _get_level(style):
            self._headings = nest_heading(self._path, level, " ".join(make_storable(text).split()))
            self._writer.add("heading", text, self._headings)
        elif style.startswith("List"):
            kind, key, cells = classify_item(text, moved)
            self._writer.add(kind, text, self._headings, key=key, cells=cells, marks=moved)
        else:
            self._writer.add("paragraph", text, self._headings, marks=moved)

    def _read_runs(self, paragraph: Any) -> tuple[str, list[Mark]]:
        """Return the text of a paragraph, its bold words and its links. Unlike python-docx, it uses no XPath."""
        pieces: list[str] = []
        marks: list[Mark] = []
        length = 0
        for run, link in _list_runs(paragraph):
            text = "".join(_read_words(run))
            start, length = length, length + len(text)
            pieces.append(text)
            if link is not None:
                marks.append(Mark("link", start, length, self._get_target(link)))
            if run.find(f"{_WORD}rPr/{_WORD}b") is not None and text.strip():
                marks.append(Mark("strong", start, length))
        return "".join(pieces), marks

    def _get_target(self, link: Any) -> str:
        relation = self._document.part.rels.get(link.get(_RELATION))
        return make_storable(relation.target_ref) if relation is not None and relation.is_external else ""

    def _add_table(self, table: Any) -> None:
        """Add the rows of a table; the first row of several names the columns."""
        rows = [list(_read_cells(row)) for row in table.tr_lst]
        columns = rows[0] if len(rows) > 1 else []
        for number, row in enumerate(rows):
            if not any(row):
                continue
            names = columns if len(columns) == len(row) else [""] * len(row)
            cells = list(zip(names, row, strict=True)) if number or not columns else []
            self._writer.add("row", format_row(cells) if cells else " | ".join(row), self._headings, cells=cells)


def _list_styles(document: Any) -> dict[str | None, str]:
    """Return the name of each paragraph style by its id, and of the default style under None.

    `Paragraph.style` of python-docx searches all styles for each paragraph.
    """
    styles = document.styles
    default = styles.default(_PARAGRAPH)
    names: dict[str | None, str] = {None: (default.name or "") if default is not None else ""}
    for style in styles:
        if style.type == _PARAGRAPH:
            names.setdefault(style.style_id, style.name or "")
    return names


def _get_style_id(paragraph: Any) -> str | None:
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    return None if style is None else style.get(f"{_WORD}val")


def _list_runs(paragraph: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the runs of a paragraph, each with the link around it, or None."""
    for part in paragraph:
        if part.tag == f"{_WORD}r":
            yield part, None
        elif part.tag == f"{_WORD}hyperlink":
            yield from ((run, part) for run in part if run.tag == f"{_WORD}r")


def _read_words(run: Any) -> Iterator[str]:
    """Yield the texts of a run."""
    for part in run:
        if part.tag == f"{_WORD}t":
            yield part.text or ""
        elif part.tag == f"{_WORD}br":
            yield "\n" if part.get(f"{_WORD}type", "textWrapping") == "textWrapping" else ""
        else:
            yield _SIGNS.get(part.tag, "")


def _read_boxes(paragraph: Any) -> Iterator[str]:
    """Yield the texts of the text boxes in a paragraph; a box is often stored twice, for old and new programs."""
    for box in paragraph.iter(f"{_WORD}txbxContent"):
        yield "\n".join("".join(part.itertext(f"{_WORD}t")) for part in box.iter(f"{_WORD}p")).strip()


def _read_cells(row: Any) -> Iterator[str]:
    """Yield the text of each cell; `row.cells` repeats a cell by its declared width, which may be a billion."""
    for cell in row.tc_lst:
        yield " ".join("".join(words.itertext(f"{_WORD}t")).strip() for words in cell.iter(f"{_WORD}p")).strip()


def _get_level(style: str) -> int:
    """Return the heading level of a style, or 0 if it is not a heading."""
    if style == "Title":
        return 1
    name, _, number = style.partition(" ")
    return int(number) + 1 if name.lower() == "heading" and number in tuple("123456789") else 0


def _find_title(blocks: list[Block]) -> str:
    return next((block.headings[0] for block in blocks if block.kind == "heading"), "")
