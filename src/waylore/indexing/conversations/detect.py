"""Detect the format of an export by its content: the first typical value of JSON, or the first lines of text."""

from typing import Any

from waylore.indexing.conversations.claude import is_transcript_line
from waylore.indexing.conversations.export import ExportText
from waylore.indexing.conversations.items import sample_values
from waylore.indexing.conversations.transcript import is_transcript
from waylore.indexing.conversations.whatsapp import is_whatsapp

SAMPLED_VALUES = 100  # values that are read to detect the format


def detect_format(file: ExportText) -> str:
    """Return the format of a file; an empty string if none is detected."""
    if file.text.lstrip("\ufeff \t\r\n")[:1] in ("[", "{"):
        detected = (_detect_value_format(value) for value in sample_values(file, SAMPLED_VALUES))
        if format_ := next(filter(None, detected), ""):
            return format_
    if is_whatsapp(file.text):
        return "whatsapp"
    return "transcript" if is_transcript(file.text) else ""


def _detect_value_format(value: Any) -> str:
    """Return the format for which a value is typical, or an empty string."""
    if not isinstance(value, dict):
        return ""
    tests = {
        "chatgpt": isinstance(value.get("mapping"), dict),
        "claude": isinstance(value.get("chat_messages"), list),
        "claude-code": is_transcript_line(value),
        "discord": isinstance(value.get("channel"), dict) and isinstance(value.get("messages"), list),
    }
    if found := next((name for name, is_typical in tests.items() if is_typical), ""):
        return found
    is_message = isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value)
    return "openai" if is_message or isinstance(value.get("messages"), list) else ""
