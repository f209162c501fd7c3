"""Define the bodies and parameters of requests, with every limit in the schema.

A request that its schema allows is accepted, any other is refused. Numbers and booleans are not guessed from
strings. No string contains NUL, because PostgreSQL stores none, and every string has a maximum length. A string
that must not be empty has at least one visible character.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from waylore import types
from waylore.dates import to_datetime
from waylore.errors import NotFound
from waylore.lengths import MAX_QUERY, MAX_STATEMENT, MAX_TEXT, MAX_TITLE
from waylore.retrieval.context.block import Layout
from waylore.surfaces import wire
from waylore.surfaces.http.responses import CURSOR_PATTERN
from waylore.types.knowledge import Source, Status
from waylore.types.search import GroupBy

TEXT_PATTERN = r"^[^\x00]*$"
VISIBLE_PATTERN = r"^[^\x00]*[^\s\x00-\x1f\x7f-\x9f\ufeff][^\x00]*$"  # no engine takes this for an empty string
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]{1,200}$"
ID_PATTERN = r"^[0-9a-f]{32}$"
NO_OTHER_KEYS: dict[str, Any] = {"additionalProperties": False}
MAX_EXACT_INT = 2**53  # larger JSON numbers lose digits
MethodName = Literal[  # the names in waylore.recipes.METHODS, written out for the schema
    "auto",
    "chain",
    "hybrid",
    "vector",
    "keyword",
    "neighbourhood",
    "specified",
    "guided",
    "activation",
    "citations",
    "deep",
    "graph_only",
    "conversation",
    "mixed",
    "graph",
    "agentic",
]


def _to_whole(value: Any) -> Any:
    """Return a whole number as an int, because JSON does not distinguish 5 from 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_lower(value: Any) -> Any:
    """Return a string in lower case, because names of methods and roles have no case."""
    return value.lower() if isinstance(value, str) else value


def _to_time(value: Any, info: ValidationInfo) -> datetime:
    """Return a date or time by the rule of `waylore.dates`, in UTC."""
    name = info.field_name or "date"
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z")
    try:
        return to_datetime(value, name).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{name} must be between the years 1 and 9999") from error


def _to_fact(value: Any) -> Any:
    """Return a list of subject, predicate and object as a dict with these fields."""
    is_triple = isinstance(value, list) and len(value) == 3
    return dict(zip(("subject", "predicate", "object"), value, strict=True)) if is_triple else value


