"""Reads conversations in OpenAI's message format: every message a turn, `role: what was said`.

A conversation is a list of messages, or an object with `messages`. Of content in parts only text is kept; a
call of a tool is kept as its name and arguments. It does not say who the people behind the roles are.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from waylore.indexing.blocks import Block, Reading, Refused, Source, over
from waylore.indexing.encoding import decoded, storable


def json_file(source: Source) -> Iterator[Reading]:
    """A conversation where the file is one; else its text as it stands."""
    written = decoded(source.content(), source.limits)
    try:
        value = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise Refused(f"it is not JSON: {error}"[:300]) from error
    messages = value["messages"] if isinstance(value, dict) and is_conversation(value) else value
    if isinstance(messages, list) and messages and all(map(is_message, messages)):
        yield conversation(source.uri, source.name, messages)
    else:
        yield Reading(source.uri, source.name, written, (Block("code", 0, len(written)),))


def is_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object holds messages."""
    messages = value.get("messages")
    return isinstance(messages, list) and bool(messages) and all(map(is_message, messages))


def is_message(value: object) -> bool:
    """Whether a value is a message of a conversation."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value)
    )


def joined_messages(source: Source, values: Iterable[object]) -> Iterator[Reading]:
    """A conversation that comes message by message; it is held whole, so its length is limited."""
    messages, length = [], 0
    for number, value in enumerate(values, start=1):
        if not is_message(value):
            raise Refused(
                f"line {number} is no message, though the lines before it are: it needs `role` and `content`"
            )
        messages.append(value)
        length += len(str(value))
        if length > source.limits.bytes:
            raise Refused(over("bytes", source.limits.bytes))
    yield conversation(source.uri, source.name, messages)


def conversation(uri: str, title: str, messages: Iterable[Any]) -> Reading:
    """Messages as one document, a turn each."""
    written, blocks, length = [], [], 0
    for message in messages:
        said = _said(message)
        if not said:
            continue
        turn = storable(f"{message.get('name') or message['role']}: {said}")
        blocks.append(Block("turn", length, length + len(turn)))
        written.append(turn)
        length += len(turn) + 2
    if not blocks:
        raise Refused("nobody says anything in it")
    return Reading(uri, title, "\n\n".join(written), tuple(blocks), {"turns": len(blocks)})


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    said = [_words(part) for part in parts]
    calls = message.get("tool_calls")
    said += [_call(call) for call in (calls if isinstance(calls, list) else [])]
    return "\n".join(part for part in said if part)


def _words(part: object) -> str:
    if isinstance(part, dict):
        part = part.get("text")
    return part.strip() if isinstance(part, str) else ""


def _call(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    return f"{function.get('name')}({function.get('arguments', '')})" if isinstance(function, dict) else ""
