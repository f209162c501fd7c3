"""The result of a reader: a text with its blocks and the author's marks, or the reason why a file was skipped.

All readers and importers share these types, limits and functions. The module knows no format: apart from
`Source.read_bytes` nothing here opens a file.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypeVar

from waylore.lengths import MAX_TITLE
from waylore.types.knowledge import Metadata

T = TypeVar("T")
MAX_REPORTED_SKIPS = 1_000  # reports list this many skipped files and parts; further ones are only counted
_WORD = re.compile(r"[^\W_]")
_WORDLESS = re.compile(r"<!--.*?-->|https?://[^\s<>]+", re.DOTALL)
_EMPTY_REASONS = ("it is empty", "it has no text", "it has no messages", "it has column names and no rows")
BlockKind = Literal["heading", "paragraph", "item", "term", "row", "field", "code", "turn"]
MarkKind = Literal["code", "strong", "emphasis", "link", "role", "markup"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A span that the author marked; offsets are into the text of the reading.

    `target` is the address of a link or the name of a role. A span of `markup` is syntax that is not shown on the page,
    such as asterisks and the address of a link.
    """

    kind: MarkKind
    start: int
    end: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, row or other unit of a text, with its path of headings (which includes itself).

    `key` is the name of a field or of a defined term. `cells` are the columns and cells of a row, the first column
    first; the row of column names has none. Marks are in order of their start. In a data file, `about` is the entry of
    a field or of an entry's heading; if empty, they belong to the document.
    """

    kind: BlockKind
    start: int
    end: int
    headings: tuple[str, ...] = ()
    key: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    marks: tuple[Mark, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One document as a reader returns it; offsets of blocks and marks are into `text`.

    A long file is returned in several parts, and `start` is the offset of the part in the file. `bytes_read` is
    the number of bytes of the file that were read so far, or 0 if the reader does not know.
    """

    uri: str
    title: str
    text: str
    blocks: tuple[Block, ...]
    metadata: Metadata = field(default_factory=dict)
    start: int = 0
    bytes_read: int = 0

    def strip_markup(self, block: Block) -> tuple[str, tuple[Mark, ...]]:
        """Return the visible text of a block, and its marks with offsets into that text."""
        pieces, removed, last = list[str](), list[tuple[int, int]](), block.start
        for mark in block.marks:
            if mark.kind == "markup" and mark.end > last:
                pieces.append(self.text[last : mark.start])
                removed.append((max(last, mark.start), mark.end))
                last = mark.end
        pieces.append(self.text[last : block.end])
        moved = _move_offsets(block.start, removed)
        marks = (replace(m, start=moved(m.start), end=moved(m.end)) for m in block.marks if m.kind != "markup")
        return "".join(pieces), tuple(mark for mark in marks if mark.start < mark.end)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a part of one, that was skipped, with a reason that names the remedy."""

    uri: str
    reason: str

    @property
    def is_empty(self) -> bool:
        """True if the file is empty. The documents of an empty file are removed; other skipped files keep theirs."""
        return self.reason in _EMPTY_REASONS


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits for one file, so that no file can use all memory or time.

    A plain or Markdown text of more than `split_bytes` bytes is not skipped: it is split into parts, and each part
    becomes a document. `seconds` of processor time and `memory` in bytes apply to files that a separate process reads
    (`indexing.files.processes`).
    """

    bytes: int = 32_000_000
    split_bytes: int = 4_000_000
    unpacked_bytes: int = 32_000_000
    pages: int = 5_000
    operations: int = 5_000_000
    depth: int = 1_000
    line: int = 1_000_000
    blocks: int = 300_000
    seconds: int = 60
    memory: int = 1_000_000_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"the limit {name!r} must be at least 1")


class ReadError(Exception):
    """A file cannot be read or exceeds a limit; the message becomes the reason of a `Skipped`."""


def _keep(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its path, its address, and the limits that apply to it.

    Importers pass each value to `clean` to leave secrets out. `first_row` is the number of the first row if the file is
    a piece of a longer one.
    """

    path: Path
    uri: str
    limits: Limits
    clean: Callable[[Any], Any] = _keep
    first_row: int = 1

    @property
    def name(self) -> str:
        """The last part of the address without its suffix: the title of a file without its own."""
        return Path(self.uri).stem

    def read_bytes(self) -> bytes:
        """Return all bytes of the file. Raise ReadError if it is empty or too large."""
        with self.path.open("rb") as file:
            content = file.read(self.limits.bytes + 1)
        if len(content) > self.limits.bytes:
            raise ReadError(describe_limit("bytes", self.limits.bytes))
        if not content:
            raise ReadError("it is empty")
        return content


def catch_read_errors(uri: str, read: Callable[[], Iterator[T]]) -> Iterator[T | Skipped]:
    """Yield the results of a reader, and a `Skipped` instead of any error that it raises."""
    try:
        yield from read()
    except ReadError as error:
        yield Skipped(uri, str(error))
    except UnicodeDecodeError as error:
        yield Skipped(uri, f"it is not text in {error.encoding} to its end: {error.reason}")
    except OSError as error:
        yield Skipped(uri, describe_open_error(error))
    except Exception as error:  # noqa: BLE001 (a library may raise anything for a broken file; none may be fatal)
        yield Skipped(uri, f"it cannot be read: {type(error).__name__}: {error}"[:300])


def describe_open_error(error: OSError) -> str:
    """Return the reason for skipping a file that the operating system cannot open."""
    return f"it cannot be opened: {error.strerror or error}"


def describe_limit(limit: str, maximum: int, unit: str = "") -> str:
    """Return the reason for skipping a file that exceeds a limit; the default of `unit` is the limit's name."""
    what = unit or limit.replace("_", " ")
    return f"it has more than {maximum:,} {what}: split it, or raise the limit `{limit}`"


def require_library(module: str, extra: str = "files") -> Any:
    """Import a library of an extra. Raise ReadError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ReadError(f"{module} is not installed: run `pip install 'waylore[{extra}]'`") from error


def _move_offsets(start: int, removed: list[tuple[int, int]]) -> Callable[[int], int]:
    """Return a function that moves an offset into the text from `start` on without the removed spans."""
    ends = [end for _, end in removed]
    sizes = list(accumulate((end - first for first, end in removed), initial=0))

    def move(offset: int) -> int:
        number = bisect_right(ends, offset)
        inside = max(offset - removed[number][0], 0) if number < len(removed) else 0
        return offset - start - sizes[number] - inside

    return move


def has_words(text: str) -> bool:
    """Return whether a text has a letter or digit outside of addresses and comments."""
    return bool(_WORD.search(_WORDLESS.sub(" ", text)))


def nest_heading(path: list[tuple[int, str]], level: int, heading: str) -> tuple[str, ...]:
    """Add a heading to a path of headings at its level, and return the headings of the path.

    A heading is repeated in each passage below it, so a long one is cut.
    """
    while path and path[-1][0] >= level:
        path.pop()
    path.append((level, heading[:MAX_TITLE]))
    return tuple(words for _, words in path)
