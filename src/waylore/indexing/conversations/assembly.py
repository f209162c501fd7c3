"""Assemble conversations from the values of an export: convert messages, skip broken ones, order them by time.

A message that cannot be converted is reported with its place and the reason, and the others are kept. A message whose
id already occurred in the conversation is left out. The module knows no format.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from waylore.errors import WayloreError
from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.items import MAX_REASON_CHARACTERS, ExportItem
from waylore.indexing.conversations.messages import Fields
from waylore.types.messages import Conversation, Message

_BROKEN = (ReadError, WayloreError, ValueError, TypeError, OverflowError, RecursionError)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Heading(NamedTuple):
    """The fields of a conversation besides its messages; `uri` is its address in reports."""

    uri: str
    id: str
    title: str = ""
    at: datetime | None = None


def convert_items(
    items: Iterable[ExportItem | Skipped], convert: Callable[[ExportItem], Iterable[Conversation | Skipped]]
) -> Iterator[Conversation | Skipped]:
    """Yield the conversations of each object; an item that cannot be converted is skipped with the reason."""
    for item in items:
        if isinstance(item, Skipped):
            yield item
            continue
        try:
            _check_object(item.value)
            converted = list(convert(item))
        except _BROKEN as error:
            yield Skipped(item.uri, str(error)[:MAX_REASON_CHARACTERS])
        else:
            yield from converted


def number_messages(uri: str, values: Iterable[Any]) -> Iterator[ExportItem]:
    """Yield each message of a conversation with its address."""
    for number, value in enumerate(values, start=1):
        yield ExportItem(f"{uri}#message={number}", value)


def convert_messages(
    items: Iterable[ExportItem], convert: Callable[[Fields], Iterable[Message]]
) -> tuple[list[Message], list[Skipped]]:
    """Return the messages of all objects, each id once, and a `Skipped` for each broken object."""
    messages, skipped, seen = list[Message](), list[Skipped](), set[str]()
    for item in items:
        try:
            converted = list(convert(_check_object(item.value)))
        except _BROKEN as error:
            skipped.append(Skipped(item.uri, str(error)[:MAX_REASON_CHARACTERS]))
            continue
        messages += (message for message in converted if not message.id or message.id not in seen)
        seen.update(message.id for message in converted)
    return messages, skipped


def build_conversation(
    heading: Heading, messages: Iterable[Message], skipped: Iterable[Skipped] = ()
) -> Iterator[Conversation | Skipped]:
    """Yield the skipped messages, then the conversation, or the reason if no message is left.

    The conversation begins at the time of its heading, or of its first message with a time.
    """
    yield from skipped
    kept = tuple(messages)
    if kept:
        at = heading.at or next((message.at for message in kept if message.at), None)
        yield Conversation(heading.id, heading.title, kept, at)
    else:
        yield Skipped(heading.uri, "it has no messages")


def build_days(
    heading: Heading, messages: Iterable[Message], skipped: Iterable[Skipped] = ()
) -> Iterator[Conversation | Skipped]:
    """Yield the skipped messages, then a conversation for each day of a channel, with the day in id and title."""
    yield from skipped
    ordered = sort_by_time(messages)
    if not ordered:
        yield Skipped(heading.uri, "it has no messages")
    days: dict[str, list[Message]] = {}
    for message in ordered:
        days.setdefault(str(message.at.date()) if message.at else "", []).append(message)
    for day, of_day in days.items():
        yield from build_conversation(name_day(heading, day), of_day)


def name_day(heading: Heading, day: str) -> Heading:
    """Return the heading of one day of a channel."""
    return heading._replace(id=f"{heading.id}/{day}", title=f"{heading.title} {day}".strip(), at=None)


def sort_by_time(messages: Iterable[Message]) -> list[Message]:
    """Order messages by time; a message without a time stays after its predecessor."""
    latest, timed = _BEGINNING, list[tuple[datetime, Message]]()
    for message in messages:
        latest = message.at or latest
        timed.append((latest, message))
    return [message for _, message in sorted(timed, key=lambda pair: pair[0])]


def get_object(fields: Fields, name: str) -> Fields:
    """Return the object in a field; an empty one if there is no value."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise ReadError(f"its {name} must be an object, got {type(value).__name__}")
    return value or {}


def get_list(fields: Fields, name: str) -> list[Any]:
    """Return the list in a field; an empty one if there is no value."""
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise ReadError(f"its {name} must be a list, got {type(value).__name__}")
    return value or []


def _check_object(value: object) -> Fields:
    if not isinstance(value, dict):
        raise ReadError("it is not a JSON object")
    return value
