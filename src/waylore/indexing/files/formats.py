"""Read files and folders: choose a reader by the suffix of each file.

A file that is broken, encrypted, empty, too large or of an unknown format is returned as `Skipped` with the reason and
never stops the others. A separate process (`files.processes`) reads every file whose reader may take long: PDF, office
files, Parquet, HTML, EPUB, e-mail, reStructuredText, org-mode, the formats of other packages, and long texts that are
parsed as a whole. The module does not split texts into passages (`chunking` does) and writes nothing.
"""

import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeAlias

from waylore.errors import ArgumentError
from waylore.indexing.blocks import (
    Block,
    Limits,
    Mark,
    ReadError,
    Reading,
    Skipped,
    Source,
    catch_read_errors,
    describe_limit,
    require_library,
)
from waylore.indexing.files.addresses import escape
from waylore.indexing.files.folders import list_paths
from waylore.indexing.readers.plain import read_text
from waylore.lengths import MAX_TITLE
from waylore.plugins import import_later, list_plugins, load_plugin

__all__ = [
    "READERS",
    "Block",
    "Limits",
    "Mark",
    "Reading",
    "Skipped",
    "Source",
    "read",
    "read_source",
]

Reader: TypeAlias = Callable[[Source], Iterator[Reading | Skipped]]
_CODE_SUFFIXES = """.py .pyi .js .jsx .mjs .cjs .ts .tsx .java .kt .kts .scala .go .rs .c .h .cc .cpp .cxx .hpp .hh
.cs .swift .m .rb .php .pl .lua .r .jl .dart .ex .exs .erl .hs .clj .ml .fs .sh .bash .zsh .ps1 .sql .proto .graphql
.tf .ini .cfg .css .scss .vue .svelte .zig .nim .sol""".split()


def _import_reader(module: str, name: str, library: str = "") -> Reader:
    """Return a reader whose module is imported for its first file, so that a search starts without it.

    `library` is a library that the module imports.
    """
    reader = import_later(f"waylore.indexing.readers.{module}", name)

    def read_file(source: Source) -> Iterator[Reading | Skipped]:
        if library:
            require_library(library)
        return reader(source)  # type: ignore[no-any-return]

    return read_file


_read_json = _import_reader("chat", "read_json")
_read_code = _import_reader("code", "read_code")
_read_toml = _import_reader("data", "read_toml")
_read_yaml = _import_reader("data", "read_yaml")
_read_unnamed = _import_reader("data", "read_unnamed")
_read_markdown = _import_reader("markup.markdown", "read_markdown")
_read_notebook = _import_reader("notebook", "read_notebook")
_read_json_lines = _import_reader("rows", "read_json_lines")
_read_table = _import_reader("table", "read_table")
_read_parquet = _import_reader("parquet", "read_parquet")
_read_rst = _import_reader("markup.rst", "read_rst", "docutils")
_read_org = _import_reader("markup.org", "read_org", "orgparse")
_read_mailbox = _import_reader("mail", "read_mailbox")
READERS: dict[str, Reader] = {
    ".rst": _read_rst,
    **dict.fromkeys((".txt", ".text", ".log", ".adoc", ".tex"), read_text),
    "": _read_unnamed,
    **dict.fromkeys((".md", ".markdown", ".mdx"), _read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _import_reader("markup.html", "read_html")),
    **dict.fromkeys((".jsonl", ".ndjson"), _read_json_lines),
    **dict.fromkeys((".csv", ".tsv"), _read_table),
    ".parquet": _read_parquet,
    **dict.fromkeys(_CODE_SUFFIXES, _read_code),
    **dict.fromkeys((".yaml", ".yml"), _read_yaml),
    ".toml": _read_toml,
    ".json": _read_json,
    ".ipynb": _read_notebook,
    ".org": _read_org,
    ".eml": _import_reader("mail", "read_message"),
    ".mbox": _read_mailbox,
    ".epub": _import_reader("markup.epub", "read_epub"),
    ".pptx": _import_reader("office.slides", "read_slides"),
    ".xlsx": _import_reader("office.sheets", "read_workbook"),
    ".pdf": _import_reader("office.pdf", "read_pdf"),
    ".docx": _import_reader("office.docx", "read_docx"),
}
_READ_BY_LINE = (_read_json_lines, _read_table, read_text, _read_unnamed)
_SPLIT = (_read_markdown, _read_rst, _read_org)
# These return long files in rows or parts, so the limit for bytes does not apply.
_STREAMED = (*_READ_BY_LINE, *_SPLIT, _read_mailbox, _read_parquet)
# These parse a whole file, so a long one takes seconds.
_PARSED = (_read_markdown, _read_code, _read_json, _read_yaml, _read_toml, _read_notebook)
SMALL_BYTES = 100_000  # bytes of a text that is parsed within this process, in a second at most
_DEFAULTS = Limits()


