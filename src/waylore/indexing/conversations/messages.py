"""Convert messages in OpenAI's format, as a caller passes them, to `Message`.

The readers of exports share the functions that take fields from a message. The module opens no file and does not change
the order of messages.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.indexing.encoding import make_storable
from waylore.types.messages import ROLES, Message, Role

Fields: TypeAlias = Mapping[str, Any]
TIME_FIELDS = ("at", "created_at", "timestamp")
# Other names of the four roles, as programs and people write them.
ROLE_NAMES: dict[str, Role] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "developer": "system",
    "function": "tool",
}
_EXPECTED = "messages must be a string, a dict with role and content, or a list of such dicts"


def to_messages(given: str | Fields | Sequence[Fields | Message]) -> tuple[Message, ...]:
    """Return messages in OpenAI's format as `Message`, in the given order.

    given: a string (one message of the user), a dict, or a list of dicts with `role`, `content` (a string, or a list of
        parts; only parts with `type: text` are read), and optionally `name`, `id`, and `at`, `created_at` or
        `timestamp` (a datetime, ISO text or Unix seconds).

    Messages without text, such as pictures, are left out. A message of a tool, and an assistant's message that only
    calls tools, has `is_tool`.
    """
    values: object = given
    if isinstance(values, str):
        return tuple(_read_message({"role": "user", "content": values}, "messages"))
    if isinstance(values, Mapping):
        return tuple(_read_message(values, "messages"))
    if not isinstance(values, list | tuple):
        raise ArgumentError(f"{_EXPECTED}, got {type(values).__name__}")
    return tuple(
        message for number, value in enumerate(values) for message in _read_message(value, f"messages[{number}]")
    )


def to_time(value: object, name: str = "at") -> datetime | None:
    """Return a datetime, a date, ISO text or Unix seconds as an aware datetime; None if there is no value."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise ArgumentError(f"{name} must be Unix time in seconds, got {value!r:.40}") from error
    if isinstance(value, str | date):
        return to_datetime(value, name)
    raise ArgumentError(f"{name} must be a datetime, ISO 8601 text or Unix seconds, got {type(value).__name__}")


def get_text(fields: Fields, *names: str) -> str:
    """Return the first text or whole number, as text, among these fields, or an empty string."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            text = make_storable(str(value)).strip()
            if text:
                return text
    return ""


def join_text(content: object) -> str:
    """Return the text of a content: a string, or the strings and the parts of `type: text` in a list."""
    parts = content if isinstance(content, list | tuple) else [content]
    texts = (_get_part_text(part) for part in parts)
    return make_storable("\n\n".join(text for text in texts if text)).strip()


def format_call(name: object, arguments: object) -> str:
    """Return the call of a tool as `name(arguments)`, or an empty string if it has no name."""
    if not isinstance(name, str) or not name.strip():
        return ""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return make_storable(f"{name.strip()}({written})")


def _read_message(value: object, place: str) -> Iterator[Message]:
    """Yield the message of a dict, or nothing if it has no text; errors name `place`."""
    if isinstance(value, Message):
        yield value
        return
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{_EXPECTED}; {place} is of type {type(value).__name__}")
    role = _get_role(value, place)
    text = _get_content(value, place)
    is_call = role == "assistant" and not text
    content = _format_calls(value) if is_call else text
    if content:
        name, id_ = (_get_label(value, field, place) for field in ("name", "id"))
        yield Message(role, content, name, _get_time(value, place), id_, is_tool=is_call or role == "tool")


def _get_role(value: Fields, place: str) -> Role:
    role = value.get("role")
    if not isinstance(role, str) or role.lower() not in ROLE_NAMES:
        raise ArgumentError(f"{place} must have a role, one of {', '.join(ROLES)}, got {role!r:.40}")
    return ROLE_NAMES[role.lower()]


def _get_content(value: Fields, place: str) -> str:
    content = value.get("content")
    if content is None and ("content" in value or value.get("tool_calls")):
        return ""
    if not isinstance(content, str | list | tuple):
        raise ArgumentError(
            f"{place} must have content, a string or a list of parts with type and text, got {type(content).__name__}"
        )
    return join_text(content)


def _get_label(value: Fields, field: str, place: str) -> str:
    label = value.get(field)
    if label is None or (isinstance(label, str | int) and not isinstance(label, bool)):
        return get_text(value, field)
    raise ArgumentError(f"{place} must have a string as {field}, got {type(label).__name__}")


def _get_time(value: Fields, place: str) -> datetime | None:
    named = next((field for field in TIME_FIELDS if value.get(field) is not None), "at")
    return to_time(value.get(named), f"{place}: {named}")


def _get_part_text(part: object) -> str:
    if isinstance(part, Mapping):
        part = part.get("text") if part.get("type") == "text" else ""
    return part.strip() if isinstance(part, str) else ""


def _format_calls(value: Fields) -> str:
    calls = value.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    written = (format_call(f.get("name"), f.get("arguments", "")) for f in functions if isinstance(f, Mapping))
    return "\n".join(text for text in written if text)
