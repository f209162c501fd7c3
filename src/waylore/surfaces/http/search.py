"""Routes that answer questions: search, the context for a model, the explanation of a hit, and the graph."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query, Response

from waylore import types
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.surfaces.http.access import ReadAccess, create_router
from waylore.surfaces.http.documents import AsOf, EntityName, FactLimit, OfUser
from waylore.surfaces.http.requests import ContextRequest, ExplainRequest, QuestionBody, SearchRequest
from waylore.surfaces.http.responses import BODY_STATUSES, Graph, describe_problems, make_json_response, make_links
from waylore.surfaces.wire import Context, SearchResult

router = create_router("search", "/v1/collections/{collection}")
BODY_PROBLEMS = describe_problems(*BODY_STATUSES)
HIT_LINKS = make_links(
    "explain",
    collection="$request.path.collection",
    body={"query": "$request.body#/query", "passage": "$response.body#/hits/0/passage/id"},
)


@router.post(
    "/search",
    operation_id="search",
    response_model=SearchResult,
    responses={200: {"links": HIT_LINKS}, **BODY_PROBLEMS},
)
async def search(access: ReadAccess, body: SearchRequest) -> Response:
    """Search the collection and return the best passages. With `explain`, each has its explanation."""
    return await access.run(lambda waylore: make_json_response(_search(waylore, body).to_dict(explain=body.explain)))


@router.post("/context", operation_id="context", response_model=Context, responses=BODY_PROBLEMS)
async def render_context(access: ReadAccess, body: ContextRequest) -> Response:
    """Return the text to hand to a model, with citation marks, within a budget of tokens."""

    def render(waylore: Waylore) -> Response:
        context = waylore.context(_search(waylore, body), layout=body.layout, max_tokens=body.max_tokens)
        return make_json_response(context.to_dict())

    return await access.run(render)


@router.post("/explain", operation_id="explain", response_model=SearchResult, responses=BODY_PROBLEMS)
async def explain(access: ReadAccess, body: ExplainRequest) -> Response:
    """Explain one hit: return the result of the search with this hit only."""

    def find(waylore: Waylore) -> Response:
        result = _search(waylore, body)
        hits = tuple(hit for hit in result.hits if hit.passage.id == body.passage)
        if not hits:
            raise NotFound(f"passage {body.passage} is not among the {len(result.hits)} hits; raise top_k")
        return make_json_response(replace(result, hits=hits).to_dict(explain=True))

    return await access.run(find)


@router.get("/graph", operation_id="graph", response_model=Graph)
async def get_graph(
    access: ReadAccess,
    entity: EntityName,
    hops: Annotated[int, Query(ge=1, le=3, description="How many facts away, 1 to 3.")] = 1,
    per_entity: Annotated[int, Query(ge=1, le=100, description="Maximum number of facts of each entity.")] = 10,
    limit: FactLimit = 100,
    as_of: AsOf = None,
    user: OfUser = "",
) -> Response:
    """Return the facts around an entity, as a tree."""

    def read(waylore: Waylore) -> Response:
        around = waylore.graph(entity, hops=hops, per_entity=per_entity, limit=limit, as_of=as_of, user=user)
        return make_json_response({"around": [each.to_dict() for each in around]})

    return await access.run(read)


def _search(waylore: Waylore, body: QuestionBody) -> types.SearchResult:
    labels = None if body.labels is None else frozenset(body.labels)
    where = types.Filter(labels=labels, metadata=body.where)
    return waylore.search(
        body.query,
        top_k=body.top_k,
        method=body.method,
        where=where,
        as_of=body.as_of,
        min_similarity=body.min_similarity,
        user=body.user,
        agent=body.agent,
        session=body.session,
        since=body.since,
        until=body.until,
    )
