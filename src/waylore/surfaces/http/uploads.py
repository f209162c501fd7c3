"""Routes for uploads: the body of a request is written to disk, and a job adds or imports the file.

Permissions and the format are checked before the first byte of the body is read. The rest of a refused body is not
read; the connection is closed.
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

from waylore.deadline import restart_deadline
from waylore.indexing.files.formats import READERS
from waylore.indexing.importers.dispatch import FORMATS
from waylore.lengths import MAX_TITLE
from waylore.service.jobs.protocol import JobKind
from waylore.service.spool import UploadRejected, save_upload
from waylore.surfaces.http.access import SCHEMES, CollectionAccess, WriteAccess, get_caller
from waylore.surfaces.http.problems import RETRY_SOON
from waylore.surfaces.http.requests import TEXT_PATTERN, Line, Time, Value
from waylore.surfaces.http.responses import COMMON_STATUSES, JobResponse, describe_problems

ADDRESS_PATTERN = r"^[^\x00-\x1f\x7f-\x9f#?]+$"
SUFFIX_PATTERN = "^(" + "|".join(re.escape(suffix) for suffix in sorted(READERS)) + ")$"
ImportFormat = Literal["auto", "triples", "ntriples", "research", "graphrag", "lightrag", "mcp-memory", "mem0", "zep"]
PAIR_PATTERN = r"^[^\x00-\x1f\x7f-\x9f=]{1,200}=[^\x00]*$"
METADATA: TypeAdapter[Any] = TypeAdapter(Value | Annotated[list[Value], Field(max_length=100)])
BODY = {
    "requestBody": {
        "required": True,
        "description": "The file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
    }
}


class UploadRoute(APIRoute):
    """A route whose body is a file. It authenticates the caller first and adds no time limit."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, after authentication. `limits` closes refused connections."""
        handle = super().get_route_handler()

        async def handle_upload(request: Request) -> Response:
            await get_caller(request)
            try:
                return await handle(request)
            except UploadRejected as rejected:
                headers = RETRY_SOON if rejected.status in (503, 507) else None
                raise HTTPException(rejected.status, str(rejected), headers) from rejected
            except ClientDisconnect as error:
                raise HTTPException(400, "the upload is incomplete; send it again") from error

        return handle_upload


router = APIRouter(
    prefix="/v1/collections/{collection}/uploads",
    tags=["jobs"],
    route_class=UploadRoute,
    dependencies=SCHEMES,
    responses=describe_problems(*COMMON_STATUSES, 415, 507),
)
Address = Annotated[
    str,
    Path(
        pattern=ADDRESS_PATTERN,
        max_length=1_000,
        description="Address of the documents.",
        examples=["docs/a.md"],
    ),
]
Suffix = Annotated[
    str,
    Query(
        pattern=SUFFIX_PATTERN,
        description="Suffix that selects the reader, such as .md; the suffix of the address if absent.",
    ),
]
Labels = Annotated[
    list[Line], Query(max_length=100, description="Permissions; without any, every caller may read the document.")
]
MetadataPairs = Annotated[
    list[Annotated[str, Field(pattern=PAIR_PATTERN, max_length=10_000)]],
    Query(
        max_length=100,
        description="Metadata as NAME=VALUE. A value that is JSON is read as JSON.",
        examples=[["team=search", "year=2026"]],
    ),
]


Expires = Annotated[
    Time | None,
    Query(description="When the documents expire: from then on they are hidden from calls without an earlier `as_of`."),
]


OfUser = Annotated[
    str,
    Query(
        max_length=MAX_TITLE,
        pattern=TEXT_PATTERN,
        description="Whose documents they are; the user of your key if absent.",
    ),
]


@router.put("/{uri:path}", status_code=202, openapi_extra=BODY)
async def upload_file(
    request: Request,
    access: WriteAccess,
    uri: Address,
    suffix: Suffix = "",
    labels: Labels = [],  # noqa: B006 (FastAPI copies it)
    metadata: MetadataPairs = [],  # noqa: B006
    expires: Expires = None,
) -> JobResponse:
    """Upload a file and add it under an address. It replaces the documents of that address when it is read."""
    ending = suffix or _get_suffix(uri)
    if ending not in READERS:
        raise UploadRejected(415, f"no reader for {ending} files; name another suffix with ?suffix=")
    work = {"uri": uri, "labels": sorted(set(labels)), "metadata": _to_metadata(metadata)}
    if expires:
        work["expires"] = expires.isoformat()
    return await _submit(request, access, "add", ending, work)


@router.post("/{uri:path}", status_code=202, openapi_extra=BODY)
async def import_file(
    request: Request,
    access: WriteAccess,
    uri: Address,
    format: ImportFormat = "auto",  # noqa: A002
    labels: Labels = [],  # noqa: B006
    metadata: MetadataPairs = [],  # noqa: B006
    user: OfUser = "",
) -> JobResponse:
    """Upload a file of another program and import it: triples, papers, or a graph."""
    work = {
        "uri": uri,
        "labels": sorted(set(labels)),
        "metadata": _to_metadata(metadata),
        "format": format,
        "user": user,
    }
    return await _submit(request, access, "import", _get_suffix(uri), work)


async def _submit(
    request: Request, access: CollectionAccess, kind: JobKind, suffix: str, work: dict[str, Any]
) -> JobResponse:
    """Write the body to a file and submit a job for it."""
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        raise UploadRejected(415, "the body must be the file itself, not a form; send it with `curl -T FILE`")
    author = access.caller.author
    author.choose_labels(frozenset(work["labels"]))  # refuses labels and users before the body is read
    author.choose_user(work.get("user", ""))
    spool, http, id_ = access.service.background.spool, access.service.settings.http, uuid4().hex
    caller, length = access.caller.id, request.headers.get("content-length", "")
    await access.service.run_on_jobs(caller, lambda runner: runner.check_waiting(caller))
    restart_deadline(None)  # the spool limits the time of the body
    with spool.slots.reserve(caller):
        path, _ = await save_upload(
            spool,
            request.stream(),
            job=id_,
            suffix=suffix,
            declared=int(length[:20]) if length.isdigit() else None,
            http=http,
        )
        restart_deadline(http.request_timeout)
        work = {**work, "file": str(path)}
        try:
            job = await access.service.run_on_jobs(
                caller, lambda runner: runner.submit(access.collection, kind, work, author=author, id_=id_)
            )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return JobResponse.of(job)


def _to_metadata(pairs: list[str]) -> dict[str, Any]:
    return {name: _to_value(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def _to_value(text: str) -> Any:
    """Return the number, boolean or list that a text is in JSON, else the text."""
    try:
        return METADATA.validate_json(text, strict=True)
    except ValidationError:
        return text


def _get_suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


assert set(ImportFormat.__args__) == {"auto", *FORMATS}  # type: ignore[attr-defined]  # noqa: S101