def make_id_check(kind: str, pattern: str = ID_PATTERN) -> AfterValidator:
    """Return the check of an id in a path. An id that cannot exist is not found, like any other unknown id."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise NotFound(f"no {kind} {value[:80]}")
        return value

    return AfterValidator(check)


def describe_id(kind: str, pattern: str = ID_PATTERN) -> Any:
    """Return the description of an id in a path, for the OpenAPI document."""
    return Path(description=f"Id of a {kind}.", json_schema_extra={"pattern": pattern})


Short = Annotated[str, Field(max_length=MAX_TITLE, pattern=TEXT_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_TITLE, pattern=VISIBLE_PATTERN)]
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY, pattern=VISIBLE_PATTERN)]
Line = Annotated[str, Field(pattern=LINE_PATTERN)]
Whole = Annotated[int, BeforeValidator(_to_whole)]
Id = Annotated[str, Field(pattern=ID_PATTERN, min_length=32, max_length=32)]
Time = Annotated[
    datetime,
    Strict(False),
    BeforeValidator(_to_time),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-01T00:00:00Z"]}),
]
Text = Annotated[str, Field(max_length=MAX_STATEMENT, pattern=TEXT_PATTERN)]
Value = (
    Text
    | Annotated[int, Field(ge=-MAX_EXACT_INT, le=MAX_EXACT_INT)]
    | Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]
    | bool
)
Values = Annotated[
    dict[Line, Value | Annotated[list[Value], Field(max_length=100)]],
    Field(max_length=100, json_schema_extra=NO_OTHER_KEYS),
]
Metadata = Annotated[Values, Field(description="Values to filter by.")]
Labels = Annotated[
    list[Line], Field(max_length=100, description="Permissions; without any, every caller may read the document.")
]
UserName = Annotated[
    Short, Field(description="Whose documents; a key of a user is for this user only.", examples=["mara"])
]
AgentName = Annotated[Short, Field(description="Agent that they come from.")]
SessionName = Annotated[Short, Field(description="Session that they come from.")]
Expiry = Annotated[
    Time | None,
    Field(description="When it expires: from then on it is hidden from all calls without an earlier `as_of`."),
]
Cursor = Annotated[
    str | None,
    Query(alias="cursor", pattern=CURSOR_PATTERN, max_length=8_000, description="`next` of the previous page."),
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of items in the page.")]
After = Annotated[
    int,
    Query(
        ge=-MAX_EXACT_INT,
        le=MAX_EXACT_INT,
        description="Number of the entry before the first page; -50 starts with the newest 50. A cursor overrides it.",
    ),
]


SELECTING = (
    "documents",
    "user",
    "agent",
    "session",
    "since",
    "until",
    "matching",
    "expired",
)  # fields that select the documents to forget


def _require_value(name: str) -> dict[str, Any]:
    """Return the schema of an object in which a field is not empty."""
    kinds: dict[str, dict[str, Any]] = {"documents": {"type": "array", "minItems": 1}, "expired": {"const": True}}
    return {"required": [name], "properties": {name: kinds.get(name, {"type": "string", "minLength": 1})}}


class Body(wire.Wire):
    """The base of all bodies: without unknown fields and without conversions."""

    model_config = ConfigDict(strict=True)


class NewFactBody(Body):
    """A fact, by names. If `is_value` is set, the object is a plain value."""

    subject: Name
    predicate: Name
    object: Name
    statement: Text = ""
    weight: float = Field(default=5.0, ge=1, le=10)
    confidence: float = Field(default=1.0, ge=0, le=1)
    status: Status = "confirmed"
    valid_from: Time | None = None
    valid_to: Time | None = None
    subject_type: Short = ""
    object_type: Short = ""
    is_value: bool = False

    def to_new_fact(self, source: Source) -> types.NewFact:
        """Return the fact as the engine takes it."""
        fields: dict[str, Any] = dict(self)
        return types.NewFact(**fields, source=source)


class TripleSchema:
    """Adds the triple to the JSON schema of a fact."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        name = {"type": "string", "minLength": 1, "maxLength": MAX_TITLE, "pattern": VISIBLE_PATTERN}
        triple = {
            "type": "array",
            "items": name,
            "minItems": 3,
            "maxItems": 3,
            "description": "Subject, predicate and object.",
            "examples": [["login", "needs", "session service"]],
        }
        return {"anyOf": [handler(schema), triple]}


class BodyWithFacts(Protocol):
    """The fields of a body that `check_facts` reads."""

    facts: list[NewFactBody]
    metadata: dict[str, Any]
    labels: list[str]


def check_facts(body: BodyWithFacts) -> Any:
    """Raise ValueError if the facts are too long; each is stored with the metadata and labels of the request."""
    shared = len(str(body.metadata)) + sum(map(len, body.labels))
    length = sum(len(fact.subject + fact.predicate + fact.object + fact.statement) + shared for fact in body.facts)
    if length > MAX_TEXT:
        raise ValueError(
            f"facts have {length:,} characters, each counted with metadata and labels; send at most {MAX_TEXT:,}"
        )
    return body


FactLike = Annotated[NewFactBody, BeforeValidator(_to_fact), TripleSchema()]


class NewDocument(Body):
    """A text with its metadata. Without facts, the extractor of the service finds them in the text."""

    text: str = Field(
        max_length=MAX_TEXT,
        pattern=VISIBLE_PATTERN,
        min_length=1,
        examples=["The login needs the session service."],
    )
    title: Short = ""
    uri: Short = Field(default="", description="Address; a text with the same address replaces the document.")
    metadata: Metadata = Field(default={})
    labels: Labels = Field(default=[])
    source: Source = "file"
    facts: list[FactLike] = Field(default=[], max_length=1_000)
    user: UserName = ""
    agent: AgentName = ""
    session: SessionName = ""
    at: Time | None = Field(default=None, description="Time of its event, such as when it was said.")
    expires: Expiry = None
    _check_facts = model_validator(mode="after")(check_facts)


class NewFacts(Body):
    """Facts that come without a text."""

    facts: list[FactLike] = Field(min_length=1, max_length=1_000)
    metadata: Metadata = Field(default={})
    labels: Labels = Field(default=[])
    source: Source = "user_edit"
    user: UserName = ""
    agent: AgentName = ""
    session: SessionName = ""
    at: Time | None = Field(default=None, description="Time of its event, such as when it was said.")
    expires: Expiry = None
    _check_facts = model_validator(mode="after")(check_facts)


class NamePair(Body):
    """Two names that mean different things, and the labels of the document that states it."""

    name: Name = Field(examples=["login"])
    other: Name = Field(examples=["Login Team"])
    labels: Labels = Field(default=[])


