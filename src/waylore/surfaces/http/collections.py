"""Routes for collections: list, create, describe, count, audit and delete them, and quarantine documents."""

from datetime import UTC, datetime

from fastapi import Response

from waylore.deadline import check_each
from waylore.engine.waylore import Waylore
from waylore.service.activity import BOUNDS
from waylore.service.callers import make_not_found_error, require
from waylore.service.jobs.work import delete_documents
from waylore.service.registry.protocol import ALL_COLLECTIONS, RegisteredCollection
from waylore.surfaces.http.access import (
    IDEMPOTENT,
    AdminAccess,
    CollectionName,
    CurrentCaller,
    CurrentService,
    ReadAccess,
    create_router,
)
from waylore.surfaces.http.requests import After, AuthorBody, Cursor, Limit, NewCollection
from waylore.surfaces.http.responses import (
    BODY_STATUSES,
    AuditPage,
    CollectionInfo,
    CollectionPage,
    Insight,
    Quarantine,
    cut_log,
    cut_page,
    describe_problems,
    make_cursor,
    make_json_response,
    read_cursor,
)
from waylore.surfaces.wire import Receipt, Statistics
from waylore.types.plain import dump_time

router = create_router("collections", "/v1/collections")


@router.get("")
async def list_collections(
    service: CurrentService, caller: CurrentCaller, cursor: Cursor = None, limit: Limit = 100
) -> CollectionPage:
    """List the collections that you may see by name, a page at a time."""
    last, _ = read_cursor(service.secret, "collections", cursor) if cursor else ("", "")
    among = None if ALL_COLLECTIONS in caller.collections else caller.collections
    rows = await service.run_on_registry(
        caller.id, lambda registry: registry.list_collections(after=last, limit=limit + 1, among=among)
    )
    page, end = cut_page(rows, limit)
    more = make_cursor(service.secret, "collections", (end.name, "")) if end else None
    return CollectionPage(collections=[CollectionInfo.of(each) for each in page], next=more)


@router.get("/{collection}")
async def get_collection(service: CurrentService, caller: CurrentCaller, collection: CollectionName) -> CollectionInfo:
    """Return the description of a collection."""
    return CollectionInfo.of(await service.get_collection(caller, collection))


@router.put(
    "/{collection}",
    status_code=201,
    responses={
        200: {"model": CollectionInfo, "description": "The collection existed; its description was changed."},
        **describe_problems(*BODY_STATUSES),
    },
)
async def put_collection(
    service: CurrentService,
    caller: CurrentCaller,
    collection: CollectionName,
    response: Response,
    body: NewCollection = NewCollection(),  # noqa: B008
) -> CollectionInfo:
    """Create a collection, or change its description. The documents of an existing collection stay."""
    if not caller.can_see(collection):
        raise make_not_found_error(collection)
    require(caller, "admin")
    wanted = RegisteredCollection(collection, body.description, datetime.now(UTC))
    if not await service.run_on_registry(caller.id, lambda registry: registry.set_collection(wanted), is_writing=True):
        response.status_code = 200
    return CollectionInfo.of(await service.get_collection(caller, collection))


@router.delete("/{collection}", status_code=204)
async def delete_collection(access: AdminAccess) -> None:
    """Delete a collection with all of its documents. If that takes too long, repeat the request to continue."""
    access.caller.author.require_all()
    service, name = access.service, access.collection
    await service.run_on_jobs(access.caller.id, lambda jobs: jobs.cancel_all(name))
    await access.write(_delete_documents)
    await access.write(_empty_quarantine)
    await service.run_on_registry(access.caller.id, lambda registry: registry.remove_collection(name), is_writing=True)
    service.collection_cache.pop(name, None)
    service.activity.forget(name)
    await access.write(_delete_documents)  # documents added in the meantime


@router.get("/{collection}/stats", response_model=Statistics)
async def get_stats(access: ReadAccess) -> Response:
    """Return the size of a collection, and the embedding model that it was made with."""
    return make_json_response((await access.run(lambda waylore: waylore.stats())).to_dict())


@router.get("/{collection}/insight", response_model=Insight)
async def get_insight(access: ReadAccess) -> Response:
    """Return the size of a collection, its growth by day, and figures of its searches, as far as you may see them."""
    caller, seen = access.caller, access.service.activity.get(access.collection).report()
    is_whole = not caller.author.is_limited

    def read(waylore: Waylore) -> Response:
        stages = [{"stage": name, "counts": list(counts)} for name, counts in seen.stages.items()]
        return make_json_response(
            {
                "statistics": waylore.stats().to_dict() if is_whole else None,
                "growth": [each.to_dict() for each in waylore.growth()],
                "since": dump_time(seen.since),
                "gate": dict(seen.gate) if is_whole else None,
                "bounds": list(BOUNDS),
                "stages": stages if is_whole and caller.scope == "admin" else None,
            }
        )

    return await access.run(read)


@router.get("/{collection}/audit", tags=["audit"])
async def audit_collection(
    access: AdminAccess, after: After = 0, cursor: Cursor = None, limit: Limit = 100
) -> AuditPage:
    """List the changes of a collection with author and time, oldest first, with ids of documents and no content."""
    secret, name = access.service.secret, f"audit {access.collection}"
    start = int(read_cursor(secret, name, cursor)[0]) if cursor else after
    entries = await access.run(lambda waylore: waylore.audit(after=start, limit=limit + 1))
    return cut_log(secret, name, entries, limit)


@router.get("/{collection}/quarantine")
async def list_quarantined(access: AdminAccess) -> Quarantine:
    """List the authors whose documents are in quarantine, each with the number of documents."""
    return Quarantine(authors=await access.run(lambda waylore: waylore.list_quarantined()))


@router.post("/{collection}/quarantine", dependencies=[IDEMPOTENT], responses=describe_problems(*BODY_STATUSES))
async def quarantine_author(access: AdminAccess, body: AuthorBody) -> Receipt:
    """Hide all documents of an author until they are released. The receipt lists the hidden items."""
    return Receipt.of(await access.forget(lambda waylore: waylore.quarantine(body.author)))


@router.post("/{collection}/quarantine/release", dependencies=[IDEMPOTENT], responses=describe_problems(*BODY_STATUSES))
async def release_author(access: AdminAccess, body: AuthorBody) -> Receipt:
    """Bring back the documents of an author. `missing` lists documents that stay, because they were added again."""
    return Receipt.of(await access.write(lambda waylore: waylore.release(body.author)))


@router.post("/{collection}/quarantine/forget", dependencies=[IDEMPOTENT], responses=describe_problems(*BODY_STATUSES))
async def forget_quarantined(access: AdminAccess, body: AuthorBody) -> Receipt:
    """Forget the documents of an author in quarantine for good. The receipt lists the removed items."""
    return Receipt.of(await access.write(lambda waylore: waylore.forget_quarantined(body.author)))


def _empty_quarantine(waylore: Waylore) -> None:
    for author in check_each(waylore.list_quarantined()):
        waylore.forget_quarantined(author)


def _delete_documents(waylore: Waylore) -> None:
    for _ in check_each(delete_documents(waylore)):
        pass
