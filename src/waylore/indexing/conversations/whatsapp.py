"""Read a chat that WhatsApp exported as text, on iOS or Android: one conversation for each day.

A message begins with a date and a time in the order of the phone's locale, which the file does not state. If any first
number is over 12, the day is first; if any second number is, the month is first; otherwise the caller must decide.
Times have no zone and are read as UTC. Placeholders for media, and lines without a name, which the program wrote, are
left out.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from waylore.errors import ArgumentError
from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.assembly import Heading, build_days
from waylore.indexing.conversations.export import ExportText, split_lines
from waylore.indexing.encoding import make_storable
from waylore.types.messages import Conversation, Message

_SAMPLED_LINES = 20  # lines that are read to detect the format
_MARK = "[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"  # marks of writing direction, and the byte order mark
_OWN = "\u200e"  # on iOS, texts of WhatsApp itself begin with this mark
_DATE = rf"(\d{{4}}|\d{{1,2}}){_MARK}?([./-])\s?{_MARK}?(\d{{1,2}}){_MARK}?[./-]\s?{_MARK}?(\d{{4}}|\d{{1,2}})\.?"
_TIME = r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?(?:\s?([apصم])\.?\s?m?\.?)?"
_START = re.compile(
    rf"{_MARK}*(\[?){_DATE}{_MARK}?[,،]?\s(?:\w{{1,3}}\.?\s)?{_MARK}?{_TIME}{_MARK}?(?:\]|\s-)\s(.*)", re.IGNORECASE
)
_SPEAKER = re.compile(r"([^:\n\"“”]{1,100}):(?:\s(.*)|$)", re.DOTALL)
# WhatsApp adds these to a text: the name of an attached file, or a note that the message was edited.
_ADDED = re.compile(r"(?:\u200e<[^<>\n]+>|<This message was edited>)$")
_MEDIA = re.compile(r"<[^<>\n]+>|(?:image|video|audio|GIF|sticker|document|Contact card) omitted", re.IGNORECASE)
_MARKS = re.compile(_MARK)
_COPY = re.compile(r" \(\d+\)$")  # browsers add this to the name of a file that is downloaded again


def is_whatsapp(text: str) -> bool:
    """Return whether one of the first lines begins with a date and time as WhatsApp writes them."""
    starts = (_START.match(line) for _, line in islice(split_lines(text), _SAMPLED_LINES))
    return any(start and not (start[1] and start[3] == "-") for start in starts)


def read_whatsapp(file: ExportText, *, day_first: bool | None = None) -> Iterator[Conversation | Skipped]:
    """Yield each day of the chat. Raise ArgumentError at once if the order of day and month cannot be decided."""
    return _read_chat(file, is_day_first=decide_day_first([file], day_first=day_first))


def decide_day_first(files: Iterable[ExportText], *, day_first: bool | None) -> bool:
    """Return whether the day is before the month: by numbers over 12, else by the choice of the caller."""
    is_open = False
    for file in files:
        for first, second in _find_ambiguous(file.text):
            if max(first, second) > 12:
                return first > 12
            is_open = is_open or first != second
    if is_open and day_first is None:
        raise ArgumentError(
            "day_first must be given: every date of this chat can be read with the day or the month first; "
            "pass day_first=True for 31/12 or day_first=False for 12/31"
        )
    return bool(day_first)


def _find_ambiguous(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first two numbers of each date that does not begin with the year."""
    for _, line in split_lines(text):
        start = _START.match(line)
        if start and len(start[2]) < 3:
            yield int(start[2]), int(start[4])


def _read_chat(file: ExportText, *, is_day_first: bool) -> Iterator[Conversation | Skipped]:
    messages, skipped = list[Message](), list[Skipped]()
    for number, start, text in _join_lines(file.text):
        try:
            if start is None:
                raise ReadError("it is before the first line with a date")
            messages += _read_message(_read_time(start, is_day_first=is_day_first), text)
        except ReadError as error:
            skipped.append(Skipped(f"{file.uri}#line={number}", str(error)))
    title = _COPY.sub("", make_storable(file.name))
    yield from build_days(Heading(file.uri, title, title), messages, skipped)


def _join_lines(text: str) -> Iterator[tuple[int, re.Match[str] | None, str]]:
    """Yield each message: the number of its first line, its date, and its text with continuation lines."""
    number, start, lines = 0, None, list[str]()
    for place, line in split_lines(text):
        found = _START.match(line)
        if found or not lines:
            if lines:
                yield number, start, "\n".join(lines)
            number, start, lines = place, found, [found[10] if found else line]
        else:
            lines.append(line)
    if lines and (start or "".join(lines).strip()):
        yield number, start, "\n".join(lines)


def _read_message(at: datetime, text: str) -> Iterator[Message]:
    speaker = _SPEAKER.match(text)
    name, content = (speaker[1], speaker[2] or "") if speaker else ("", text)
    is_own = not speaker or content.startswith(_OWN)
    content = _clean(content if is_own else _ADDED.sub("", content.rstrip()))
    if not content or _MEDIA.fullmatch(content):
        return
    if is_own:
        yield Message("system", content, at=at)
    else:
        yield Message("user", content, _clean(name).lstrip("~ \u202f"), at)


def _read_time(start: re.Match[str], *, is_day_first: bool) -> datetime:
    first, second, third = int(start[2]), int(start[4]), int(start[5])
    if len(start[2]) > 2:
        year, month, day = first, second, third
    else:
        year, (day, month) = third, (first, second) if is_day_first else (second, first)
    hour = int(start[6])
    if start[9]:
        hour = hour % 12 + (12 if start[9].lower() in "pم" else 0)
    year += 2000 if year < 100 else 0
    try:
        return datetime(year, month, day, hour, int(start[7]), int(start[8] or 0), tzinfo=UTC)
    except ValueError as error:
        raise ReadError(f"its date and time do not exist: {error}") from error


def _clean(text: str) -> str:
    return make_storable(_MARKS.sub("", text)).strip()
