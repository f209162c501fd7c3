"""Define the responses of routes: pages, lists, keys and jobs, and sign the cursors of pages.

The JSON of Waylore's own types is in `surfaces.wire`. Answers that are read often are written as JSON once: a route
returns the bytes of `make_json_response`, and FastAPI neither checks nor converts them. The schema of such a route is
its `response_model`; `tests/surfaces/http/test_json.py` checks that the bytes fit it. Nothing here reads the store.
"""

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Self, TypeVar

import orjson
from fastapi import Response
from pydantic import AfterValidator, Field

from waylore.errors import NotFound
from waylore.service.jobs import protocol as jobs
from waylore.service.jobs.protocol import JobKind, JobState
from waylore.service.registry.protocol import Scope
from waylore.surfaces.http.problems import Problem
from waylore.surfaces.wire import (
    AddReport,
    AuditEntry,
    DayCounts,
    Document,
    Fact,
    ImportReport,
    Merge,
    Statistics,
    Wire,
)
from waylore.types import audit
from waylore.types.knowledge import Source

STATUS_DESCRIPTIONS: dict[int, str] = {
    400: "The request cannot be read, or is not possible with the settings of the service.",
    401: "The API key or token is missing or unknown.",
    403: "The key lacks the permission.",
    404: "The item does not exist, or the key may not see it.",
    408: "The request did not arrive in time.",
    409: "The same request is running, or the collection was made with another model.",
    413: "The request is too large.",
    415: "The media type of the body is not supported.",
    422: "The request is invalid; `errors` lists the fields.",
    429: "Too many requests.",
    500: "Internal error; the log of the service has it under the id of the request.",
    503: "The store or a model is unavailable, or too many requests are waiting.",
    504: "The request took too long.",
    507: "The disk is nearly full.",
}
COMMON_STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 504)
BODY_STATUSES = (415,)


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route for the OpenAPI document."""
    return {status: {"model": Problem, "description": STATUS_DESCRIPTIONS[status]} for status in statuses}


def make_links(*operations: str, body: dict[str, str] | None = None, **parameters: str) -> dict[str, Any]:
    """Return the links of a response: operations that take values of the response or of the request."""
    link = {"parameters": parameters, **({"requestBody": body} if body else {})}
    return {operation: {"operationId": operation, **link} for operation in operations}


def make_json_response(value: dict[str, Any], status: int = 200) -> Response:
    """Return a response with plain values as JSON."""
    return Response(write_json(value), status, media_type="application/json")


def write_json(value: object) -> bytes:
    """Return plain values as JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # an import may contain a number of more than 64 bits or a lone surrogate
        return json.dumps(value, allow_nan=False).encode()


class CollectionInfo(Wire):
    """A collection, its description, and when it was created."""

    name: str
    description: str
    created: datetime


class CollectionPage(Wire):
    """Collections that the caller may see, by name; `next` is the cursor of the next page, null on the last."""

    collections: list[CollectionInfo]
    next: str | None


class AddedDocument(Wire):
    """The id of the document of an added text, and the number of omitted secrets of each kind."""

    id: str
    left_out: dict[str, int]


class AddedFacts(Wire):
    """The ids of the documents of added facts, in order, and the number of omitted secrets of each kind."""

    ids: list[str]
    left_out: dict[str, int]


class DocumentPage(Wire):
    """Documents by address; `next` is the cursor of the next page, null on the last."""

    documents: list[Document]
    next: str | None


class Facts(Wire):
    """The facts of an entity, strongest first."""

    facts: list[Fact]


class MergeList(Wire):
    """The entities that are treated as the same as a name, then similar ones."""

    merges: list[Merge]


class StageLatency(Wire):
    """A stage of a search: for each bound, how many searches took at most this time; the last number took longer."""

    stage: str
    counts: list[int]


class Insight(Wire):
    """The size of a collection, its growth, and statistics of its searches since the answering process started.

    A caller who may read only a part of the collection gets the growth of that part, and null for `statistics` and
    `gate`. `stages` is null for callers without the scope admin. `gate` counts searches by decision of the gate.
    """

    statistics: Statistics | None
    growth: list[DayCounts]
    since: datetime
    gate: dict[str, int] | None
    bounds: list[float] = Field(description="in seconds")
    stages: list[StageLatency] | None


