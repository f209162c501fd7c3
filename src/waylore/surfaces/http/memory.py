"""The route that stores messages of a conversation, and its body.

Messages have the fields of OpenAI's format. Other fields of a message are ignored, so that a client can send a
conversation as a model returned it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BeforeValidator, ConfigDict, Field, Strict, ValidationInfo, WithJsonSchema, model_validator

from waylore.indexing.conversations.messages import to_time
from waylore.lengths import MAX_TEXT
from waylore.surfaces.http.access import IDEMPOTENT, WriteAccess, create_router
from waylore.surfaces.http.requests import (
    TEXT_PATTERN,
    AgentName,
    Body,
    Expiry,
    FactLike,
    Labels,
    Metadata,
    SessionName,
    Short,
    Time,
    UserName,
    check_facts,
    to_lower,
)
from waylore.surfaces.http.responses import BODY_STATUSES, describe_problems, make_json_response
from waylore.surfaces.wire import RememberReport

MAX_UNIX_SECONDS = 253_402_300_799  # the last second of the year 9999
RoleName = Literal["user", "assistant", "system", "tool", "human", "ai", "developer", "function"]
router = create_router("documents", "/v1/collections/{collection}")


def _to_message_time(value: Any, info: ValidationInfo) -> datetime:
    """Return ISO text or Unix seconds as a time."""
    name = info.field_name or "at"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    said = to_time(value, name) if isinstance(value, str) or is_number else None
    if said is None or (is_number and not 0 <= value <= MAX_UNIX_SECONDS):
        raise ValueError(f"{name} must be a date such as 2026-01-31T12:00:00Z, or Unix time in seconds")
    return said


MessageText = Annotated[str, Field(max_length=MAX_TEXT, pattern=TEXT_PATTERN)]
MessageTime = Annotated[
    datetime,
    Strict(False),
    BeforeValidator(_to_message_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "number", "minimum": 0, "maximum": MAX_UNIX_SECONDS},
            ],
            "examples": ["2026-01-01T00:00:00Z"],
        }
    ),
]


class MessagePart(Body):
    """A part of a message. Only parts of type text are stored."""

    model_config = ConfigDict(extra="ignore")
    type: Short
    text: MessageText | None = None


class ToolFunction(Body):
    """The name of a tool and the arguments of a call, as JSON in a string."""

    model_config = ConfigDict(extra="ignore")
    name: Short
    arguments: MessageText = ""


class ToolCall(Body):
    """A call of a tool."""

    model_config = ConfigDict(extra="ignore")
    function: ToolFunction | None = None


class MessageBody(Body):
    """A message in OpenAI's format, with its time and id if they are known. It has content, or calls of tools."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "anyOf": [
                {"required": ["content"]},
                {"required": ["tool_calls"], "properties": {"tool_calls": {"type": "array", "minItems": 1}}},
            ]
        },
    )
    role: Annotated[RoleName, BeforeValidator(to_lower)]
    content: MessageText | Annotated[list[MessagePart], Field(max_length=1_000)] | None = None
    name: Short | None = Field(default=None, description="Name of the speaker.")
    id: Short | None = Field(default=None, description="Id of the message; a known one is not stored again.")
    at: MessageTime | None = Field(default=None, description="When it was said.")
    created_at: MessageTime | None = Field(default=None, description="Another name of `at`.")
    timestamp: MessageTime | None = Field(default=None, description="Another name of `at`.")
    tool_calls: Annotated[list[ToolCall], Field(max_length=1_000)] | None = None

    def count_characters(self) -> int:
        """Return the length of all texts of the message."""
        return sum(map(len, self._list_texts()))

    def _list_texts(self) -> Iterator[str]:
        yield from (self.name or "", self.id or "")
        parts = self.content if isinstance(self.content, list) else ()
        yield from (part.text or "" for part in parts)
        yield self.content if isinstance(self.content, str) else ""
        functions = (call.function for call in self.tool_calls or () if call.function)
        yield from (text for function in functions for text in (function.name, function.arguments))


class RememberRequest(Body):
    """Messages of a conversation with their user, and the facts that the last message states."""

    messages: list[MessageBody] = Field(
        min_length=1,
        max_length=1_000,
        description="Messages, oldest first; at least one has text.",
        examples=[[{"role": "user", "content": "Mara moved to Oslo.", "at": "2026-01-01T12:00:00Z"}]],
    )
    user: UserName = ""
    agent: AgentName = ""
    session: SessionName = ""
    at: Time | None = Field(
        default=None, description="When they were said, for messages without a time of their own; now if absent."
    )
    facts: list[FactLike] = Field(
        default=[], max_length=1_000, description="Facts of the last message; found by the extractor if absent."
    )
    tools: bool = Field(default=False, description="Whether to store calls of tools and their results.")
    metadata: Metadata = Field(default={})
    labels: Labels = Field(default=[])
    expires: Expiry = None
    _check_facts = model_validator(mode="after")(check_facts)

    @model_validator(mode="after")
    def check_messages(self) -> "RememberRequest":
        """Raise ValueError if the messages are too long; each is stored with the metadata and labels of the request."""
        shared = len(str(self.metadata)) + sum(map(len, self.labels))
        length = sum(message.count_characters() + shared for message in self.messages)
        if length > MAX_TEXT:
            raise ValueError(
                f"messages have {length:,} characters, each counted with metadata and labels; send at most {MAX_TEXT:,}"
            )
        return self


@router.post(
    "/remember",
    status_code=201,
    response_model=RememberReport,
    dependencies=[IDEMPOTENT],
    responses=describe_problems(*BODY_STATUSES),
)
async def remember_messages(access: WriteAccess, body: RememberRequest) -> Response:
    """Store messages of a conversation, each as a turn with its speaker and time. Known messages change nothing."""
    report = await access.write(
        lambda waylore: waylore.remember(
            [message.model_dump(exclude_unset=True) for message in body.messages],
            user=body.user,
            agent=body.agent,
            session=body.session,
            at=body.at,
            facts=[fact.to_new_fact("conversation") for fact in body.facts],
            tools=body.tools,
            metadata=body.metadata,
            labels=body.labels,
            expires=body.expires,
        )
    )
    return make_json_response(report.to_dict(), 201)
