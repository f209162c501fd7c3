"""Routes that answer questions: search, the context for a model, the explanation of a hit, the graph, and views."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query, Response
from pydantic import StringConstraints

from waylore import types
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.retrieval.context.render import count_hits
from waylore.surfaces.http.access import ReadAccess, create_router
from waylore.surfaces.http.documents import AsOf, EntityName, FactLimit, OfUser
from waylore.surfaces.http.requests import (
    TEXT_PATTERN,
    VISIBLE_PATTERN,
    ContextRequest,
    ExplainRequest,
    QuestionBody,
    SearchRequest,
    Time,
    describe_id,
    make_id_check,
)
from waylore.surfaces.http.responses import BODY_STATUSES, describe_problems, make_json_response, make_links
from waylore.surfaces.wire import (
    ChangeList,
    Connection,
    Context,
    EntityList,
    Profile,
    Provenance,
    Related,
    SearchResult,
    Timeline,
)
from waylore.types.relations import Direction

router = create_router("search", "/v1/collections/{collection}")
BODY_PROBLEMS = describe_problems(*BODY_STATUSES)
HIT_LINKS = make_links(
    "explainHit",
    collection="$request.path.collection",
    body={"query": "$request.body#/query", "passage": "$response.body#/hits/0/passage/id"},
)
PassageId = Annotated[str, make_id_check("passage"), describe_id("passage")]
Since = Annotated[Time | None, Query(description="Only from this time on.")]
Until = Annotated[Time | None, Query(description="Only before this time.")]
ViewLimit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of items; the newest are returned.")]
Budget = Annotated[int, Query(ge=1, le=100_000, description="Maximum length of all lines in tokens.")]
Around = Annotated[int, Query(ge=0, le=50, description="Number of turns before and after the passage.")]
OnlyText = Annotated[str, StringConstraints(max_length=1_000, pattern=TEXT_PATTERN)]
Predicates = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=VISIBLE_PATTERN)], ...],
    Query(max_length=20, description="Only facts that state one of these relations, also in other words."),
]
OnlyEntity = Annotated[
    str, Query(max_length=1_000, pattern=TEXT_PATTERN, description="Only changes of the entity with this name.")
]


@router.post(
    "/search",
    response_model=SearchResult,
    responses={200: {"links": HIT_LINKS}, **BODY_PROBLEMS},
)
async def search_collection(access: ReadAccess, body: SearchRequest) -> Response:
    """Search the collection and return the best passages. With `explain`, each has its explanation."""
    return await access.run(lambda waylore: make_json_response(_search(waylore, body).to_dict(explain=body.explain)))


@router.post("/context", response_model=Context, responses=BODY_PROBLEMS)
async def render_context(access: ReadAccess, body: ContextRequest) -> Response:
    """Return the text to hand to a model, with citation marks, within a budget of tokens."""

    def render(waylore: Waylore) -> Response:
        result = _search(waylore, body, body.top_k or count_hits(body.max_tokens))
        context = waylore.context(result, layout=body.layout, max_tokens=body.max_tokens)
        return make_json_response(context.to_dict())

    return await access.run(render)


@router.post("/explain", response_model=SearchResult, responses=BODY_PROBLEMS)
async def explain_hit(access: ReadAccess, body: ExplainRequest) -> Response:
    """Explain one hit: return the result of the search with this hit only."""

    def find(waylore: Waylore) -> Response:
        result = _search(waylore, body)
        hits = tuple(hit for hit in result.hits if hit.passage.id == body.passage)
        if not hits:
            raise NotFound(f"passage {body.passage} is not among the {len(result.hits)} hits; raise top_k")
        return make_json_response(replace(result, hits=hits).to_dict(explain=True))

    return await access.run(find)


@router.get("/related", response_model=Related)
async def get_related(
    access: ReadAccess,
    entity: EntityName,
    predicate: Predicates = (),
    direction: Annotated[Direction, Query(description="Facts to the entity (in), from it (out), or both.")] = "both",
    hops: Annotated[int, Query(ge=1, le=6, description="Maximum distance in facts, 1 to 6.")] = 1,
    limit: FactLimit = 50,
    as_of: AsOf = None,
    user: OfUser = "",
) -> Response:
    """Return the facts of an entity as a tree, and whether these are all. The entity is given by name or id."""

    def read(waylore: Waylore) -> Response:
        related = waylore.related(
            entity, predicates=predicate, direction=direction, hops=hops, limit=limit, as_of=as_of, user=user
        )
        return make_json_response(related.to_dict())

    return await access.run(read)


@router.get("/connection", response_model=Connection)
async def get_connection(
    access: ReadAccess,
    entity: EntityName,
    to: EntityName,
    max_hops: Annotated[int, Query(ge=1, le=6, description="Length of a path in steps, 1 to 6.")] = 4,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of paths.")] = 3,
    as_of: AsOf = None,
    user: OfUser = "",
) -> Response:
    """Return the shortest paths between two entities, given by name or id, and the extent of the search."""

    def read(waylore: Waylore) -> Response:
        found = waylore.connect(entity, to, max_hops=max_hops, limit=limit, as_of=as_of, user=user)
        return make_json_response(found.to_dict())

    return await access.run(read)


@router.get("/entities", response_model=EntityList)
async def list_entities(
    access: ReadAccess,
    type_: Annotated[OnlyText, Query(alias="type", description="Only entities of this type.")] = "",
    predicate: Annotated[OnlyText, Query(description="Only subjects of facts that state this relation.")] = "",
    about: Annotated[OnlyText, Query(alias="object", description="Only entities that facts relate to this one.")] = "",
    name: Annotated[OnlyText, Query(description="Only entities with this name or alias.")] = "",
    after: Annotated[str, Query(pattern="^([0-9a-f]{32})?$", description="Cursor of the previous page.")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000, description="Maximum number of entities.")] = 50,
    as_of: AsOf = None,
    user: OfUser = "",
) -> Response:
    """List entities by type, relation or name, a page at a time, and count them."""

    def read(waylore: Waylore) -> Response:
        found = waylore.list_entities(
            type=type_, predicate=predicate, object=about, name=name, after=after, limit=limit, as_of=as_of, user=user
        )
        return make_json_response(found.to_dict())

    return await access.run(read)


@router.get("/timeline", response_model=Timeline)
async def get_timeline(
    access: ReadAccess,
    entity: EntityName,
    since: Since = None,
    until: Until = None,
    limit: ViewLimit = 100,
    user: OfUser = "",
) -> Response:
    """Return the assertions of an entity in order of time, each with its periods and its end."""

    def read(waylore: Waylore) -> Response:
        timeline = waylore.timeline(entity, since=since, until=until, limit=limit, user=user)
        return make_json_response(timeline.to_dict())

    return await access.run(read)


@router.get("/profile", response_model=Profile)
async def get_profile(access: ReadAccess, user: OfUser = "", budget: Budget = 400) -> Response:
    """Return the current facts about a user, one line for each relation, the most used first, then the newest."""
    return await access.run(lambda waylore: make_json_response(waylore.profile(user, budget).to_dict()))


@router.get("/changes", response_model=ChangeList)
async def list_changes(
    access: ReadAccess,
    user: OfUser = "",
    since: Since = None,
    until: Until = None,
    entity: OnlyEntity = "",
    limit: ViewLimit = 100,
) -> Response:
    """Return the facts that began, changed, were corrected or ended in a period, in order of time."""

    def read(waylore: Waylore) -> Response:
        changes = waylore.changes(user=user, since=since, until=until, entity=entity, limit=limit)
        return make_json_response(changes.to_dict())

    return await access.run(read)


@router.get("/passages/{passage}/provenance", response_model=Provenance)
async def get_provenance(access: ReadAccess, passage: PassageId, around: Around = 2, user: OfUser = "") -> Response:
    """Return where a passage comes from: speaker, session, time, document, and the turns around it."""

    def read(waylore: Waylore) -> Response:
        try:
            return make_json_response(waylore.provenance(passage, around=around, user=user).to_dict())
        except NotFound as error:
            raise NotFound(f"no passage {passage}; use the id of a passage from POST …/search") from error

    return await access.run(read)


def _search(waylore: Waylore, body: QuestionBody, top_k: int | None = None) -> types.SearchResult:
    labels = None if body.labels is None else frozenset(body.labels)
    where = types.Filter(labels=labels, metadata=body.where)
    return waylore.search(
        body.query,
        top_k=top_k or body.top_k,
        method=body.method,
        where=where,
        as_of=body.as_of,
        min_similarity=body.min_similarity,
        rerank=body.rerank,
        user=body.user,
        agent=body.agent,
        session=body.session,
        since=body.since,
        until=body.until,
        group_by=body.group_by,
    )