def read(
    path: str | Path, *, root: str | Path | None = None, limits: Limits = _DEFAULTS
) -> Iterator[Reading | Skipped]:
    """Yield every document of a file or folder, and a `Skipped` for each file or part that is skipped.

    A `uri` is the path below `root`, or the path as given. The `.gitignore` files from `root` down apply.
    """
    path, root = Path(path), None if root is None else Path(root)
    if root is not None and path != root and root not in path.parents:
        raise ArgumentError(f"root must be a folder that contains {path}, got {str(root)!r:.60}")
    for found in list_paths(path, root=root):
        file, reason = found if isinstance(found, tuple) else (found, "")
        uri = escape((file.relative_to(root) if root else file).as_posix())
        if reason:
            yield Skipped(uri, reason)
        else:
            yield from read_source(Source(file, uri, limits))


def read_source(source: Source, wait: Callable[[], object] = lambda: None) -> Iterator[Reading | Skipped]:
    """Yield the documents of one file. `wait` is called while another process reads it, and may raise to stop it."""
    if not _needs_process(source):
        return map(_shorten_title, catch_read_errors(source.uri, lambda: choose_reader(source)(source)))
    from waylore.indexing.files.processes import read_in_process  # noqa: PLC0415 (most runs need no process)

    return map(_shorten_title, read_in_process(source, wait))


def _shorten_title(item: Reading | Skipped) -> Reading | Skipped:
    """Return a document with a shortened title, because every passage repeats it."""
    if isinstance(item, Skipped) or len(item.title) <= MAX_TITLE:
        return item
    return replace(item, title=item.title[:MAX_TITLE])


def _needs_process(source: Source) -> bool:
    """Return whether the reader of a file may take long or is from another package."""
    suffix = get_suffix(source.path)
    reader = READERS.get(suffix)
    if reader is None:
        return suffix.removeprefix(".") in list_plugins("waylore.readers")
    size = source.path.stat().st_size if source.path.exists() else 0
    is_in_parts = reader in _SPLIT and size > source.limits.split_bytes
    if reader in _READ_BY_LINE or is_in_parts:
        return False
    return reader not in _PARSED or size > SMALL_BYTES


def choose_reader(source: Source) -> Reader:
    """Return the reader for a file. Raise ReadError if the format is unknown, or the file too large or irregular."""
    about = source.path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ReadError("it is not a regular file")
    return find_reader(get_suffix(source.path), about.st_size, source.limits)


def get_suffix(path: PurePath) -> str:
    """Return the suffix that tells the format: of `page.rst.txt`, as Sphinx copies its sources, that of the page."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    is_copy = suffixes[1:] == [".txt"] and suffixes[0] in {".rst", ".md"}
    return suffixes[0] if is_copy else path.suffix.lower()


def find_reader(suffix: str, size: int, limits: Limits) -> Reader:
    """Return the reader for files with a suffix. Raise ReadError if there is none, or the file is too large."""
    reader: Reader | None = READERS.get(suffix) or load_plugin("waylore.readers", suffix.removeprefix("."))
    if reader is None:
        raise ReadError(f"there is no reader for {suffix} files")
    if size > limits.bytes and reader not in _STREAMED:
        raise ReadError(describe_limit("bytes", limits.bytes))
    return reader
