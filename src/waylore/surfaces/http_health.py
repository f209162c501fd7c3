"""Whether the service is alive, and whether it can do its work: for those who start and watch it."""

from fastapi import APIRouter, Response

from waylore.surfaces.http_access import Running
from waylore.surfaces.http_answers import Alive, Ready

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="healthz")
async def alive() -> Alive:
    """Tell that the process answers; nothing else is looked at."""
    return Alive(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    responses={503: {"model": Ready, "description": "Something cannot be reached."}},
)
async def ready(service: Running, response: Response) -> Ready:
    """Tell whether the store answers and the model is loaded."""
    store, model = await service.reaches_store(), await service.reaches_model()
    if not (store and model):
        response.status_code = 503
    told = {True: "ok", False: "unreachable"}
    return Ready(status="ok" if store and model else "not ready", store=told[store], model=told[model])
