"""Routes for background jobs: start, list, read, follow and cancel them.

A caller limited to some labels or to one user sees only its own jobs. Events are server-sent events: one for each
change of a job, and the last when it ends. A client that reconnects with `Last-Event-ID` gets the events after it.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Header
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from waylore.deadline import Deadline, restart_deadline
from waylore.service.jobs import protocol as jobs
from waylore.service.shares import SERVICE
from waylore.store.receipts import get_request_id
from waylore.surfaces.http.access import (
    IDEMPOTENT,
    AdminAccess,
    CollectionAccess,
    ReadAccess,
    WriteAccess,
    create_router,
)
from waylore.surfaces.http.problems import RETRY_SOON
from waylore.surfaces.http.requests import Body, Cursor, Limit, describe_id, make_id_check
from waylore.surfaces.http.responses import (
    BODY_STATUSES,
    JobPage,
    JobResponse,
    cut_page,
    describe_problems,
    make_cursor,
    read_cursor,
)

HEARTBEAT_SECONDS = 15.0
router = create_router("jobs", "/v1/collections/{collection}/jobs")
JobId = Annotated[str, make_id_check("job"), describe_id("job")]
LastEventId = Annotated[
    str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$", description="Id of the last received event.")
]


class NewJob(Body):
    """Work on a whole collection: forget all documents, or compute all vectors again."""

    kind: Literal["forget", "reembed"]


@router.post(
    "",
    status_code=202,
    dependencies=[IDEMPOTENT],
    responses=describe_problems(*BODY_STATUSES),
)
async def start_job(access: AdminAccess, body: NewJob) -> JobResponse:
    """Forget all documents of a collection, or compute their vectors with the service's model."""
    access.caller.author.require_all()
    job = await access.service.run_on_jobs(
        access.caller.id,
        lambda runner: runner.submit(
            access.collection, body.kind, {}, author=access.caller.author, id_=get_request_id()
        ),
    )
    return JobResponse.of(job)


@router.get("")
async def list_jobs(access: ReadAccess, cursor: Cursor = None, limit: Limit = 100) -> JobPage:
    """List jobs, newest first, a page at a time. Ended jobs are listed for thirty days."""
    secret = access.service.secret
    list_name = f"jobs of {access.collection}"
    last = read_cursor(secret, list_name, cursor) if cursor else None
    before = (float(last[0]), last[1]) if last else None
    rows = await access.service.run_on_jobs(
        access.caller.id,
        lambda runner: runner.list_jobs(
            access.collection, caller=_choose_caller(access), before=before, limit=limit + 1
        ),
    )
    page, end = cut_page(rows, limit)
    more = make_cursor(secret, list_name, (repr(end.made_at.timestamp()), end.id)) if end else None
    return JobPage(jobs=[JobResponse.of(each) for each in page], next=more)


@router.get("/{job}")
async def get_job(access: ReadAccess, job: JobId) -> JobResponse:
    """Return a job with its progress, and its result when it has ended."""
    return JobResponse.of(await _get_job(access, job, access.caller.id))


@router.post("/{job}/cancel")
async def cancel_job(access: WriteAccess, job: JobId) -> JobResponse:
    """Cancel a job: at once if it waits, after its next step if it runs. Its writes are not undone."""
    return JobResponse.of(
        await access.service.run_on_jobs(
            access.caller.id, lambda runner: runner.cancel(access.collection, job, caller=_choose_caller(access))
        )
    )


@router.get(
    "/{job}/events",
    response_class=EventSourceResponse,
    responses={200: {"description": "One event for each change.", "content": {"text/event-stream": {}}}},
)
async def follow_job(access: ReadAccess, job: JobId, last: LastEventId = "") -> EventSourceResponse:
    """Follow a job until it ends. The data of each event is the job at that moment; the ids of events grow."""
    first = await _get_job(access, job, access.caller.id)
    if access.service.background.followers.is_full(access.caller.id):
        raise HTTPException(503, "too many clients follow jobs; read the job from time to time", RETRY_SOON)
    return EventSourceResponse(
        _stream_events(access, first, int(last or -1)),
        ping=HEARTBEAT_SECONDS,
        send_timeout=access.service.settings.http.idle_timeout,
    )


async def _stream_events(access: CollectionAccess, first: jobs.Job, after: int) -> AsyncIterator[ServerSentEvent]:
    async def read() -> jobs.Job:
        with Deadline(access.service.settings.http.request_timeout).activate():
            return await _get_job(access, first.id, SERVICE)

    restart_deadline(None)  # the stream ends with the job; only single reads have a time limit
    with access.service.background.followers.reserve(access.caller.id):
        async for job in access.service.background.jobs.follow(read, after=after):
            yield ServerSentEvent(JobResponse.of(job).model_dump_json(), event=job.state, id=str(job.version))


async def _get_job(access: CollectionAccess, id_: str, reader: str) -> jobs.Job:
    return await access.service.run_on_jobs(
        reader, lambda runner: runner.get_job(access.collection, id_, caller=_choose_caller(access))
    )


def _choose_caller(access: CollectionAccess) -> str | None:
    """Return the owner of the jobs that the caller may see: its own id if it is limited, None for all jobs."""
    return access.caller.id if access.caller.author.is_limited else None
