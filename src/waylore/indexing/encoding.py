"""Decode bytes to text: by byte order mark, then as UTF-8, then by the guess of charset-normalizer.

Line ends are not changed, so offsets are offsets into the file without its byte order mark. A file with zero bytes
counts as binary, as in Git. The module does not repair text that was decoded wrongly before.
"""

import codecs
import re
from typing import TextIO

from waylore.indexing.blocks import Limits, ReadError, Source, describe_limit, require_library

SAMPLE_BYTES = 1_000_000
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, because its mark begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LINE_END = re.compile(r"\r\n?|\n")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def decode_text(content: bytes, limits: Limits) -> str:
    """Return the text of a file. Raise ReadError if it is blank, not text, or has a line beyond the limit."""
    try:
        text = content.decode(detect_encoding(content))
    except UnicodeDecodeError as error:
        raise ReadError(f"it is not text in {error.encoding}: {error.reason} at byte {error.start}") from error
    check_text(text, limits)
    if not text.strip():
        raise ReadError("it has no text")
    return text


def open_text(source: Source) -> TextIO:
    """Open a file as text in its own encoding, without changing line ends."""
    with source.path.open("rb") as file:
        encoding = detect_encoding(file.read(SAMPLE_BYTES))
    return source.path.open(encoding=encoding, newline="")


def check_text(text: str, limits: Limits) -> None:
    """Raise ReadError if a text has zero characters or a line that is too long."""
    if "\x00" in text:
        raise ReadError("it has zero characters: it is not text")
    if len(text) > limits.line and _measure_longest_line(text) > limits.line:
        raise ReadError(describe_limit("line", limits.line, "characters in a line"))


def detect_encoding(content: bytes) -> str:
    """Return the encoding of a file, given its bytes or the first SAMPLE_BYTES of them."""
    if encoding := detect_bom(content):
        return encoding
    if b"\x00" in content:
        raise ReadError("it has zero bytes: it is not text, or it is UTF-16 without a byte order mark")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content, final=len(content) < SAMPLE_BYTES)
    except UnicodeDecodeError:
        return _guess_encoding(content[:SAMPLE_BYTES])
    return "utf-8"


def detect_bom(content: bytes) -> str:
    """Return the encoding of the byte order mark, or an empty string without one."""
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), "")


def make_storable(text: str) -> str:
    """Replace the characters that no database accepts: zero characters and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)


def find_line_starts(text: str, max_lines: int) -> list[int]:
    """Return the offset of each line, and the length of the text as the last item.

    Each line may become a block, so a text with more than `max_lines` raises ReadError.
    """
    if text.count("\n") > max_lines or text.count("\r") > max_lines:
        raise ReadError(describe_limit("blocks", max_lines, "lines"))
    starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def _measure_longest_line(text: str) -> int:
    """Return the length of the longest line, without a list of lines: a file may have millions of them."""
    start = longest = 0
    for end in LINE_END.finditer(text):
        longest, start = max(longest, end.start() - start), end.end()
    return max(longest, len(text) - start)


def _guess_encoding(content: bytes) -> str:
    best = require_library("charset_normalizer").from_bytes(content).best()
    if best is None:
        raise ReadError("its encoding cannot be detected: save it as UTF-8")
    return str(best.encoding)