class VerificationResult(Wire):
    """One line for each trace of a receipt's items that is still stored; empty if all are gone."""

    left: list[str]


class AuditPage(Wire):
    """Changes, oldest first; `next` is the cursor of the next page, null on the last."""

    entries: list[AuditEntry]
    next: str | None


class Quarantine(Wire):
    """The number of documents in quarantine of each author."""

    authors: dict[str, int]


class KeyInfo(Wire):
    """A key, without its secret."""

    id: str
    name: str
    collections: Annotated[list[str], AfterValidator(sorted)]
    scope: Scope
    labels: Annotated[list[str], AfterValidator(sorted)] | None
    max_source: Source
    user: str = Field(description="user that the key reads and writes for; empty if the key is not bound to a user")
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    used: datetime | None


class KeyPage(Wire):
    """Keys that the caller may manage, oldest first; `next` is the cursor of the next page, null on the last."""

    keys: list[KeyInfo]
    next: str | None


class IssuedKey(Wire):
    """A key with its token. The token is shown only once."""

    info: KeyInfo
    token: str


class Liveness(Wire):
    """The process answers."""

    status: str


class Readiness(Wire):
    """Whether the store, the model and the OpenID provider, if there is one, are available."""

    status: str
    store: str
    model: str
    provider: str


SIGNATURE_BYTES = 16
T = TypeVar("T")
CURSOR_PATTERN = r"^[A-Za-z0-9_-]+$"


def cut_page(rows: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """Return the rows of a page, and the last row if more rows follow. `limit` + 1 rows were read."""
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


def cut_log(secret: bytes, list_name: str, entries: Sequence[audit.AuditEntry], limit: int) -> AuditPage:
    """Return a page of an audit log. `limit` + 1 entries were read."""
    page, end = cut_page(entries, limit)
    more = make_cursor(secret, list_name, (str(end.number), "")) if end else None
    return AuditPage(entries=[AuditEntry.of(entry) for entry in page], next=more)


def make_cursor(secret: bytes, list_name: str, last: tuple[str, str]) -> str:
    """Return the cursor after an item of a list, signed so that it is valid for this list only."""
    position = json.dumps(last).encode()
    return base64.urlsafe_b64encode(_sign(secret, list_name, position) + position).decode().rstrip("=")


def read_cursor(secret: bytes, list_name: str, cursor: str) -> tuple[str, str]:
    """Return the item before a page. Raise NotFound if the cursor is not one of this list."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    signature, position = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
    if not position or not hmac.compare_digest(signature, _sign(secret, list_name, position)):
        raise NotFound("no such page; use the cursor in `next` of the previous page of the same list")
    uri, id_ = json.loads(position)
    return str(uri), str(id_)


def _sign(secret: bytes, list_name: str, position: bytes) -> bytes:
    message = list_name.encode("utf-8", "surrogatepass") + b"\0" + position
    return hmac.new(secret, message, sha256).digest()[:SIGNATURE_BYTES]


class JobProgress(Wire):
    """The amount that is done, and the total. Numbers that a kind of job does not count are 0."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0
    documents: int = 0
    of_documents: int = 0
    passages: int = 0
    facts: int = 0
    vectors: int = 0
    seconds: float = 0.0


class DeletedAll(Wire):
    """The number of forgotten documents."""

    documents: int


class ReembedReport(Wire):
    """The number of new vectors, and their model."""

    vectors: int
    model: str


class JobResponse(Wire):
    """A background job; `problem` is the error that ended it, or the reason why it waits."""

    id: str
    collection: str
    kind: JobKind
    uri: str = Field(description="address of the uploaded file, if there is one")
    state: JobState
    progress: JobProgress
    result: AddReport | ImportReport | DeletedAll | ReembedReport | None
    problem: str
    runs: int = Field(description="number of starts; more than one if it was interrupted")
    made_at: datetime
    began_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, thing: object) -> Self:
        """Return the response for a job."""
        assert isinstance(thing, jobs.Job)  # noqa: S101
        values = {name: getattr(thing, name) for name in cls.model_fields if name != "uri"}
        return cls.model_validate({**values, "uri": thing.work.get("uri", "")})


class JobPage(Wire):
    """Jobs of a collection, newest first; `next` is the cursor of the next page, null on the last."""

    jobs: list[JobResponse]
    next: str | None
