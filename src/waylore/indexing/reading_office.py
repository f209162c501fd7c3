"""Reads PDF with pypdf and DOCX with python-docx; their text is extracted, so offsets are into that text.

A PDF is read page by page, and a page that cannot be read is reported while the others are kept. It reads no
pictures: a scanned PDF has no text until it has been through character recognition.
"""

import io
import logging
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Limits,
    Reading,
    Refusal,
    Refused,
    Source,
    nested,
    over,
    required,
)
from waylore.indexing.decoding import storable
from waylore.indexing.reading_text import paragraphs

_STEP = 1_000_000
_TAGS = 10  # to a block, about; a tree takes memory by tags, not by bytes
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NO_TITLE = "Word Document"  # what python-docx calls a document without properties


def pdf(source: Source) -> Iterator[Reading | Refusal]:
    """A PDF as one document whose blocks are the paragraphs of its pages."""
    pypdf = required("pypdf")
    content = io.BytesIO(source.content())
    refusals: list[Refusal] = []
    most = source.limits.unpacked_bytes
    with (
        _quiet("pypdf"),
        pypdf.apply_configuration(zlib_maximum_output_length=most, lzw_maximum_output_length=most),
    ):
        try:
            reader = pypdf.PdfReader(content)
            if reader.is_encrypted and not reader.decrypt(""):
                raise Refused("it is encrypted: save it without a password")
            title = _pdf_title(reader)
            pages = list(_pages(source, reader, refusals))
        except pypdf.errors.DependencyError as error:
            raise Refused("it is encrypted: save it without a password") from error
        except pypdf.errors.PyPdfError as error:
            raise Refused(f"it is not a PDF that can be read: {error}"[:300]) from error
    yield from refusals
    text = "\n\n".join(pages)
    if not text.strip():
        raise Refused("there is no text in it: a scanned PDF needs character recognition first")
    blocks = paragraphs(text, source.limits.blocks)
    yield Reading(source.uri, title or source.name, text, blocks, {"pages": len(reader.pages)})


def _pages(source: Source, reader: Any, refusals: list[Refusal]) -> Iterator[str]:
    if len(reader.pages) > source.limits.pages:
        raise Refused(over("pages", source.limits.pages))
    budget, length = _Budget(source.limits.operations), 0
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = storable(page.extract_text(visitor_operand_before=budget.spend)).strip()
        except Exception as error:  # noqa: BLE001 (a broken page may raise anything, and the next may be whole)
            refusals.append(Refusal(f"{source.uri}#page={number}", _why(error)))
            text = ""
        if budget.is_spent:
            raise Refused(over("operations", source.limits.operations))
        length += len(text)
        if length > source.limits.unpacked_bytes:
            raise Refused(over("unpacked_bytes", source.limits.unpacked_bytes))
        if text:
            yield text


class _Budget:
    """Counts a PDF's drawing operations: forms within forms can make a small file endless."""

    def __init__(self, most: int) -> None:
        self.left = most

    @property
    def is_spent(self) -> bool:
        return self.left < 0

    def spend(self, *_: object) -> None:
        self.left -= 1
        if self.is_spent:
            raise Refused("its operations are spent")


def _why(error: Exception) -> str:
    return f"the page cannot be read: {type(error).__name__}: {error}"[:300]


def _pdf_title(reader: Any) -> str:
    try:
        return storable(str(reader.metadata.title or "")).strip() if reader.metadata else ""
    except Exception:  # noqa: BLE001 (a broken title is no reason to lose the text)
        return ""


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library's remarks on broken files out of the caller's log: a refusal says it."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def docx(source: Source) -> Iterator[Reading]:
    """A Word document as one document, its tables row by row."""
    library = required("docx")
    content = source.content()
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused("it is encrypted or an old .doc: save it as .docx without a password")
    try:
        _check_unpacked(content, source.limits)
        document = library.Document(io.BytesIO(content))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as error:
        raise Refused(f"it is not a DOCX that can be read: {error}"[:300]) from error
    if len(document.element.body) > source.limits.blocks:  # empty ones too: each takes its time
        raise Refused(over("blocks", source.limits.blocks))
    blocks: list[Block] = []
    written: list[str] = []
    length = 0
    for kind, headings, text in _docx_pieces(document, library):
        if len(blocks) >= source.limits.blocks:
            raise Refused(over("blocks", source.limits.blocks))
        blocks.append(Block(kind, length, length + len(text), headings))
        written.append(text)
        length += len(text) + 2
    if not blocks:
        raise Refused("there is no text in it")
    own = storable(document.core_properties.title or "").strip()
    title = (own if own != _NO_TITLE else "") or _title_of(blocks) or source.name
    yield Reading(source.uri, title, "\n\n".join(written), tuple(blocks))


def _check_unpacked(content: bytes, limits: Limits) -> None:
    """Unpack every part once without keeping it: the sizes that a zip file declares may be lies."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        most, tags = limits.unpacked_bytes, 0
        if sum(part.file_size for part in archive.infolist()) > most:
            raise Refused(over("unpacked_bytes", most))
        for part in archive.infolist():
            if part.flag_bits & 1:
                raise Refused("it is encrypted: save it without a password")
            with archive.open(part) as unpacked:
                while step := unpacked.read(_STEP):
                    tags += step.count(b"<") if part.filename.endswith((".xml", ".rels")) else 0
                    if tags > limits.blocks * _TAGS:
                        raise Refused(over("blocks", limits.blocks))
                    most -= len(step)
                    if most < 0:
                        raise Refused(over("unpacked_bytes", limits.unpacked_bytes))


def _docx_pieces(document: Any, library: Any) -> Iterator[tuple[BlockKind, tuple[str, ...], str]]:
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    for part in document.iter_inner_content():
        if isinstance(part, library.table.Table):
            for row in part.rows:
                text = storable(" | ".join(_cells(row)))
                if text.strip(" |"):
                    yield "row", headings, text
            continue
        text = storable(part.text).strip()
        style = (part.style.name or "") if part.style is not None else ""
        if text and (level := _level(style)):
            headings = nested(path, level, " ".join(text.split()))
            yield "heading", headings, text
        elif text:
            yield "list" if style.startswith("List") else "paragraph", headings, text


def _cells(row: Any) -> Iterator[str]:
    """The words of each cell; `row.cells` repeats a cell as often as its width says, which may be a billion."""
    for cell in row._tr.tc_lst:
        yield " ".join("".join(words.itertext(f"{_WORD}t")).strip() for words in cell.iter(f"{_WORD}p")).strip()


def _level(style: str) -> int:
    """What level of heading a style is; 0 where it is none."""
    if style == "Title":
        return 1
    name, _, number = style.partition(" ")
    return int(number) + 1 if name.lower() == "heading" and number in tuple("123456789") else 0


def _title_of(blocks: list[Block]) -> str:
    return next((block.headings[0] for block in blocks if block.kind == "heading"), "")
