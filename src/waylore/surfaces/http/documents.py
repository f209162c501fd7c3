"""Routes for documents and facts: add, list, read and forget them, verify a receipt, and export a collection."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Annotated

from anyio import CancelScope
from fastapi import Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Send

from waylore import types
from waylore.deadline import restart_deadline
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.lengths import MAX_TITLE
from waylore.surfaces.http.access import IDEMPOTENT, CollectionAccess, ReadAccess, WriteAccess, create_router
from waylore.surfaces.http.requests import (
    TEXT_PATTERN,
    VISIBLE_PATTERN,
    Cursor,
    ForgetRequest,
    Limit,
    NamePair,
    NewDocument,
    NewFacts,
    ReceiptBody,
    Time,
    describe_id,
    make_id_check,
)
from waylore.surfaces.http.responses import (
    BODY_STATUSES,
    AddedDocument,
    AddedFacts,
    DocumentPage,
    Facts,
    MergeList,
    VerificationResult,
    cut_page,
    describe_problems,
    make_cursor,
    make_json_response,
    make_links,
    read_cursor,
)
from waylore.surfaces.wire import IndexedDocument, Receipt
from waylore.types.plain import dump_document, dump_fact, dump_indexed_document
from waylore.types.results import add_counts

EXPORT_BATCH_LINES = 64
router = create_router("documents", "/v1/collections/{collection}")
BODY_PROBLEMS = describe_problems(*BODY_STATUSES)
DOCUMENT_LINKS = make_links(
    "getDocument", "forgetDocument", collection="$request.path.collection", document="$response.body#/id"
)
DocumentId = Annotated[str, make_id_check("document"), describe_id("document")]
ReceiptId = Annotated[str, make_id_check("receipt"), describe_id("receipt")]
Under = Annotated[
    str, Query(max_length=1_000, pattern=TEXT_PATTERN, description="Only documents whose address begins with this.")
]
OfUser = Annotated[
    str,
    Query(
        max_length=MAX_TITLE,
        pattern=TEXT_PATTERN,
        description="Also the documents of this user; the user of your key if absent.",
    ),
]
IncludeExpired = Annotated[bool, Query(description="Whether to list expired documents too.")]
EntityName = Annotated[
    str,
    Query(
        min_length=1,
        max_length=1_000,
        pattern=VISIBLE_PATTERN,
        description="Name of an entity.",
        examples=["login"],
    ),
]
AsOf = Annotated[Time | None, Query(description="Only facts that were valid at this time; all facts if absent.")]
FactLimit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of facts.")]


@router.post(
    "/documents",
    status_code=201,
    dependencies=[IDEMPOTENT],
    responses={201: {"links": DOCUMENT_LINKS}, **BODY_PROBLEMS},
)
async def add_document(access: WriteAccess, body: NewDocument) -> AddedDocument:
    """Add a text and the facts it states. Adding the same text again changes nothing."""
    id_ = await access.write(
        lambda waylore: waylore.add(
            body.text,
            title=body.title,
            uri=body.uri,
            metadata=body.metadata,
            labels=body.labels,
            source=body.source,
            facts=[fact.to_new_fact(body.source) for fact in body.facts],
            user=body.user,
            agent=body.agent,
            session=body.session,
            at=body.at,
            expires=body.expires,
        )
    )
    return AddedDocument(id=id_, left_out=dict(id_.left_out))


@router.get("/documents", response_model=DocumentPage)
async def list_documents(
    access: ReadAccess,
    under: Under = "",
    cursor: Cursor = None,
    limit: Limit = 100,
    user: OfUser = "",
    include_expired: IncludeExpired = False,
) -> Response:
    """List documents by address, a page at a time."""
    secret = access.service.secret
    list_name = f"{access.collection}/{under}" + (f"\0{user}" if user else "")
    last = read_cursor(secret, list_name, cursor) if cursor else ("", "")
    after = types.Document(id=last[1], uri=last[0])
    rows = await access.run(
        lambda waylore: waylore.documents(
            under=under, after=after, limit=limit + 1, user=user, include_expired=include_expired
        )
    )
    page, end = cut_page(rows, limit)
    more = make_cursor(secret, list_name, (end.uri, end.id)) if end else None
    return make_json_response({"documents": [dump_document(each) for each in page], "next": more})


@router.get("/documents/{document}", response_model=IndexedDocument)
async def get_document(access: ReadAccess, document: DocumentId, user: OfUser = "") -> Response:
    """Return a document with its passages, entities and facts."""

    def read(waylore: Waylore) -> Response:
        try:
            return make_json_response(dump_indexed_document(waylore.get(document, user=user)))
        except NotFound as error:
            raise _make_not_found_error(document) from error

    return await access.run(read)


@router.delete("/documents/{document}", dependencies=[IDEMPOTENT])
async def forget_document(access: WriteAccess, document: DocumentId, user: OfUser = "") -> Receipt:
    """Forget a document with everything that no other document supports. The receipt lists the removed items."""
    receipt = await access.forget(lambda waylore: waylore.forget(document, user=user))
    if not receipt.documents:
        raise _make_not_found_error(document)
    return Receipt.of(receipt)


@router.post("/documents/forget", dependencies=[IDEMPOTENT], responses=BODY_PROBLEMS)
async def forget_documents(access: WriteAccess, body: ForgetRequest) -> Receipt:
    """Forget documents by id or address, or by scope, time or expiry. The receipt lists `missing` names."""
    age = access.service.settings.retention.get_age(access.collection)

    def forget(waylore: Waylore) -> types.Receipt:
        return waylore.forget(
            *body.documents,
            user=body.user,
            agent=body.agent,
            session=body.session,
            since=body.since,
            until=body.until,
            matching=body.matching,
            expired=body.expired,
            older_than=age if body.expired else None,
            dry_run=body.dry_run,
        )

    return Receipt.of(await access.forget(forget))


@router.get("/receipts/{receipt}")
async def get_receipt(access: ReadAccess, receipt: ReceiptId) -> Receipt:
    """Return a receipt of the last thirty days. It has an id in place of each address that was missing."""
    return Receipt.of(await access.run(lambda waylore: waylore.get_receipt(receipt)))


@router.post("/receipts/verify", responses=BODY_PROBLEMS)
async def verify_receipt(access: WriteAccess, body: ReceiptBody) -> VerificationResult:
    """Check that none of a receipt's items is still stored. Reads the whole collection."""
    left = await access.run(lambda waylore: waylore.verify_forgotten(body.to_receipt()))
    return VerificationResult(left=list(left))


