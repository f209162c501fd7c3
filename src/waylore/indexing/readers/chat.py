"""Read JSON: conversations in OpenAI's message format; `data` reads any other JSON file.

A conversation is a list of messages, or an object with `messages`. Each message becomes a turn, `role: content`. Only
the text parts of a content are read, and a tool call is written as its name and arguments. The module does not find
the people behind the roles.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from waylore.indexing.blocks import Block, ReadError, Reading, Source, describe_limit
from waylore.indexing.encoding import decode_text, make_storable
from waylore.indexing.readers.data import read_value


def read_json(source: Source) -> Iterator[Reading]:
    """Read a JSON file as a conversation if possible, else as fields."""
    text = decode_text(source.read_bytes(), source.limits)
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"it is not JSON: {error}"[:300]) from error
    messages = value["messages"] if isinstance(value, dict) and is_conversation(value) else value
    if isinstance(messages, list) and messages and all(map(is_message, messages)):
        yield build_conversation(source.uri, source.name, messages)
    else:
        yield read_value(source, text, value)


def is_conversation(value: Mapping[str, Any]) -> bool:
    """Return whether an object has a list of messages."""
    messages = value.get("messages")
    return isinstance(messages, list) and bool(messages) and all(map(is_message, messages))


def is_message(value: object) -> bool:
    """Return whether a value is a message of a conversation."""
    return (
        isinstance(value, dict) and isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value)
    )


def read_messages(source: Source, values: Iterable[object]) -> Iterator[Reading]:
    """Read a file with one message per line as one conversation.

    The conversation is held in memory, so its length is limited.
    """
    messages, length = [], 0
    for number, value in enumerate(values, start=1):
        if not is_message(value):
            raise ReadError(f"line {number} is not a message like the lines before it: it needs `role` and `content`")
        messages.append(value)
        length += len(str(value))
        if length > source.limits.bytes:
            raise ReadError(describe_limit("bytes", source.limits.bytes))
    yield build_conversation(source.uri, source.name, messages)


def build_conversation(uri: str, title: str, messages: Iterable[Any]) -> Reading:
    """Return messages as one document with a block for each turn."""
    turns, blocks, length = [], [], 0
    for message in messages:
        content = _format_content(message)
        if not content:
            continue
        turn = make_storable(f"{message.get('name') or message['role']}: {content}")
        blocks.append(Block("turn", length, length + len(turn)))
        turns.append(turn)
        length += len(turn) + 2
    if not blocks:
        raise ReadError("its messages have no text")
    return Reading(uri, title, "\n\n".join(turns), tuple(blocks), {"turns": len(blocks)})


def _format_content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [_get_text(part) for part in parts]
    calls = message.get("tool_calls")
    texts += [_format_call(call) for call in (calls if isinstance(calls, list) else [])]
    return "\n".join(text for text in texts if text)


def _get_text(part: object) -> str:
    if isinstance(part, dict):
        part = part.get("text")
    return part.strip() if isinstance(part, str) else ""


def _format_call(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    return f"{function.get('name')}({function.get('arguments', '')})" if isinstance(function, dict) else ""
