"""From bytes to text: a byte order mark first, then UTF-8, then what charset-normalizer makes of it.

Line ends stay as they are, so that offsets are those of the file (less its byte order mark). A file with
zero bytes is taken for binary, as Git does. It does not repair text that was decoded wrongly before.
"""

import codecs
import re
from typing import TextIO

from waylore.indexing.blocks import Limits, Refused, Source, over, required

SAMPLE = 1_000_000
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LINE_END = re.compile(r"\r\n?|\n")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def decoded(content: bytes, limits: Limits) -> str:
    """The text of a file whose every line is within the limit."""
    try:
        text = content.decode(encoding_of(content))
    except UnicodeDecodeError as error:
        raise Refused(f"it is not text in {error.encoding}: {error.reason} at byte {error.start}") from error
    checked(text, limits)
    if not text.strip():
        raise Refused("there is no text in it")
    return text


def opened(source: Source) -> TextIO:
    """A file as text in its own encoding, line ends as they are, to be read a little at a time."""
    with source.path.open("rb") as file:
        encoding = encoding_of(file.read(SAMPLE))
    return source.path.open(encoding=encoding, newline="")


def checked(text: str, limits: Limits) -> None:
    """Refuse what is not text, or has a line that is too long."""
    if "\x00" in text:
        raise Refused("it has zero characters: it is not text")
    if len(text) > limits.line and _longest_line(text) > limits.line:
        raise Refused(over("line", limits.line, "characters in a line"))


def encoding_of(content: bytes) -> str:
    """What a file, or the beginning of a long one, is encoded in."""
    if marked := marked_encoding(content):
        return marked
    if b"\x00" in content:
        raise Refused("it has zero bytes: it is not text, or it is UTF-16 without a byte order mark")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content, final=len(content) < SAMPLE)
    except UnicodeDecodeError:
        return _guessed(content[:SAMPLE])
    return "utf-8"


def marked_encoding(content: bytes) -> str:
    """The encoding that a byte order mark tells; nothing where there is none."""
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), "")


def storable(text: str) -> str:
    """A text without what no database takes: zero characters and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)


def line_starts(text: str, most: int) -> list[int]:
    """Where each line begins; one past the last line comes last. Each may be a block, so `most` limits them."""
    if text.count("\n") > most or text.count("\r") > most:
        raise Refused(over("blocks", most, "lines"))
    starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def _longest_line(text: str) -> int:
    """Found without a list of lines: a file may have millions of them."""
    start = longest = 0
    for end in LINE_END.finditer(text):
        longest, start = max(longest, end.start() - start), end.end()
    return max(longest, len(text) - start)


def _guessed(content: bytes) -> str:
    best = required("charset_normalizer").from_bytes(content).best()
    if best is None:
        raise Refused("it is not UTF-8, nor any other encoding that could be told: save it as UTF-8")
    return str(best.encoding)