@router.post("/facts", status_code=201, dependencies=[IDEMPOTENT], responses=BODY_PROBLEMS)
async def add_facts(access: WriteAccess, body: NewFacts) -> AddedFacts:
    """Add facts that come without a text."""
    facts = [fact.to_new_fact(body.source) for fact in body.facts]
    ids = await access.write(
        lambda waylore: waylore.add_facts(
            facts,
            metadata=body.metadata,
            labels=body.labels,
            source=body.source,
            user=body.user,
            agent=body.agent,
            session=body.session,
            at=body.at,
            expires=body.expires,
        )
    )
    return AddedFacts(ids=list(ids), left_out=add_counts(id_.left_out for id_ in ids))


@router.get("/merges", response_model=MergeList, tags=["search"])
async def list_merges(access: ReadAccess, entity: EntityName) -> Response:
    """Return the entities that are treated as the same as a name, then similar ones, each with the evidence."""

    def read(waylore: Waylore) -> Response:
        return make_json_response({"merges": [merge.to_dict() for merge in waylore.merges(entity)]})

    return await access.run(read)


@router.post("/names/distinct", status_code=201, dependencies=[IDEMPOTENT], responses=BODY_PROBLEMS)
async def mark_distinct(access: WriteAccess, body: NamePair) -> AddedDocument:
    """Record that two names mean different things. Forget the returned document to undo it."""
    id_ = await access.write(lambda waylore: waylore.mark_distinct(body.name, body.other, labels=body.labels))
    return AddedDocument(id=id_, left_out={})


@router.get("/facts", response_model=Facts, tags=["search"])
async def list_facts(
    access: ReadAccess, entity: EntityName, as_of: AsOf = None, limit: FactLimit = 100, user: OfUser = ""
) -> Response:
    """Return the facts of an entity, strongest first. An unknown entity has none; `/related` names similar ones."""

    def read(waylore: Waylore) -> Response:
        facts = waylore.facts(entity, as_of=as_of, limit=limit, user=user)
        return make_json_response({"facts": [dump_fact(fact) for fact in facts]})

    return await access.run(read)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"description": "The collection as lines of JSON.", "content": {"application/x-ndjson": {}}}},
)
async def export_collection(access: ReadAccess) -> Response:
    """Return the whole collection with its vectors, as lines of JSON that `Waylore.import_` reads."""
    restart_deadline(access.service.settings.http.export_seconds)
    stack = ExitStack()
    lines = await access.run(lambda _: _open_export(stack, access))
    return ClosingStream(_stream(stack, access, lines), media_type="application/x-ndjson")


def _make_not_found_error(document: str) -> NotFound:
    return NotFound(f"no document {document}; GET …/documents lists the documents that you may see")


def _open_export(stack: ExitStack, access: CollectionAccess) -> Iterator[str]:
    """Return the lines of an export. The collection stays open until the stack is closed."""
    waylore = stack.enter_context(access.service.collections.borrow(access.collection, access.caller.author))
    lines = waylore.export_lines()
    stack.callback(lines.close)
    return lines


class ClosingStream(StreamingResponse):
    """A streamed response that closes its source at once when the client disconnects."""

    async def stream_response(self, send: Send) -> None:
        """Send the response until its end, or until the client disconnects."""
        source = self.body_iterator
        assert isinstance(source, AsyncGenerator)  # noqa: S101
        try:
            await super().stream_response(send)
        finally:
            with CancelScope(shield=True):
                await source.aclose()


async def _stream(stack: ExitStack, access: CollectionAccess, lines: Iterator[str]) -> AsyncIterator[str]:
    try:
        while batch := await access.run(lambda _: "".join(islice(lines, EXPORT_BATCH_LINES))):
            yield batch
    finally:
        await asyncio.to_thread(stack.close)
