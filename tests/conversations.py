"""Conversations with questions, as files of `acceptance/conversations` have them."""

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

CONVERSATIONS = Path(__file__).parent / "acceptance" / "conversations"
NAMES = ("coding", "family", "support")
Span = tuple[date, date]


class Data(BaseModel):
    """An object of a file; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_min_length=1)


class Fact(Data):
    subject: str
    predicate: str = Field(pattern="^[a-z]+(_[a-z]+)*$")
    object: str
    valid_from: date | None = None
    valid_to: date | None = None
    polarity: Literal["+", "-"] = "+"


class Message(Data):
    id: str
    user: str | None
    at: date
    session: str
    role: Literal["user", "assistant", "system"]
    text: str
    facts: tuple[Fact, ...]


class Removal(Data):
    user: str
    at: date
    matching: str

    def covers(self, message: Message) -> bool:
        return message.user == self.user and message.at <= self.at and self.matching in message.text


class Question(Data):
    id: str
    user: str
    text: str
    asked_at: date
    as_of: date | None = None
    answer: str | None
    said: date | None = None
    when: Span | None = None
    stale: str | None = None
    never: str | None = None
    within: Span | None = None
    first: int = Field(default=1, ge=1)
    held_out: bool

    def __repr__(self) -> str:
        """Return the id alone, so that a failure does not show a held-out question."""
        return f"Question({self.id!r})"


class Conversation(Data):
    about: str
    users: tuple[str, ...]
    single_valued: tuple[str, ...]
    messages: tuple[Message, ...]
    forget: tuple[Removal, ...]
    questions: tuple[Question, ...]

    def find_known(self, question: Question) -> list[Message]:
        """Return the messages that the question may find."""
        removals = [removal for removal in self.forget if removal.at < question.asked_at]
        return [
            message
            for message in self.messages
            if message.user in {question.user, None}
            and message.at < question.asked_at
            and (question.as_of is None or message.at <= question.as_of)
            and not any(removal.covers(message) for removal in removals)
        ]

    def find_answers(self, question: Question) -> list[Message]:
        """Return the messages that may be the first hit."""
        found = find_matches(question.answer, self.find_known(question))
        return [message for message in found if question.said in {None, message.at}]


@cache
def load(name: str) -> Conversation:
    return Conversation.model_validate_json((CONVERSATIONS / f"{name}.json").read_text("utf-8"))


def find_matches(pattern: str | None, messages: list[Message]) -> list[Message]:
    return [message for message in messages if pattern is not None and re.search(pattern, message.text)]
