"""Read PDF with pypdf, page by page; offsets are into the extracted text.

A page that cannot be read is reported as skipped, and the other pages are read. The module reads no pictures: a
scanned PDF has no text before character recognition.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from waylore.indexing.blocks import ReadError, Reading, Skipped, Source, describe_limit, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.plain import find_paragraphs


def read_pdf(source: Source) -> Iterator[Reading | Skipped]:
    """Read a PDF as one document; its blocks are the paragraphs of its pages."""
    pypdf = require_library("pypdf")
    content = io.BytesIO(source.read_bytes())
    skipped: list[Skipped] = []
    max_bytes = source.limits.unpacked_bytes
    with (
        _silence("pypdf"),
        pypdf.apply_configuration(zlib_maximum_output_length=max_bytes, lzw_maximum_output_length=max_bytes),
    ):
        try:
            reader = pypdf.PdfReader(content)
            if reader.is_encrypted and not reader.decrypt(""):
                raise ReadError("it is encrypted: save it without a password")
            title = _read_title(reader)
            pages = list(_read_pages(source, reader, skipped))
        except pypdf.errors.DependencyError as error:
            raise ReadError("it is encrypted: save it without a password") from error
        except pypdf.errors.PyPdfError as error:
            raise ReadError(f"it is not a PDF that can be read: {error}"[:300]) from error
    yield from skipped
    text = "\n\n".join(pages)
    if not text.strip():
        raise ReadError("it has no text: a scanned PDF needs character recognition first")
    blocks = find_paragraphs(text, source.limits.blocks)
    yield Reading(source.uri, title or source.name, text, blocks, {"pages": len(reader.pages)})


def _read_pages(source: Source, reader: Any, skipped: list[Skipped]) -> Iterator[str]:
    if len(reader.pages) > source.limits.pages:
        raise ReadError(describe_limit("pages", source.limits.pages))
    budget, length = _Budget(source.limits.operations), 0
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = make_storable(page.extract_text(visitor_operand_before=budget.spend)).strip()
        except Exception as error:  # noqa: BLE001 (a broken page may raise anything, and the next may be whole)
            skipped.append(Skipped(f"{source.uri}#page={number}", _describe(error)))
            text = ""
        if budget.is_spent:
            raise ReadError(describe_limit("operations", source.limits.operations))
        length += len(text)
        if length > source.limits.unpacked_bytes:
            raise ReadError(describe_limit("unpacked_bytes", source.limits.unpacked_bytes))
        if text:
            yield text


class _Budget:
    """Counts the drawing operations of a PDF: nested forms can make a small file endless."""

    def __init__(self, operations: int) -> None:
        self.left = operations

    @property
    def is_spent(self) -> bool:
        return self.left < 0

    def spend(self, *_: object) -> None:
        self.left -= 1
        if self.is_spent:
            raise ReadError("it has too many operations")


def _describe(error: Exception) -> str:
    return f"the page cannot be read: {type(error).__name__}: {error}"[:300]


def _read_title(reader: Any) -> str:
    try:
        return make_storable(str(reader.metadata.title or "")).strip() if reader.metadata else ""
    except Exception:  # noqa: BLE001 (a broken title is no reason to lose the text)
        return ""


@contextmanager
def _silence(name: str) -> Iterator[None]:
    """Silence a library's warnings on broken files: the reason for skipping them says the same."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
