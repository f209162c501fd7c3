"""What callers send, with every limit in its schema: what that allows is taken, what it does not is refused.

Numbers and truths are not guessed from texts. No text has a NUL (PostgreSQL holds none), none is endless, and a
text that must say something has a character that can be seen.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema

from waylore import types
from waylore.retrieval.context import Style
from waylore.service.callers import NAME
from waylore.service.registry.protocol import Scope
from waylore.surfaces import wire
from waylore.surfaces.http.responses import PATTERN
from waylore.types.knowledge import Source, Status

ANY = r"^[^\x00]*$"
SAYING = r"^[^\x00]*[^\s\x00-\x1f\x7f-\x9f\ufeff][^\x00]*$"  # something that no engine takes for nothing
LINE = r"^[^\x00-\x1f\x7f-\x9f]{1,200}$"
IDENTITY = r"^[0-9a-f]{32}$"
NO_OTHERS: dict[str, Any] = {"additionalProperties": False}
LARGEST = 2**53  # beyond it, JSON's numbers are not what was meant
METHODS = Literal[
    "auto", "chain", "hybrid", "vector", "keyword", "neighbourhood", "guided", "activation", "citations"
]


def _whole(value: Any) -> Any:
    """JSON tells no 5 from 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_text(value: Any) -> Any:
    if not isinstance(value, str) or len(value) < len("2026-01-01T00:00:00Z"):
        raise ValueError("a time is a text such as 2026-01-01T00:00:00Z")
    return value


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs its zone, such as Z")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time must be between the years 1 and 9999") from error


Short = Annotated[str, Field(max_length=1_000, pattern=ANY)]
Saying = Annotated[str, Field(min_length=1, max_length=1_000, pattern=SAYING)]
Asked = Annotated[str, Field(min_length=1, max_length=8_000, pattern=SAYING)]
Word = Annotated[str, Field(pattern=LINE)]
Whole = Annotated[int, BeforeValidator(_whole)]
Identity = Annotated[str, Field(pattern=IDENTITY, min_length=32, max_length=32)]
Time = Annotated[
    datetime,
    Strict(False),
    AfterValidator(_in_utc),
    BeforeValidator(_is_text),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-01T00:00:00Z"]}),
]
Text = Annotated[str, Field(max_length=10_000, pattern=ANY)]
Value = (
    Text
    | Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]
    | bool
)
Metadata = Annotated[
    dict[Word, Value | Annotated[list[Value], Field(max_length=100)]],
    Field(max_length=100, description="What is known of it, to filter by.", json_schema_extra=NO_OTHERS),
]
Labels = Annotated[
    list[Word], Field(max_length=100, description="Who may read it: everyone, if there are none.")
]


After = Annotated[
    str | None,
    Query(alias="cursor", pattern=PATTERN, max_length=8_000, description="`next` of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="The most of a page.")]


class Body(wire.Wire):
    """What every body is: closed, and taken at its word."""

    model_config = ConfigDict(strict=True)


class Claim(Body):
    """A fact, by names; its object is a plain value where `is_value`."""

    subject: Saying
    predicate: Saying
    object: Saying
    statement: Text = ""
    weight: float = Field(default=5.0, ge=1, le=10)
    confidence: float = Field(default=1.0, ge=0, le=1)
    status: Status = "confirmed"
    valid_from: Time | None = None
    valid_to: Time | None = None
    subject_type: Short = ""
    object_type: Short = ""
    is_value: bool = False

    def claim(self, source: Source) -> types.Claim:
        """As the engine takes it."""
        said: dict[str, Any] = dict(self)
        return types.Claim(**said, source=source)


class NewDocument(Body):
    """A text, and what is known of it; the facts it states are found in it, unless they are given."""

    text: str = Field(
        max_length=5_000_000, pattern=SAYING, min_length=1, examples=["The login needs the session service."]
    )
    title: Short = ""
    uri: Short = Field(default="", description="Its address; a text with the same one replaces what was there.")
    metadata: Metadata = Field(default={})
    labels: Labels = Field(default=[])
    source: Source = "file"
    facts: list[Claim] = Field(default=[], max_length=1_000)


class NewFacts(Body):
    """Facts that come without a text."""

    facts: list[Claim] = Field(min_length=1, max_length=1_000)
    metadata: Metadata = Field(default={})
    labels: Labels = Field(default=[])
    source: Source = "user_edit"


class Identities(Body):
    """Documents by identity."""

    documents: list[Identity] = Field(min_length=1, max_length=1_000)


class ReceiptBody(Body):
    """A receipt, as forgetting gave it."""

    documents: list[Identity] = Field(max_length=100_000)
    passages: list[Identity] = Field(default=[], max_length=1_000_000)
    entities: list[Identity] = Field(default=[], max_length=1_000_000)
    facts: list[Identity] = Field(default=[], max_length=1_000_000)

    def back(self) -> types.Receipt:
        """As the engine takes it."""
        ids = (self.documents, self.passages, self.entities, self.facts)
        return types.Receipt(*map(tuple, ids))


class Question(Body):
    """A question, and which passages may answer it."""

    query: Asked = Field(examples=["Who can help with the login?"])
    top_k: Whole = Field(default=10, ge=1, le=100, description="How many hits; the graph may add a few.")
    method: METHODS = Field(default="chain", description="How to search; auto chooses by the question.")
    metadata: Metadata = Field(default={}, description="What a document must have, a value of each key.")
    labels: list[Word] | None = Field(
        default=None, max_length=100, description="Read as somebody with these labels would; yours, if absent."
    )
    as_of: Time | None = Field(default=None, description="Use the facts that held then; now, if absent.")


class ContextQuestion(Question):
    """A question, and what the text that answers it should be like."""

    style: Style = "graph"
    max_tokens: Whole = Field(default=4_000, ge=100, le=100_000)


class HitQuestion(Question):
    """A question, and one of the passages that answer it."""

    passage: Identity


class NewCollection(Body):
    """What a collection is for."""

    description: Short = ""


class NewKey(Body):
    """What a key is to open."""

    name: Word = Field(examples=["the assistant"])
    collections: list[Annotated[str, Field(pattern=rf"{NAME}|^\*$")]] = Field(
        min_length=1, max_length=1_000, description="Collections by name, or * for all.", examples=[["default"]]
    )
    scope: Scope = "read"
    labels: list[Word] | None = Field(
        default=None, max_length=100, description="The labels that it reads; all, if absent."
    )
    expires: Time | None = None


class Rotation(Body):
    """For how long the former secret goes on working."""

    grace_seconds: Whole = Field(default=86_400, ge=0, le=31_536_000)
