"""Collections over HTTP: which there are, making one, and forgetting one with all that it holds."""

from fastapi import APIRouter

from weft.surfaces.http_access import Reading
from weft.surfaces.wire import Statistics

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.get("/{collection}/stats", operation_id="stats")
async def stats(desk: Reading) -> Statistics:
    """How much a collection holds."""
    return Statistics.of(await desk.ask(lambda weft: weft.stats()))
