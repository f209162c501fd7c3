"""Reads PDF with pypdf and DOCX with python-docx; their text is extracted, so offsets are into that text.

A PDF is read page by page, and a page that cannot be read is reported while the others are kept. It reads no
pictures: a scanned PDF has no text until it has been through character recognition.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from waylore.indexing.blocks import (
    Reading,
    Refusal,
    Refused,
    Source,
    over,
    required,
)
from waylore.indexing.encoding import storable
from waylore.indexing.readers.plain import paragraphs

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
