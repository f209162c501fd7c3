"""Questions over HTTP: search, the text for a model, why a hit was found, what stands around an entity."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query

from waylore import config, types
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.service.callers import Caller
from waylore.surfaces.http.access import Reading, router_of
from waylore.surfaces.http.documents import AsOf, EntityName
from waylore.surfaces.http.requests import ContextQuestion, HitQuestion, Question
from waylore.surfaces.http.responses import OF_BODIES, Graph, leads_to, problems
from waylore.surfaces.wire import Context, Found

router = router_of("asking", "/v1/collections/{collection}")
WITH_BODY = problems(*OF_BODIES)
OF_A_HIT = leads_to(
    "explain",
    collection="$request.path.collection",
    body={"query": "$request.body#/query", "passage": "$response.body#/hits/0/passage/id"},
)


@router.post("/search", operation_id="search", responses={200: {"links": OF_A_HIT}, **WITH_BODY})
async def search(desk: Reading, body: Question) -> Found:
    """Find passages that bear on a question, best first, each with why."""
    return await desk.ask(lambda waylore: Found.of(_found(waylore, desk.caller, body)))


@router.post("/context", operation_id="context", responses=WITH_BODY)
async def context(desk: Reading, body: ContextQuestion) -> Context:
    """Make the text to hand to a model, with citation marks, within a budget of tokens."""

    def rendered(waylore: Waylore) -> Context:
        budget = config.Context(max_tokens=body.max_tokens)
        return Context.of(waylore.context(_found(waylore, desk.caller, body), style=body.style, config=budget))

    return await desk.ask(rendered)


@router.post("/explain", operation_id="explain", responses=WITH_BODY)
async def explain(desk: Reading, body: HitQuestion) -> Found:
    """Tell why one passage answers a question: the answer as search gives it, with that hit alone."""

    def explained(waylore: Waylore) -> Found:
        found = _found(waylore, desk.caller, body)
        hits = tuple(hit for hit in found.hits if hit.passage.id == body.passage)
        if not hits:
            raise NotFound(f"passage {body.passage} is none of the {len(found.hits)} hits: raise top_k")
        return Found.of(replace(found, hits=hits))

    return await desk.ask(explained)


@router.get("/graph", operation_id="graph")
async def graph(
    desk: Reading,
    entity: EntityName,
    hops: Annotated[int, Query(ge=1, le=3)] = 1,
    per_entity: Annotated[int, Query(ge=1, le=100, description="Facts of each entity.")] = 10,
    most: Annotated[int, Query(ge=1, le=1_000, description="Facts in all.")] = 100,
    as_of: AsOf = None,
) -> Graph:
    """Look around an entity: the facts that join it to others, as a tree."""
    where = desk.caller.where

    def around(waylore: Waylore) -> Graph:
        found = waylore.graph(entity, hops=hops, per_entity=per_entity, most=most, as_of=as_of, where=where)
        return Graph.of({"around": found})

    return await desk.ask(around)


def _found(waylore: Waylore, caller: Caller, asked: Question) -> types.Found:
    where = types.Filter(labels=_labels(caller, asked), metadata=asked.metadata)
    return waylore.search(asked.query, top_k=asked.top_k, method=asked.method, where=where, as_of=asked.as_of)


def _labels(caller: Caller, asked: Question) -> frozenset[str] | None:
    """What the caller asks to read as, which is never more than the caller may."""
    if asked.labels is None:
        return caller.labels
    wanted = frozenset(asked.labels)
    return wanted if caller.labels is None else wanted & caller.labels
