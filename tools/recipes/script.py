"""The script that a model of recipes follows, whatever the protocol in which it is asked.

A message that begins with "Remember" makes the model call `memory_remember`; for any other it calls `memory_search`,
and its answer is the result of the tool. Without tools, its answer is what the instructions say.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant", "tool", "system"]
SEARCH, REMEMBER = "memory_search", "memory_remember"


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a request."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The decision of the model to call a tool."""

    name: str
    arguments: str


def decide(turns: Sequence[Turn], tools: Sequence[str]) -> ToolUse | str:
    """Return the tool that the script calls next, or its answer."""
    last = [turn for turn in turns if turn.role != "system"][-1]
    if last.role == "tool":
        return last.text
    if last.text.startswith("Remember") and (name := find_tool(tools, REMEMBER)):
        return ToolUse(name, json.dumps({"text": last.text.removeprefix("Remember that ")}))
    if name := find_tool(tools, SEARCH):
        return ToolUse(name, json.dumps({"query": last.text}))
    return "\n".join(turn.text for turn in turns if turn.role == "system")


def find_tool(tools: Sequence[str], name: str) -> str:
    """Return a tool by its name, before which a client may put that of the server; empty if it is not offered."""
    return next((tool for tool in tools if tool == name or tool.endswith(f"__{name}")), "")


def read_text(content: Any) -> str:
    """Return the text of a message, which may come in parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text", "")) for part in content)
