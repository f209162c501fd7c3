"""Reads PDF with pypdf and DOCX with python-docx; their text is extracted, so offsets are into that text.

A PDF is read page by page, and a page that cannot be read is reported while the others are kept. It reads no
pictures: a scanned PDF has no text until it has been through character recognition.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Limits,
    Reading,
    Refused,
    Source,
    nested,
    over,
    required,
)
from waylore.indexing.encoding import storable
from waylore.indexing.readers.pdf import _NO_TITLE, _STEP, _TAGS, _WORD


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
