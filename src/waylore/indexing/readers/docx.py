"""Read DOCX with python-docx: headings, paragraphs, lists and tables; offsets are into the extracted text.

The archive is unpacked once beforehand to check its real size. Pictures, comments, headers and footers are not
read, and the old `.doc` format is not supported.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Limits,
    ReadError,
    Reading,
    Source,
    describe_limit,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import make_storable

_STEP_BYTES = 1_000_000
_TAGS_PER_BLOCK = 10  # about; the memory of a tree grows with its tags, not with its bytes
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SIGNS = {f"{_WORD}tab": "\t", f"{_WORD}ptab": "\t", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}
_PARAGRAPH = 1  # python-docx's WD_STYLE_TYPE.PARAGRAPH
_NO_TITLE = "Word Document"  # the title that python-docx gives a document without properties


def read_docx(source: Source) -> Iterator[Reading]:
    """Read a Word document as one document; each row of a table is a block."""
    library = require_library("docx")
    content = source.read_bytes()
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is encrypted or an old .doc: save it as .docx without a password")
    try:
        _check_unpacked(content, source.limits)
        document = library.Document(io.BytesIO(content))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as error:
        raise ReadError(f"it is not a DOCX that can be read: {error}"[:300]) from error
    if len(document.element.body) > source.limits.blocks:  # also empty ones, which take time too
        raise ReadError(describe_limit("blocks", source.limits.blocks))
    blocks: list[Block] = []
    texts: list[str] = []
    length = 0
    for kind, headings, text in _read_pieces(document):
        if len(blocks) >= source.limits.blocks:
            raise ReadError(describe_limit("blocks", source.limits.blocks))
        blocks.append(Block(kind, length, length + len(text), headings))
        texts.append(text)
        length += len(text) + 2
    if not blocks:
        raise ReadError("it has no text")
    own = make_storable(document.core_properties.title or "").strip()
    title = (own if own != _NO_TITLE else "") or _find_title(blocks) or source.name
    yield Reading(source.uri, title, "\n\n".join(texts), tuple(blocks))


def _check_unpacked(content: bytes, limits: Limits) -> None:
    """Unpack every part once and check its size, because the sizes in a zip file may be wrong."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        left, tags = limits.unpacked_bytes, 0
        if sum(part.file_size for part in archive.infolist()) > left:
            raise ReadError(describe_limit("unpacked_bytes", left))
        for part in archive.infolist():
            if part.flag_bits & 1:
                raise ReadError("it is encrypted: save it without a password")
            with archive.open(part) as unpacked:
                while step := unpacked.read(_STEP_BYTES):
                    tags += step.count(b"<") if part.filename.endswith((".xml", ".rels")) else 0
                    if tags > limits.blocks * _TAGS_PER_BLOCK:
                        raise ReadError(describe_limit("blocks", limits.blocks))
                    left -= len(step)
                    if left < 0:
                        raise ReadError(describe_limit("unpacked_bytes", limits.unpacked_bytes))


def _read_pieces(document: Any) -> Iterator[tuple[BlockKind, tuple[str, ...], str]]:
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    styles = _list_styles(document)
    for part in document.element.body:
        if part.tag == f"{_WORD}tbl":
            for row in part.tr_lst:
                text = make_storable(" | ".join(_read_cells(row)))
                if text.strip(" |"):
                    yield "row", headings, text
        elif part.tag == f"{_WORD}p" and (text := make_storable("".join(_read_words(part))).strip()):
            style = styles.get(_get_style_id(part), styles[None])
            if level := _get_level(style):
                headings = nest_heading(path, level, " ".join(text.split()))
                yield "heading", headings, text
            else:
                yield "item" if style.startswith("List") else "paragraph", headings, text


def _list_styles(document: Any) -> dict[str | None, str]:
    """Return the name of each style of paragraphs by its id, and that of the default one under None.

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


def _read_words(paragraph: Any) -> Iterator[str]:
    """Yield the texts of a paragraph's runs and links, as `Paragraph.text` of python-docx does, but without XPath."""
    for run in paragraph:
        if run.tag == f"{_WORD}hyperlink":
            yield from _read_words(run)
        elif run.tag == f"{_WORD}r":
            for part in run:
                if part.tag == f"{_WORD}t":
                    yield part.text or ""
                elif part.tag == f"{_WORD}br":
                    yield "\n" if part.get(f"{_WORD}type", "textWrapping") == "textWrapping" else ""
                else:
                    yield _SIGNS.get(part.tag, "")


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
