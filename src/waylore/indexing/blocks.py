"""What reading a file gives: a text with its blocks and links, or the reason why it was passed over.

The words that every reader shares, and the limits that all of them keep. Nothing here opens a file.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

from waylore.types.knowledge import Metadata

T = TypeVar("T")
BlockKind = Literal["heading", "paragraph", "code", "turn", "row", "list"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a text that belongs together, and the path of headings to it (a heading ends its own path)."""

    kind: BlockKind
    start: int
    end: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """Where a text points to something else without showing it, as HTML does."""

    start: int
    end: int
    target: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One document as it was read; offsets of blocks and links are into `text`.

    Of a long file the text is a part: `start` is where it begins in the file. `reached` is how many bytes of
    the file were read so far, where the reader can tell.
    """

    uri: str
    title: str
    text: str
    blocks: tuple[Block, ...]
    metadata: Metadata = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    start: int = 0
    reached: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was passed over, and why; the reason says what to change."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one file is read at most, so that no file can take all memory or time.

    A plain or Markdown text of more than `whole` bytes is not refused: it comes in parts, each a document.
    """

    bytes: int = 32_000_000
    whole: int = 4_000_000
    unpacked_bytes: int = 32_000_000
    pages: int = 5_000
    operations: int = 5_000_000
    depth: int = 1_000
    line: int = 1_000_000
    blocks: int = 300_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"the limit {name!r} must be at least 1")


class Refused(Exception):
    """A reader cannot or may not go on; its message becomes the reason of a refusal."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is about to be read: where it is, what it is called, and how much of it is read at most."""

    path: Path
    uri: str
    limits: Limits

    @property
    def name(self) -> str:
        """The last part of its address, with no suffix: its title for want of a better one."""
        return Path(self.uri).stem

    def content(self) -> bytes:
        """All its bytes, which are within the limit."""
        with self.path.open("rb") as file:
            content = file.read(self.limits.bytes + 1)
        if len(content) > self.limits.bytes:
            raise Refused(over("bytes", self.limits.bytes))
        if not content:
            raise Refused("it is empty")
        return content


def guarded(uri: str, read: Callable[[], Iterator[T]]) -> Iterator[T | Refusal]:
    """What a reader gives, and a refusal in place of whatever it raises: no file stops the others."""
    try:
        yield from read()
    except Refused as refused:
        yield Refusal(uri, str(refused))
    except UnicodeDecodeError as error:
        yield Refusal(uri, f"it is not text in {error.encoding} to its end: {error.reason}")
    except OSError as error:
        yield Refusal(uri, unopened(error))
    except Exception as error:  # noqa: BLE001 (a library may raise anything for a broken file; none may be fatal)
        yield Refusal(uri, f"it cannot be read: {type(error).__name__}: {error}"[:300])


def unopened(error: OSError) -> str:
    """The reason of a refusal by the system."""
    return f"it cannot be opened: {error.strerror or error}"


def over(limit: str, most: int, of: str = "") -> str:
    """The reason of a refusal for size."""
    return f"it has more than {most:,} {of or limit.replace('_', ' ')}: split it, or raise Limits({limit}=…)"


def required(module: str, extra: str = "files") -> Any:
    """Import a library of an extra, or refuse with what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise Refused(f"{module} is not installed: run `pip install 'waylore[{extra}]'`") from error


def without_gaps(text: str, blocks: Iterable[Block], start: int = 0) -> Iterator[Block]:
    """The blocks, and a paragraph wherever text lies between them: what has no name is still text."""
    headings: tuple[str, ...] = ()
    for block in blocks:
        if start < block.start and not text[start : block.start].isspace():
            yield Block("paragraph", start, block.start, headings)
        yield block
        start, headings = max(start, block.end), block.headings
    if start < len(text) and not text[start:].isspace():
        yield Block("paragraph", start, len(text), headings)


def nested(path: list[tuple[int, str]], level: int, heading: str) -> tuple[str, ...]:
    """Put a heading where its level belongs in a path of headings, and return the path's words."""
    while path and path[-1][0] >= level:
        path.pop()
    path.append((level, heading))
    return tuple(words for _, words in path)