class ForgetRequest(Body):
    """Documents to forget: named documents, or all documents that the other fields select.

    `matching` selects documents by their words, without `documents` and `expired`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [_require_value(name) for name in SELECTING],
            "not": {**_require_value("matching"), "anyOf": [_require_value("documents"), _require_value("expired")]},
        }
    )
    documents: list[Name] = Field(default=[], max_length=1_000, description="Ids or addresses of documents.")
    user: UserName = ""
    agent: AgentName = ""
    session: SessionName = ""
    since: Time | None = Field(default=None, description="Only documents whose event was at this time or later.")
    until: Time | None = Field(default=None, description="Only documents whose event was before this time.")
    matching: str = Field(
        default="", max_length=MAX_TITLE, description="Only documents with a passage that contains these words."
    )
    expired: bool = Field(
        default=False,
        description="Only expired documents; without a user, of all users whose documents you may change.",
    )
    dry_run: bool = Field(default=False, description="Only list the documents that would be forgotten.")

    @model_validator(mode="after")
    def check_selection(self) -> "ForgetRequest":
        """Raise ValueError if nothing is selected: a key of a user would forget all documents of the user."""
        if not any(getattr(self, name) for name in SELECTING):
            raise ValueError(
                "documents must not be empty; name ids or addresses, or select by user, agent, session, since, "
                "until, matching or expired"
            )
        return self


class ReceiptBody(Body):
    """A receipt, as returned when documents were forgotten."""

    documents: list[Id] = Field(max_length=100_000)
    passages: list[Id] = Field(default=[], max_length=1_000_000)
    entities: list[Id] = Field(default=[], max_length=1_000_000)
    facts: list[Id] = Field(default=[], max_length=1_000_000)
    missing: list[Name] = Field(default=[], max_length=100_000)
    id: Id | Literal[""] = Field(default="", description="The id of the receipt. It is not used.")
    unconfirmed: int = Field(default=0, ge=0, description="Items that an index had not confirmed. It is not used.")

    def to_receipt(self) -> types.Receipt:
        """Return the receipt as the engine takes it."""
        return types.Receipt(
            documents=tuple(self.documents),
            passages=tuple(self.passages),
            entities=tuple(self.entities),
            facts=tuple(self.facts),
            missing=tuple(self.missing),
        )


class QuestionBody(Body):
    """A question, with the documents that may answer it."""

    query: QueryText = Field(examples=["Who can help with the login?"])
    top_k: Annotated[int, Field(ge=1, le=100), BeforeValidator(_to_whole)] | None = Field(
        default=None,
        description="Number of hits; the service's setting if absent.",
    )
    method: Annotated[MethodName, BeforeValidator(to_lower)] | None = Field(
        default=None,
        description="How to search; the service's setting if absent. auto chooses by the question and the collection; "
        "graph is another name for chain, agentic for auto.",
    )
    where: Values = Field(default={}, description="Metadata that a document must have: this value, or one of a list.")
    labels: list[Line] | None = Field(
        default=None, max_length=100, description="Search as a caller with these labels; your own if absent."
    )
    as_of: Time | None = Field(
        default=None,
        description="Use the facts that were valid at this time; now if absent. A date is its first moment.",
    )
    min_similarity: Annotated[float, Field(ge=-1, le=1)] | None = Field(
        default=None, description="Minimum cosine of a hit and the question; there may be fewer hits."
    )
    rerank: bool | None = Field(
        default=None,
        description="Whether a reranker reorders the hits. If absent, it does so if the service has one; true is an "
        "error if it has none.",
    )
    user: UserName = ""
    agent: AgentName = ""
    session: SessionName = ""
    since: Time | None = Field(default=None, description="Only passages whose event was at this time or later.")
    until: Time | None = Field(default=None, description="Only passages whose event was before this time.")
    group_by: GroupBy = Field(default="turn", description="session returns only the best turn of each session.")


class SearchRequest(QuestionBody):
    """A question, with the documents that may answer it."""

    explain: bool = Field(default=False, description="Whether each hit has its explanation.")


class ContextRequest(QuestionBody):
    """A question, with the layout and length of the text for a model."""

    layout: Layout = "passages"
    max_tokens: Whole = Field(default=4_000, ge=100, le=100_000)


class ExplainRequest(QuestionBody):
    """A question and one of its hits."""

    passage: Id


class AuthorBody(Body):
    """An author: its identity in documents and the audit log."""

    author: Line = Field(examples=["key:0123456789abcdef"])


class NewCollection(Body):
    """The description of a collection."""

    description: Short = ""
