"""Reads files and folders into documents: the reader is chosen by suffix, and no file stops the others.

What is broken, encrypted, empty, too large or of an unknown format comes back as a refusal with its reason. It
cuts nothing into passages (`chunking` does) and writes nothing.
"""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Block, Limits, Link, Reading, Refusal, Refused, Source, guarded, over
from waylore.indexing.files.folders import files
from waylore.indexing.readers.chat import json_file
from waylore.indexing.readers.code import code
from waylore.indexing.readers.docx import docx
from waylore.indexing.readers.html import html
from waylore.indexing.readers.markdown import markdown
from waylore.indexing.readers.pdf import pdf
from waylore.indexing.readers.plain import text
from waylore.indexing.readers.rows import json_lines, table

__all__ = [
    "READERS",
    "Block",
    "Limits",
    "Link",
    "Reading",
    "Refusal",
    "Source",
    "address",
    "read",
    "readings",
    "sources",
]

Reader: TypeAlias = Callable[[Source], Iterator[Reading | Refusal]]
_CODE = """.py .pyi .js .jsx .mjs .cjs .ts .tsx .java .kt .kts .scala .go .rs .c .h .cc .cpp .cxx .hpp .hh .cs
.swift .m .rb .php .pl .lua .r .jl .dart .ex .exs .erl .hs .clj .ml .fs .sh .bash .zsh .ps1 .sql .proto .graphql
.tf .toml .yaml .yml .ini .cfg .css .scss .vue .svelte .zig .nim .sol""".split()
READERS: dict[str, Reader] = {
    **dict.fromkeys((".txt", ".text", ".log", ".rst", ".adoc", ".tex", ".org", ""), text),
    **dict.fromkeys((".md", ".markdown", ".mdx"), markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), html),
    **dict.fromkeys((".jsonl", ".ndjson"), json_lines),
    **dict.fromkeys((".csv", ".tsv"), table),
    **dict.fromkeys(_CODE, code),
    ".json": json_file,
    ".pdf": pdf,
    ".docx": docx,
}
_STREAMED = (json_lines, table, text, markdown)  # what is long comes in rows or parts, or is refused in time
_DEFAULTS = Limits()


def read(
    path: str | Path, *, root: str | Path | None = None, limits: Limits = _DEFAULTS
) -> Iterator[Reading | Refusal]:
    """Every document of a file or folder, and a refusal for whatever was passed over.

    A `uri` is the path below `root`, or the path as given; `.gitignore` files from `root` down count.
    """
    for found in sources(path, root=root, limits=limits):
        if isinstance(found, Refusal):
            yield found
        else:
            yield from readings(found)


def sources(
    path: str | Path, *, root: str | Path | None = None, limits: Limits = _DEFAULTS
) -> Iterator[Source | Refusal]:
    """The files that `read` would read, in its order, and what it would not even open."""
    path, root = Path(path), None if root is None else Path(root)
    if root is not None and path != root and root not in path.parents:
        raise ConfigError(f"{path} is not below root={str(root)!r}: give a root that holds it")
    for found in files(path, root=root) if path.is_dir() else [path]:
        if isinstance(found, tuple):
            yield Refusal(address(found[0], root), found[1])
        else:
            yield Source(found, address(found, root), limits)


def readings(source: Source) -> Iterator[Reading | Refusal]:
    """The documents of one file."""
    return guarded(source.uri, lambda: _reader(source)(source))


def _reader(source: Source) -> Reader:
    """The reader for a file, which is a regular one and not too large: nothing has been read of it yet."""
    suffix = source.path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise Refused(f"there is no reader for {suffix} files")
    about = source.path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise Refused("it is not a regular file")
    if about.st_size > source.limits.bytes and reader not in _STREAMED:
        raise Refused(over("bytes", source.limits.bytes))
    return reader


def address(path: Path, root: Path | None) -> str:
    """The address of a file; a # in it is escaped, since one begins a place inside the file."""
    address = (path.relative_to(root) if root else path).as_posix().replace("%", "%25").replace("#", "%23")
    return address.encode("utf-8", "backslashreplace").decode()
