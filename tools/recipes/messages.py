"""Read requests of Anthropic's protocol, and write answers as the events of a stream, for Claude Code."""

import json
from collections.abc import Mapping
from typing import Any

from tools.recipes.script import Role, ToolUse, Turn, read_text

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
REMINDER = "<system-reminder>"  # begins text that the client adds to what the user says


def read_messages(body: Mapping[str, Any]) -> list[Turn]:
    """Return the messages of a request."""
    return [Turn("system", read_text(body.get("system"))), *map(read_message, body["messages"])]


def read_message(message: Mapping[str, Any]) -> Turn:
    """Return a message; the result of a tool is one of its own, and reminders of the client are left out."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in parts:
        if part["type"] == "tool_result":
            return Turn("tool", read_text(part.get("content")))
    role = ROLES[message["role"]]
    said = [part["text"] for part in parts if part["type"] == "text" and not part["text"].startswith(REMINDER)]
    return Turn(role, said[-1] if said else "")


def stream_message(model: str, decision: ToolUse | str) -> str:
    """Return a decision as the events of a stream."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    if isinstance(decision, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": decision}
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": decision.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": decision.arguments}
    reason = "end_turn" if isinstance(decision, str) else "tool_use"
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
