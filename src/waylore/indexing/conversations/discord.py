"""Read a channel that DiscordChatExporter wrote as JSON: one conversation for each day.

Notices, such as joins and pins, are left out; attachments, embeds and reactions are not read. Discord's own data
package is not read: it has only the messages of one account, and another format.
"""

from collections.abc import Iterator

from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.assembly import (
    Heading,
    build_days,
    convert_items,
    convert_messages,
    get_list,
    get_object,
    number_messages,
)
from waylore.indexing.conversations.export import ExportText
from waylore.indexing.conversations.items import ExportItem, read_items
from waylore.indexing.conversations.messages import Fields, get_text, to_time
from waylore.types.messages import Conversation, Message

# Kinds of messages that people write. The exporter writes kinds without a name as numbers: 20 and 23 are answers to
# commands.
_WRITTEN = ("", "Default", "Reply", "0", "19", "20", "23")


def read_discord(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield each day of the channel."""
    return convert_items(read_items(file), _read_channel)


def _read_channel(item: ExportItem) -> Iterator[Conversation | Skipped]:
    guild, channel = get_object(item.value, "guild"), get_object(item.value, "channel")
    name = get_text(channel, "name")
    title = f"{get_text(guild, 'name')} #{name}".strip()
    heading = Heading(item.uri, get_text(channel, "id") or name or item.uri, title)
    numbered = number_messages(item.uri, get_list(item.value, "messages"))
    yield from build_days(heading, *convert_messages(numbered, _read_message))


def _read_message(value: Fields) -> Iterator[Message]:
    text = get_text(value, "content")
    if not text or get_text(value, "type") not in _WRITTEN:
        return
    at = to_time(value.get("timestamp"), "timestamp")
    if at is None:
        raise ReadError("it has no timestamp")
    author = get_object(value, "author")
    name = get_text(author, "nickname", "name")
    yield Message("assistant" if author.get("isBot") is True else "user", text, name, at, get_text(value, "id"))
