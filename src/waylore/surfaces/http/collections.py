"""Collections over HTTP: which there are, making one, how much it holds, and forgetting one with all of it."""

import time
from datetime import UTC, datetime

from fastapi import Response

from waylore.engine.waylore import Waylore
from waylore.service.callers import no_collection, require, require_all_labels
from waylore.service.jobs.work import emptied
from waylore.service.registry.protocol import EVERY, Collection
from waylore.surfaces.http.access import CollectionName, Governing, Known, Reading, Running, router_of
from waylore.surfaces.http.requests import After, Limit, NewCollection
from waylore.surfaces.http.responses import OF_BODIES, CollectionInfo, Collections, cursor, last_of, problems
from waylore.surfaces.wire import Statistics

router = router_of("collections", "/v1/collections")


@router.get("", operation_id="list_collections")
async def listed(service: Running, caller: Known, after: After = None, limit: Limit = 100) -> Collections:
    """List the collections that you may see by name, a page at a time."""
    last, _ = last_of(service.secret, "collections", after) if after else ("", "")
    among = None if EVERY in caller.collections else caller.collections
    found = await service.look(lambda registry: registry.collections(after=last, limit=limit, among=among))
    more = cursor(service.secret, "collections", (found[-1].name, "")) if len(found) == limit else None
    return Collections(collections=[CollectionInfo.of(one) for one in found], next=more)


@router.get("/{collection}", operation_id="get_collection")
async def one(service: Running, caller: Known, collection: CollectionName) -> CollectionInfo:
    """Tell what a collection is for."""
    return CollectionInfo.of(await service.collection(caller, collection))


@router.put(
    "/{collection}",
    operation_id="put_collection",
    status_code=201,
    responses={
        200: {"model": CollectionInfo, "description": "It was there, and is described anew."},
        **problems(*OF_BODIES),
    },
)
async def made(
    service: Running, caller: Known, collection: CollectionName, body: NewCollection, response: Response
) -> CollectionInfo:
    """Make a collection, or describe it anew; one that is there keeps what it holds."""
    if not caller.sees(collection):
        raise no_collection(collection)
    require(caller, "admin")
    wanted = Collection(collection, body.description, datetime.now(UTC))
    if not await service.look(lambda registry: registry.set_collection(wanted)):
        response.status_code = 200
    return CollectionInfo.of(await service.collection(caller, collection))


@router.delete("/{collection}", operation_id="delete_collection", status_code=204)
async def removed(desk: Governing) -> None:
    """Forget a collection with all that it holds; if that takes too long, ask again to go on."""
    require_all_labels(desk.caller)
    await desk.service.file(lambda jobs: jobs.given_up(desk.collection))
    until = time.monotonic() + desk.service.settings.http.seconds
    await desk.ask(lambda waylore: _empty(waylore, until))
    await desk.service.look(lambda registry: registry.remove_collection(desk.collection))
    desk.service.shown.pop(desk.collection, None)
    await desk.ask(lambda waylore: _empty(waylore, until))  # what somebody added in between


@router.get("/{collection}/stats", operation_id="stats")
async def stats(desk: Reading) -> Statistics:
    """Count what a collection holds, and tell the embedding model that it was made with."""
    require_all_labels(desk.caller)
    return Statistics.of(await desk.ask(lambda waylore: waylore.stats()))


def _empty(waylore: Waylore, until: float) -> None:
    for _ in emptied(waylore):
        if time.monotonic() > until:
            raise TimeoutError
