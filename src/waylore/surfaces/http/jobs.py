"""Jobs over HTTP: asking for one, listing them, following one, cancelling it.

A caller who reads some labels only sees their own jobs. Events are server-sent: one whenever a job changed, and
the last when it is over; who comes back with `Last-Event-ID` is told what came after it.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Header, Path
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from waylore.service.callers import require_all_labels
from waylore.service.jobs import protocol as jobs
from waylore.surfaces.http.access import ONCE, Desk, Governing, Reading, Writing, router_of
from waylore.surfaces.http.problems import TRY_LATER
from waylore.surfaces.http.requests import IDENTITY, After, Body, Limit
from waylore.surfaces.http.responses import OF_BODIES, Job, Jobs, cursor, last_of, problems

HEARTBEAT_SECONDS = 15.0
router = router_of("jobs", "/v1/collections/{collection}/jobs")
JobId = Annotated[str, Path(pattern=IDENTITY, description="A job's identity.")]
Version = Annotated[
    str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$", description="The last event that came.")
]


class NewJob(Body):
    """What is to be done with a whole collection: forget all that it holds, or embed it anew."""

    kind: Literal["forget", "reembed"]


@router.post("", operation_id="start_job", status_code=202, dependencies=[ONCE], responses=problems(*OF_BODIES))
async def submitted(desk: Governing, body: NewJob) -> Job:
    """Have all documents forgotten, or give them vectors of the service's model."""
    require_all_labels(desk.caller)
    made = await desk.service.file(
        lambda known: known.submitted(desk.collection, body.kind, {}, caller=desk.caller.id)
    )
    return Job.of(made)


@router.get("", operation_id="list_jobs")
async def listed(desk: Reading, after: After = None, limit: Limit = 100) -> Jobs:
    """List jobs, the newest first, a page at a time; those that are over are listed for thirty days."""
    secret = desk.service.secret
    of = f"jobs of {desk.collection}"
    last = last_of(secret, of, after) if after else None
    before = (float(last[0]), last[1]) if last else None
    found = await desk.service.file(
        lambda known: known.jobs(desk.collection, caller=_whose(desk), before=before, limit=limit)
    )
    more = (repr(found[-1].made_at.timestamp()), found[-1].id) if len(found) == limit else None
    return Jobs(jobs=[Job.of(one) for one in found], next=cursor(secret, of, more) if more else None)


@router.get("/{job}", operation_id="get_job")
async def one(desk: Reading, job: JobId) -> Job:
    """Tell how far a job is, or what became of it."""
    return Job.of(await _found(desk, job))


@router.post("/{job}/cancel", operation_id="cancel_job")
async def cancelled(desk: Writing, job: JobId) -> Job:
    """Cancel a job: at once if it waits, after its next step if it runs; what it wrote by then stays."""
    return Job.of(
        await desk.service.file(lambda known: known.cancelled(desk.collection, job, caller=_whose(desk)))
    )


@router.get(
    "/{job}/events",
    operation_id="follow_job",
    response_class=EventSourceResponse,
    responses={200: {"description": "A job whenever it changed.", "content": {"text/event-stream": {}}}},
)
async def followed(desk: Reading, job: JobId, last: Version = "") -> EventSourceResponse:
    """Follow a job until it is over: each event is the job as it is then, its `id` grows."""
    first = await _found(desk, job)
    if desk.service.background.followers.is_full:
        raise HTTPException(503, "too many follow jobs already: ask for the job now and then", TRY_LATER)
    return EventSourceResponse(
        _events(desk, first, int(last or -1)),
        ping=HEARTBEAT_SECONDS,
        send_timeout=desk.service.settings.http.stall,
    )


async def _events(desk: Desk, first: jobs.Job, after: int) -> AsyncIterator[ServerSentEvent]:
    known = desk.service.background.jobs
    with desk.service.background.followers.one():
        async for job in known.events(lambda: _found(desk, first.id), after=after):
            yield ServerSentEvent(Job.of(job).model_dump_json(), event=job.state, id=str(job.version))


async def _found(desk: Desk, id_: str) -> jobs.Job:
    return await desk.service.file(lambda known: known.job(desk.collection, id_, caller=_whose(desk)))


def _whose(desk: Desk) -> str | None:
    """Everyone's jobs, or those of a caller who does not see everything."""
    return None if desk.caller.labels is None else desk.caller.id
