"""Documents and facts over HTTP: adding, listing, reading and forgetting them, and exporting them all."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Annotated

from anyio import CancelScope
from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Send

from waylore.engine.waylore import Waylore
from waylore.errors import Forbidden, NotFound
from waylore.service.callers import Caller, require_all_labels
from waylore.surfaces.http.access import ONCE, Desk, Reading, Writing, router_of
from waylore.surfaces.http.requests import (
    ANY,
    IDENTITY,
    SAYING,
    After,
    Identities,
    Limit,
    NewDocument,
    NewFacts,
    ReceiptBody,
    Time,
)
from waylore.surfaces.http.responses import (
    OF_BODIES,
    Facts,
    Page,
    Stored,
    StoredFacts,
    Verified,
    cursor,
    last_of,
    leads_to,
    problems,
)
from waylore.surfaces.wire import Contribution, Document, Receipt
from waylore.types.identity import document_id
from waylore.types.knowledge import Document as Known
from waylore.types.search import EVERYTHING, Filter

LINES = 64  # of an export, that are made at a time
router = router_of("documents", "/v1/collections/{collection}")
WITH_BODY = problems(*OF_BODIES)
OF_A_DOCUMENT = leads_to(
    "get_document", "forget_document", collection="$request.path.collection", document="$response.body#/id"
)
DocumentId = Annotated[str, Path(pattern=IDENTITY, description="A document's identity.")]
Under = Annotated[str, Query(max_length=1_000, pattern=ANY, description="How the address begins.")]
EntityName = Annotated[
    str,
    Query(min_length=1, max_length=1_000, pattern=SAYING, description="An entity's name.", examples=["login"]),
]
AsOf = Annotated[Time | None, Query(description="What held at that time; all, if absent.")]


@router.post(
    "/documents",
    operation_id="add_document",
    status_code=201,
    dependencies=[ONCE],
    responses={201: {"links": OF_A_DOCUMENT}, **WITH_BODY},
)
async def added(desk: Writing, body: NewDocument) -> Stored:
    """Add a text and the facts it states; adding the same again changes nothing."""
    id_ = await desk.ask(lambda waylore: _add(waylore, desk.caller, body))
    return Stored(id=id_)


@router.get("/documents", operation_id="list_documents")
async def listed(
    desk: Reading,
    under: Under = "",
    after: After = None,
    limit: Limit = 100,
) -> Page:
    """List documents by address, a page at a time."""
    secret = desk.service.secret
    of = f"{desk.collection}/{under}"
    last = last_of(secret, of, after) if after else ("", "")
    since = Known(id=last[1], uri=last[0])
    found = await desk.ask(
        lambda waylore: waylore.documents(under=under, after=since, limit=limit, where=desk.caller.where)
    )
    more = cursor(secret, of, (found[-1].uri, found[-1].id)) if len(found) == limit else None
    return Page(documents=[Document.of(one) for one in found], next=more)


@router.get("/documents/{document}", operation_id="get_document")
async def one(desk: Reading, document: DocumentId) -> Contribution:
    """Read a document with all that it says."""
    return await desk.ask(lambda waylore: Contribution.of(waylore.get(document, where=desk.caller.where)))


@router.delete("/documents/{document}", operation_id="forget_document")
async def forgotten(desk: Writing, document: DocumentId) -> Receipt:
    """Forget a document with all that nothing else supports; the receipt says what went."""
    receipt = await desk.ask(lambda waylore: waylore.forget(document, where=desk.caller.where))
    if not receipt.documents:
        raise NotFound(f"no document {document} that you may see")
    return Receipt.of(receipt)


@router.post("/documents/forget", operation_id="forget_documents", dependencies=[ONCE], responses=WITH_BODY)
async def all_forgotten(desk: Writing, body: Identities) -> Receipt:
    """Forget documents; those that are not there are passed over."""
    return Receipt.of(await desk.ask(lambda waylore: waylore.forget(*body.documents, where=desk.caller.where)))


@router.post("/receipts/verify", operation_id="verify_receipt", responses=WITH_BODY)
async def verified(desk: Writing, body: ReceiptBody) -> Verified:
    """Look whether anything is left of what a receipt says went; reads the whole collection."""
    require_all_labels(desk.caller)
    return Verified(left=list(await desk.ask(lambda waylore: waylore.verify_forgotten(body.back()))))


@router.post("/facts", operation_id="add_facts", status_code=201, dependencies=[ONCE], responses=WITH_BODY)
async def facts_added(desk: Writing, body: NewFacts) -> StoredFacts:
    """Add facts that come without a text."""
    _require_labels(desk.caller, body.labels)
    claims = [claim.claim(body.source) for claim in body.facts]
    ids = await desk.ask(
        lambda waylore: waylore.add_facts(
            claims, metadata=body.metadata, labels=body.labels, source=body.source
        )
    )
    return StoredFacts(ids=list(ids))


@router.get("/facts", operation_id="list_facts", tags=["asking"])
async def facts(
    desk: Reading, entity: EntityName, as_of: AsOf = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> Facts:
    """Tell what is known of an entity, strongest first."""
    where = desk.caller.where

    def known(waylore: Waylore) -> Facts:
        return Facts.of({"facts": waylore.facts(entity, as_of=as_of, limit=limit, where=where)})

    return await desk.ask(known)


@router.get(
    "/export",
    operation_id="export",
    response_class=StreamingResponse,
    responses={200: {"description": "A collection as lines of JSON.", "content": {"application/x-ndjson": {}}}},
)
async def exported(desk: Reading) -> Response:
    """Read everything, vectors included, as lines of JSON that `Waylore.import_` takes."""
    require_all_labels(desk.caller)
    stack = ExitStack()
    lines = await desk.ask(lambda _: _export(stack, desk))
    return Streamed(_streamed(stack, desk, lines), media_type="application/x-ndjson")


def _add(waylore: Waylore, caller: Caller, body: NewDocument) -> str:
    _require_labels(caller, body.labels)
    _require_own_address(waylore, caller, body.uri)
    return waylore.add(
        body.text,
        title=body.title,
        uri=body.uri,
        metadata=body.metadata,
        labels=body.labels,
        source=body.source,
        facts=[claim.claim(body.source) for claim in body.facts],
    )


def _require_labels(caller: Caller, labels: list[str]) -> None:
    if not caller.covers((), labels):
        given = ", ".join(sorted(caller.labels or ())) or "none"
        raise Forbidden(f"your key gives the labels {given} only: use those")


def _require_own_address(waylore: Waylore, caller: Caller, uri: str) -> None:
    """A text replaces what has its address: that must not be something that the caller may not see."""
    if caller.labels is None or not uri:
        return
    id_ = document_id(uri=uri)
    is_there, is_seen = (_has(waylore, id_, where) for where in (EVERYTHING, caller.where))
    if is_there and not is_seen:
        raise Forbidden("another document has that address, which you may not see: choose another address")


def _has(waylore: Waylore, id_: str, where: Filter) -> bool:
    try:
        waylore.get(id_, where=where)
    except NotFound:
        return False
    return True


def _export(stack: ExitStack, desk: Desk) -> Iterator[str]:
    """The lines; the collection stays open until the stack is closed."""
    waylore = stack.enter_context(desk.service.collections.lent(desk.collection))
    lines = waylore.exported()
    stack.callback(lines.close)
    return lines


class Streamed(StreamingResponse):
    """An answer that is made as it is read; what makes it is let go at once when the reader goes away."""

    async def stream_response(self, send: Send) -> None:
        """Send all of it, or as much as is read."""
        made = self.body_iterator
        assert isinstance(made, AsyncGenerator)  # noqa: S101
        try:
            await super().stream_response(send)
        finally:
            with CancelScope(shield=True):
                await made.aclose()


async def _streamed(stack: ExitStack, desk: Desk, lines: Iterator[str]) -> AsyncIterator[str]:
    try:
        while some := await desk.ask(lambda _: "".join(islice(lines, LINES))):
            yield some
    finally:
        await asyncio.to_thread(stack.close)
