"""What routes answer with beside the words of Waylore in `wire`: pages, lists, keys, and their problems."""

import base64
import binascii
import hmac
import json
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from waylore.errors import NotFound
from waylore.service.jobs import protocol as jobs
from waylore.service.jobs.protocol import Kind, State
from waylore.service.registry.protocol import Scope
from waylore.surfaces.http.problems import Problem
from waylore.surfaces.wire import Added, Document, Fact, Imported, Surroundings, Wire

WHEN: dict[int, str] = {
    400: "The request cannot be understood, or not be done that way.",
    401: "There is no key or token, or it is not known.",
    403: "The key may not do that.",
    404: "There is nothing under that name that the key may see.",
    408: "The request did not come in time.",
    409: "It cannot be done now: it is being done already, or was made with another model.",
    413: "The request is too large.",
    415: "The body is of a kind that is not read here.",
    422: "The request makes no sense; `errors` says where.",
    429: "There were too many requests.",
    500: "The service failed; its log has the request's identity.",
    503: "The store or a model cannot be reached, or too many are waiting.",
    504: "It took too long.",
    507: "The disk is nearly full.",
}
OF_ALL = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 504)
OF_BODIES = (415,)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route documents beside its answer."""
    return {status: {"model": Problem, "description": WHEN[status]} for status in statuses}


def leads_to(*operations: str, body: dict[str, str] | None = None, **parameters: str) -> dict[str, Any]:
    """Links of an answer: operations that take what it says, or what was asked."""
    linked = {"parameters": parameters, **({"requestBody": body} if body else {})}
    return {operation: {"operationId": operation, **linked} for operation in operations}


class CollectionInfo(Wire):
    """A collection, what it is for, and since when it is there."""

    name: str
    description: str
    created: datetime


class Collections(Wire):
    """Collections that a caller may see, by name; `next` is the cursor of the next page, null on the last."""

    collections: list[CollectionInfo]
    next: str | None


class Stored(Wire):
    """The document that a text became."""

    id: str


class StoredFacts(Wire):
    """The documents that facts became, in their order."""

    ids: list[str]


class Page(Wire):
    """Documents by address; `next` is the cursor of the next page, null on the last."""

    documents: list[Document]
    next: str | None


class Facts(Wire):
    """What is known of an entity, strongest first."""

    facts: list[Fact]


class Graph(Wire):
    """What stands around the entities of a name; nothing, if nobody is called so."""

    around: list[Surroundings]


class Verified(Wire):
    """What is left of what a receipt says went, a line each; nothing, if all of it is gone."""

    left: list[str]


class KeyInfo(Wire):
    """A key, without its secret."""

    id: str
    name: str
    collections: Annotated[list[str], AfterValidator(sorted)]
    scope: Scope
    labels: Annotated[list[str], AfterValidator(sorted)] | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    used: datetime | None


class Keys(Wire):
    """Keys that a caller may govern, the oldest first; `next` is the next page's cursor, null on the last."""

    keys: list[KeyInfo]
    next: str | None


class IssuedKey(Wire):
    """A key with its token, which is told this once."""

    info: KeyInfo
    token: str


class Alive(Wire):
    """The process answers."""

    status: str


class Ready(Wire):
    """Whether the service can do its work, and what of it cannot be reached."""

    status: str
    store: str
    model: str


SIGNED = 16  # bytes of the signature
PATTERN = r"^[A-Za-z0-9_-]+$"


def cursor(secret: bytes, of: str, last: tuple[str, str]) -> str:
    """The cursor after an item of a list."""
    told = json.dumps(last).encode()
    return base64.urlsafe_b64encode(_signature(secret, of, told) + told).decode().rstrip("=")


def last_of(secret: bytes, of: str, given: str) -> tuple[str, str]:
    """The item that a cursor comes after, if it is a cursor of that list."""
    try:
        raw = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    signature, told = raw[:SIGNED], raw[SIGNED:]
    if not told or not hmac.compare_digest(signature, _signature(secret, of, told)):
        raise NotFound(
            "there is no such page: take the cursor from `next` of the page before, of the same list"
        )
    uri, id_ = json.loads(told)
    return str(uri), str(id_)


def _signature(secret: bytes, of: str, told: bytes) -> bytes:
    return hmac.new(secret, of.encode("utf-8", "surrogatepass") + b"\0" + told, sha256).digest()[:SIGNED]


class Progress(Wire):
    """How much is written so far, of how much; what a kind of job does not count is 0."""

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


class Emptied(Wire):
    """How many documents were forgotten."""

    documents: int


class Reembedded(Wire):
    """How many vectors were made, and by which model."""

    vectors: int
    model: str


class Job(Wire):
    """Something that is done in the background; `problem` says why it failed, or what it waits for."""

    id: str
    collection: str
    kind: Kind
    uri: str = Field(description="what was uploaded, for those that have it")
    state: State
    progress: Progress
    result: Added | Imported | Emptied | Reembedded | None
    problem: str
    runs: int = Field(description="how often it was begun: more than once, if it was interrupted")
    made_at: datetime
    began_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, thing: object) -> Self:
        """The same, for the wire."""
        assert isinstance(thing, jobs.Job)  # noqa: S101
        told = {name: getattr(thing, name) for name in cls.model_fields if name != "uri"}
        return cls.model_validate({**told, "uri": thing.work.get("uri", "")})


class Jobs(Wire):
    """Jobs of a collection, the newest first; `next` is the cursor of the next page, null on the last."""

    jobs: list[Job]
    next: str | None
