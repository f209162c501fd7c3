"""Read PDF with pypdf, page by page; offsets are into the extracted text.

A page that cannot be read is reported as skipped, and the other pages are read. All pages share one budget of
unpacked bytes and drawing operations. The module reads no pictures: a scanned PDF has no text before character
recognition.
"""

import io
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from waylore.indexing.blocks import Limits, ReadError, Reading, Skipped, Source, describe_limit, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.office.layout import Line, LineCollector, choose_title, write_pages
from waylore.indexing.readers.structure.rendering import TextWriter
from waylore.indexing.readers.structure.titles import name_file

# pypdf reads blanks byte by byte. Shorter runs may be part of a string.
_BLANKS = re.compile(rb"[\x00\t\x0c ]{64,}")
_LINES = re.compile(rb"[\x00\t\n\x0c\r ]{64,}")


def read_pdf(source: Source) -> Iterator[Reading | Skipped]:
    """Read a PDF as one document; its blocks are the headings and paragraphs of its pages."""
    pypdf = require_library("pypdf")
    content = io.BytesIO(source.read_bytes())
    skipped: list[Skipped] = []
    max_bytes = source.limits.unpacked_bytes
    with (
        _silence("pypdf"),
        pypdf.apply_configuration(zlib_maximum_output_length=max_bytes, lzw_maximum_output_length=max_bytes),
    ):
        try:
            budget = _Budget(source.limits)
            reader = pypdf.PdfReader(content)
            reader.get_object = budget.watch_streams(reader.get_object)
            if reader.is_encrypted and not reader.decrypt(""):
                raise ReadError("it is encrypted: save it without a password")
            title = _read_title(reader)
            pages = list(_read_pages(source, reader, budget, skipped))
        except pypdf.errors.DependencyError as error:
            raise ReadError("it is encrypted: save it without a password") from error
        except pypdf.errors.PyPdfError as error:
            raise ReadError(f"it is not a PDF that can be read: {error}"[:300]) from error
    yield from skipped
    writer = TextWriter(source.limits.blocks)
    write_pages(pages, writer)
    if not writer.blocks:
        raise ReadError("it has no text: a scanned PDF needs character recognition first")
    title = choose_title(title, pages) or name_file(source)
    yield Reading(source.uri, title, writer.text, tuple(writer.blocks), {"pages": len(reader.pages)})


def _read_pages(source: Source, reader: Any, budget: "_Budget", skipped: list[Skipped]) -> Iterator[list[Line]]:
    if len(reader.pages) > source.limits.pages:
        raise ReadError(describe_limit("pages", source.limits.pages))
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        collector = LineCollector()
        try:
            text = page.extract_text(visitor_operand_before=budget.count_operation, visitor_text=collector.visit)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (a broken page may raise anything, and the next may be whole)
            skipped.append(Skipped(f"{source.uri}#page={number}", _describe(error)))
            text = ""
        budget.check()
        length += len(text)
        if length > source.limits.unpacked_bytes:
            raise ReadError(describe_limit("unpacked_bytes", source.limits.unpacked_bytes))
        collector.end_line()
        if text.strip():
            yield collector.lines


class _Budget:
    """Counts the drawing operations and the unpacked bytes of a PDF, over all its pages.

    Without a budget, nested forms and shared streams could make a small file endless.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._operations = self._bytes = 0

    def check(self) -> None:
        """Raise ReadError if the budget is spent."""
        if self._operations > self._limits.operations:
            raise ReadError(describe_limit("operations", self._limits.operations))
        if self._bytes > self._limits.unpacked_bytes:
            raise ReadError(describe_limit("unpacked_bytes", self._limits.unpacked_bytes))

    def count_operation(self, *_: object) -> None:
        self._operations += 1
        self.check()

    def count_bytes(self, size: int) -> None:
        self._bytes += size
        self.check()

    def watch_streams(self, get_object: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that reads an object of the file; a stream counts when its data are read."""

        def get_counted(*arguments: Any) -> Any:
            found = get_object(*arguments)
            if hasattr(found, "get_data") and "get_data" not in vars(found):
                found.get_data = _StreamData(found.get_data, self, is_drawn=_is_drawn(found))
            return found

        return get_counted


class _StreamData:
    """The data of a stream, unpacked once and without long runs of blanks if they are drawn.

    Unpacked bytes count once. Drawn bytes count each time, because they are parsed each time.
    """

    def __init__(self, unpack: Callable[[], bytes], budget: _Budget, *, is_drawn: bool) -> None:
        self._unpack, self._budget, self._is_drawn = unpack, budget, is_drawn
        self._data: bytes | None = None
        self._error: Exception | None = None

    def __call__(self) -> bytes:
        if self._error:
            raise self._error
        if self._data is None:
            self._data = self._read()
        elif self._is_drawn:
            self._budget.count_bytes(len(self._data))
        return self._data

    def _read(self) -> bytes:
        try:
            data = self._unpack()
        except MemoryError:
            raise
        except Exception as error:
            self._error = error
            raise
        self._budget.count_bytes(len(data))
        return _LINES.sub(b"\n", _BLANKS.sub(b" ", data)) if self._is_drawn else data


def _is_drawn(stream: Any) -> bool:
    """Return whether a stream may be the content of a page or form. Others, such as lists of objects, have offsets."""
    return "/Type" not in stream or stream["/Type"] == "/XObject"


def _describe(error: Exception) -> str:
    return f"the page cannot be read: {type(error).__name__}: {error}"[:300]


def _read_title(reader: Any) -> str:
    try:
        return make_storable(str(reader.metadata.title or "")).strip() if reader.metadata else ""
    except Exception:  # noqa: BLE001 (a broken title is no reason to lose the text)
        return ""


@contextmanager
def _silence(name: str) -> Iterator[None]:
    """Silence a library's warnings about broken files, because the reason for skipping them is reported."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
