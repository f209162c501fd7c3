"""Messages of a conversation, each with its role, speaker and time.

These are frozen dataclasses that check their own values. `indexing.conversations` makes them from messages of a caller
and from exports of other programs.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from waylore.dates import to_datetime
from waylore.errors import ArgumentError

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its text without the name of the speaker, and the speaker as `name` if the source has one.

    `at` is the time at which it was sent, or None if the source has no time; ISO text is accepted. `id` is the id of
    the message in the source. `is_tool` marks the call of a tool and its result.
    """

    role: Role
    content: str
    name: str = ""
    at: datetime | None = None
    id: str = ""
    is_tool: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ArgumentError(f"role must be one of {', '.join(ROLES)}, got {self.role!r}")
        _check_text("content", self.content, is_required=True)
        _check_text("name", self.name)
        _check_text("id", self.id)
        _set_time(self)
        if not isinstance(self.is_tool, bool):
            raise ArgumentError(f"is_tool must be True or False, got {self.is_tool!r}")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that belong together, in order: a chat with an assistant, or one day of a channel.

    `id` is the same each time the conversation is exported. `at` is the time at which it began.
    """

    id: str
    title: str = ""
    messages: tuple[Message, ...] = ()
    at: datetime | None = None

    def __post_init__(self) -> None:
        _check_text("id", self.id, is_required=True)
        _check_text("title", self.title)
        messages: object = self.messages
        if not isinstance(messages, tuple) or not all(isinstance(message, Message) for message in messages):
            raise ArgumentError("messages must be a tuple of Message; make them with to_messages(…)")
        _set_time(self)


def _check_text(name: str, value: object, *, is_required: bool = False) -> None:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, got {type(value).__name__}")
    if is_required and not value.strip():
        raise ArgumentError(f"{name} must not be empty")


def _set_time(value: Message | Conversation) -> None:
    """Make `at` an aware datetime; without an offset it is UTC."""
    if value.at is not None:
        object.__setattr__(value, "at", to_datetime(value.at, "at"))
