"""Read a plain transcript: `Name: text` on each line, with an optional `[time]` before the name.

A line without a name continues the one before. `user`, `assistant`, `system` and `tool` as names are roles; every other
name is the name of a person with the role `user`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.indexing.blocks import Skipped
from waylore.indexing.conversations.assembly import Heading, build_conversation, sort_by_time
from waylore.indexing.conversations.export import ExportText, split_lines
from waylore.indexing.conversations.messages import ROLE_NAMES
from waylore.indexing.encoding import make_storable
from waylore.types.messages import Conversation, Message

_SAMPLED_LINES = 200  # lines that are read to detect the format
_MAX_NAME_WORDS = 4
# Repetitions are bounded, so a long line takes linear time.
_LINE = re.compile(
    r"\ufeff?(?:\[([^\[\]]{0,40}\d[^\[\]]{0,40})\]\s*)?([^\W\d_][^:：\n]{0,59}?)\s{0,3}(?::(?=\s|$)|：)\s*(.*)"
)
_PARTICLES = frozenset("al bin da de del della der di dos du el la le of the van von y zu".split())


class SpokenLine(NamedTuple):
    """A line that begins with a name: the time and the name as written, and the text after them."""

    time: str
    name: str
    text: str


def is_transcript(text: str) -> bool:
    """Return whether the first line has a name, and a name occurs twice, is a role, or has a time before it.

    One of these is needed because files of settings have lines with a word and a colon as well.
    """
    lines = [line for _, line in islice(split_lines(text), _SAMPLED_LINES) if line.strip()]
    spoken = [found for line in lines if (found := _parse_line(line))]
    if not spoken or not _parse_line(lines[0]):
        return False
    names = Counter(line.name for line in spoken)
    is_role = any(name.lower() in ROLE_NAMES for name in names)
    return is_role or max(names.values()) > 1 or any(_read_time(line.time) for line in spoken)


def read_transcript(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield the conversation of the file."""
    messages, skipped = list[Message](), list[Skipped]()
    for number, line, text in _join_lines(file.text):
        if line is None:
            skipped.append(Skipped(f"{file.uri}#line={number}", "it is before the first line with a name"))
        elif text:
            messages.append(_make_message(line, text))
    name = make_storable(file.name)
    yield from build_conversation(Heading(file.uri, name, name), sort_by_time(messages), skipped)


def _join_lines(text: str) -> Iterator[tuple[int, SpokenLine | None, str]]:
    """Yield each message: the number of its first line, that line, and its text with continuation lines."""
    number, first, lines = 1, None, list[str]()
    for place, line in split_lines(text):
        if spoken := _parse_line(line):
            if first or "".join(lines).strip():
                yield number, first, _join(lines)
            number, first, lines = place, spoken, [spoken.text]
        else:
            lines.append(line)
    if first or "".join(lines).strip():
        yield number, first, _join(lines)


def _parse_line(line: str) -> SpokenLine | None:
    found = _LINE.match(line)
    return SpokenLine(found[1] or "", found[2], found[3]) if found and _is_name(found[2]) else None


def _is_name(label: str) -> bool:
    """Return whether a label can be a name: one word, or a few with capitals, except for particles."""
    words = label.split()
    is_named = len(words) == 1 or all(not word[0].islower() or word in _PARTICLES for word in words)
    return is_named and len(words) <= _MAX_NAME_WORDS


def _make_message(line: SpokenLine, text: str) -> Message:
    role = ROLE_NAMES.get(line.name.lower())
    name = "" if role else make_storable(line.name)
    return Message(role or "user", text, name, _read_time(line.time), is_tool=role == "tool")


def _read_time(text: str) -> datetime | None:
    """Return a time with its date; a time of day without a date is ignored."""
    try:
        return to_datetime(text)
    except ArgumentError:
        return None


def _join(lines: list[str]) -> str:
    return make_storable("\n".join(lines)).strip()
