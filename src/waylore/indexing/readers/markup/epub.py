"""Read EPUB: each chapter, in the order of the book's spine, is a document.

An EPUB is a zip file of XHTML, which `html` reads; the usual library, EbookLib, is under the AGPL. Encrypted books
are skipped.
"""

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from waylore.indexing.blocks import ReadError, Reading, Source, require_library
from waylore.indexing.encoding import decode_text, make_storable
from waylore.indexing.readers.markup.html import write_html
from waylore.indexing.readers.office.archive import check_archive
from waylore.indexing.readers.structure.rendering import TextWriter
from waylore.indexing.readers.structure.titles import name_file

_CONTAINER = "META-INF/container.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def read_epub(source: Source) -> Iterator[Reading]:
    """Read each chapter of a book as a document."""
    content = source.read_bytes()
    try:
        check_archive(content, source.limits)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from _read_chapters(source, archive)
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as error:
        raise ReadError(f"it is not an EPUB that can be read: {error}"[:300]) from error


def _read_chapters(source: Source, archive: zipfile.ZipFile) -> Iterator[Reading]:
    root = _parse(archive.read(_CONTAINER)).find(".//{*}rootfile")
    path = "" if root is None else root.get("full-path", "")
    package = _parse(archive.read(path))
    own = package.find(f".//{_TITLE}")
    book = make_storable(own.text or "").strip() if own is not None else ""
    book = book or name_file(source)
    files = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}manifest/{*}item")}
    is_empty = True
    for number, reference in enumerate(package.iterfind(".//{*}spine/{*}itemref"), start=1):
        name = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(files[reference.get("idref")])))
        text = decode_text(archive.read(name), source.limits) if archive.getinfo(name).file_size else ""
        writer = TextWriter(source.limits.blocks)
        write_html(text, writer, source.limits)
        if writer.blocks:
            is_empty = False
            heading = next((block.headings[-1] for block in writer.blocks if block.headings), f"chapter {number}")
            yield Reading(f"{source.uri}#chapter={number}", f"{book}: {heading}", writer.text, tuple(writer.blocks))
    if is_empty:
        raise ReadError("it has no text")


def _parse(content: bytes) -> Any:
    etree = require_library("lxml.etree")
    try:
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise ReadError(f"it is not an EPUB that can be read: {error}"[:300]) from error
