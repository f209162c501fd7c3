"""Read `conversations.json` of a Claude export, and the transcripts of Claude Code.

The text of a message is the text of its `content` blocks, or its field `text` without such a block. Each call of a tool
and each result becomes a separate message before that text. Reasoning and attached documents are not read. In a
transcript, messages of subagents, summaries, commands and reminders of the program are left out.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped
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
from waylore.indexing.conversations.messages import ROLE_NAMES, Fields, format_call, get_text, join_text, to_time
from waylore.types.messages import Conversation, Message

_UNSAID = ("isSidechain", "isMeta", "isCompactSummary")  # flags of lines from neither the user nor the assistant
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_COMMAND = ("<command-", "<local-command-", "<bash-", "<user-prompt-submit-hook>")


def read_claude(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield each conversation of the file."""
    return convert_items(read_items(file), _read_conversation)


def read_claude_code(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield the conversation of a transcript, with the id of the session."""
    lines = list(read_items(file))
    said = [line for line in lines if isinstance(line, ExportItem) and is_transcript_line(line.value)]
    messages, broken = convert_messages(said, _read_line)
    named = (get_text(line.value, "sessionId") for line in said)
    heading = Heading(file.uri, next(filter(None, named), "") or file.name)
    damaged = (line for line in lines if isinstance(line, Skipped))
    yield from build_conversation(heading, sort_by_time(messages), [*damaged, *broken])


def is_transcript_line(value: Any) -> bool:
    """Return whether a value is a line of Claude Code from the user or the assistant."""
    if not isinstance(value, Mapping) or value.get("type") not in ("user", "assistant"):
        return False
    return isinstance(value.get("message"), Mapping) and not any(value.get(flag) for flag in _UNSAID)


def _read_line(value: Fields) -> Iterator[Message]:
    content, id_ = value["message"].get("content"), get_text(value, "uuid")
    at = to_time(value.get("timestamp"), "timestamp")
    for number, block in enumerate(content if isinstance(content, list) else (), start=1):
        if isinstance(block, Mapping):
            yield from _read_tool(block, at, f"{id_}#{number}" if id_ else "")
    text = _REMINDER.sub("", join_text(content)).strip()
    if text and not text.startswith(_COMMAND):
        yield Message(ROLE_NAMES[value["type"]], text, at=at, id=id_)


def _read_conversation(item: ExportItem) -> Iterator[Conversation | Skipped]:
    at = to_time(item.value.get("created_at"), "created_at")
    heading = Heading(item.uri, get_text(item.value, "uuid") or item.uri, get_text(item.value, "name"), at)
    numbered = number_messages(item.uri, get_list(item.value, "chat_messages"))
    messages, skipped = convert_messages(numbered, _read_message)
    yield from build_conversation(heading, sort_by_time(messages), skipped)


def _read_message(value: Fields) -> Iterator[Message]:
    sender = get_text(value, "sender")
    if sender not in ROLE_NAMES:
        raise ReadError(f"its sender {sender!r:.40} is unknown")
    at, id_, blocks = (
        to_time(value.get("created_at"), "created_at"),
        get_text(value, "uuid"),
        get_list(value, "content"),
    )
    for number, block in enumerate(blocks, start=1):
        if isinstance(block, Mapping):
            yield from _read_tool(block, at, f"{id_}#{number}" if id_ else "")
    if text := join_text(blocks) or get_text(value, "text"):
        yield Message(ROLE_NAMES[sender], text, at=at, id=id_)


def _read_tool(block: Fields, at: datetime | None, id_: str) -> Iterator[Message]:
    name = get_text(block, "name")
    if block.get("type") == "tool_use" and (call := format_call(name, block.get("input"))):
        yield Message("assistant", call, name, at, id_, is_tool=True)
    if block.get("type") == "tool_result" and (result := join_text(block.get("content"))):
        yield Message("tool", result, name, at, id_, is_tool=True)
