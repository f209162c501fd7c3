"""Read files of messages in OpenAI's format, as JSON or JSON Lines.

A file is one conversation if its values are messages, and several if they are objects with `messages`. The format of
a message is that of `to_messages`.
"""

from collections.abc import Iterable, Iterator

from waylore.indexing.blocks import Skipped
from waylore.indexing.conversations.assembly import (
    Heading,
    build_conversation,
    convert_items,
    convert_messages,
    get_list,
    number_messages,
    sort_by_time,
)
from waylore.indexing.conversations.export import ExportText
from waylore.indexing.conversations.items import ExportItem, read_items
from waylore.indexing.conversations.messages import TIME_FIELDS, get_text, to_messages, to_time
from waylore.types.messages import Conversation

_ID_FIELDS = ("id", "conversation_id", "session_id", "thread_id")


def read_openai(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield each conversation of the file; messages outside of a conversation form the last one."""
    loose = list[ExportItem]()

    def read_item(item: ExportItem) -> Iterable[Conversation | Skipped]:
        if isinstance(item.value.get("messages"), list):
            return _read_conversation(item, file.name + item.uri.removeprefix(file.uri))
        loose.append(item)
        return ()

    yield from convert_items(read_items(file), read_item)
    if loose:
        messages, skipped = convert_messages(loose, to_messages)
        yield from build_conversation(Heading(file.uri, file.name), sort_by_time(messages), skipped)


def _read_conversation(item: ExportItem, name: str) -> Iterator[Conversation | Skipped]:
    at = to_time(next((item.value[field] for field in TIME_FIELDS if item.value.get(field) is not None), None))
    title = get_text(item.value, "title", "name")
    heading = Heading(item.uri, get_text(item.value, *_ID_FIELDS) or name, title, at)
    messages, skipped = convert_messages(number_messages(item.uri, get_list(item.value, "messages")), to_messages)
    yield from build_conversation(heading, sort_by_time(messages), skipped)
