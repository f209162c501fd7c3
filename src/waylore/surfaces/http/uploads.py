"""Uploads over HTTP: a file comes as the body of a request, goes to the disk, and becomes a job.

Who may not write, or sends what cannot be read, is told before a byte of the body is. A body that is refused is
not read to its end: the connection is closed.
"""

import re
from collections.abc import Callable, Coroutine
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from waylore.errors import Forbidden
from waylore.indexing.files.formats import READERS
from waylore.indexing.importers.dispatch import FORMATS
from waylore.service.jobs.protocol import Kind
from waylore.service.spool import Refused, spooled
from waylore.surfaces.http.access import SCHEMES, Desk, Writing, caller_of
from waylore.surfaces.http.problems import TRY_LATER
from waylore.surfaces.http.requests import Value, Word
from waylore.surfaces.http.responses import OF_ALL, Job, problems

ADDRESS = r"^[^\x00-\x1f\x7f-\x9f#?]+$"
SUFFIX = "^(" + "|".join(re.escape(suffix) for suffix in sorted(READERS)) + ")$"
IMPORTED = Literal["auto", "triples", "ntriples", "research", "graphrag", "lightrag", "mcp-memory"]
PAIR = r"^[^\x00-\x1f\x7f-\x9f=]{1,200}=[^\x00]*$"
METADATA: TypeAdapter[Any] = TypeAdapter(Value | Annotated[list[Value], Field(max_length=100)])
BODY = {
    "requestBody": {
        "required": True,
        "description": "The file, as it is.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}
        },
    }
}


class Upload(APIRoute):
    """A route whose body is a file: it knows the caller first, and takes the time that the body takes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own work, of a known caller; what is refused closes the connection (`http_guard`)."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            await caller_of(request)
            try:
                return await handle(request)
            except Refused as refused:
                headers = TRY_LATER if refused.status in (503, 507) else None
                raise HTTPException(refused.status, str(refused), headers) from refused
            except ClientDisconnect as gone:
                raise HTTPException(400, "the rest of it did not come: send it again") from gone

        return handled


router = APIRouter(
    prefix="/v1/collections/{collection}/uploads",
    tags=["jobs"],
    route_class=Upload,
    dependencies=SCHEMES,
    responses=problems(*OF_ALL, 415, 507),
)
Address = Annotated[
    str,
    Path(
        pattern=ADDRESS, max_length=1_000, description="The address of what it holds.", examples=["docs/a.md"]
    ),
]
Suffix = Annotated[
    str,
    Query(pattern=SUFFIX, description="Read it as if its name ended so: `.md`. By default, as its name does."),
]
Labels = Annotated[list[Word], Query(max_length=100, description="Who may read it: everyone, if absent.")]
Known = Annotated[
    list[Annotated[str, Field(pattern=PAIR, max_length=10_000)]],
    Query(
        max_length=100,
        description="What is known of it, as NAME=VALUE; a value that is JSON is taken as that.",
        examples=[["team=search", "year=2026"]],
    ),
]


@router.put("/{uri:path}", operation_id="upload", status_code=202, openapi_extra=BODY)
async def uploaded(
    request: Request,
    desk: Writing,
    uri: Address,
    suffix: Suffix = "",
    labels: Labels = [],  # noqa: B006 (FastAPI copies it)
    metadata: Known = [],  # noqa: B006
) -> Job:
    """Upload a file to be added under an address; what had that address before is replaced, once it is read."""
    ending = suffix or _ending(uri)
    if ending not in READERS:
        raise Refused(415, f"there is no reader for {ending} files: name another with ?suffix=")
    work = {"uri": uri, "labels": sorted(set(labels)), "metadata": _known(metadata), "sees": _sees(desk)}
    return await _submitted(request, desk, "add", ending, work)


@router.post("/{uri:path}", operation_id="upload_import", status_code=202, openapi_extra=BODY)
async def imported(
    request: Request,
    desk: Writing,
    uri: Address,
    format: IMPORTED = "auto",  # noqa: A002
    labels: Labels = [],  # noqa: B006
    metadata: Known = [],  # noqa: B006
) -> Job:
    """Upload what another program knows, to be imported: triples, papers, or a graph."""
    work = {"uri": uri, "labels": sorted(set(labels)), "metadata": _known(metadata), "format": format}
    return await _submitted(request, desk, "import", _ending(uri), work)


async def _submitted(request: Request, desk: Desk, kind: Kind, suffix: str, work: dict[str, Any]) -> Job:
    """Keep the body in a file, and make a job of it."""
    if not desk.caller.covers((), work["labels"]):
        raise Forbidden("your key does not give all of these labels: use those that it reads")
    spool, http, id_ = desk.service.background.spool, desk.service.settings.http, uuid4().hex
    told = request.headers.get("content-length", "")
    with spool.places.one():
        path, _ = await spooled(
            spool,
            request.stream(),
            job=id_,
            suffix=suffix,
            declared=int(told[:20]) if told.isdigit() else None,
            http=http,
        )
        work = {**work, "file": str(path)}
        try:
            job = await desk.service.file(
                lambda jobs: jobs.submitted(desk.collection, kind, work, caller=desk.caller.id, id_=id_)
            )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return Job.of(job)


def _known(pairs: list[str]) -> dict[str, Any]:
    return {name: _value(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def _value(told: str) -> Any:
    """A number, truth or list where it is one in JSON; else the text."""
    try:
        return METADATA.validate_json(told, strict=True)
    except ValidationError:
        return told


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _sees(desk: Desk) -> list[str] | None:
    return None if desk.caller.labels is None else sorted(desk.caller.labels)


assert set(IMPORTED.__args__) == {"auto", *FORMATS}  # type: ignore[attr-defined]  # noqa: S101
