"""Routes for API keys, for administrators: create, list, rotate and revoke them, and list their changes.

Callers cannot grant more than they have. An administrator limited to some collections, to some labels or to a user
manages only keys within these limits; other keys do not exist for this caller.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from waylore.errors import Forbidden, NotFound
from waylore.service.callers import COLLECTION_NAME_PATTERN, Caller
from waylore.service.keys import USER_PATTERN, make_key, mark_revoked, rotate_secret
from waylore.service.registry.protocol import Key, Registry, Scope
from waylore.service.service import Service
from waylore.surfaces.http.access import AdminCaller, CurrentService, create_router
from waylore.surfaces.http.requests import (
    After,
    Body,
    Cursor,
    Limit,
    Line,
    Time,
    Whole,
    describe_id,
    make_id_check,
)
from waylore.surfaces.http.responses import (
    BODY_STATUSES,
    AuditPage,
    IssuedKey,
    KeyInfo,
    KeyPage,
    cut_log,
    cut_page,
    describe_problems,
    make_cursor,
    make_links,
    read_cursor,
)
from waylore.types.audit import AuditEntry
from waylore.types.author import get_default_source
from waylore.types.knowledge import Source

router = create_router("keys", "/v1/keys")
audit_router = create_router("audit", "/v1/audit")
KEY_LINKS = make_links("rotateKey", "revokeKey", key="$response.body#/info/id")
KeyId = Annotated[str, make_id_check("key", r"^[0-9a-f]{16}$"), describe_id("key", r"^[0-9a-f]{16}$")]


class NewKey(Body):
    """The name and the rights of a new API key."""

    name: Line = Field(examples=["the assistant"])
    collections: list[Annotated[str, Field(pattern=rf"{COLLECTION_NAME_PATTERN}|^\*$")]] = Field(
        min_length=1, max_length=1_000, description="Names of collections, or * for all.", examples=[["default"]]
    )
    scope: Scope = "read"
    labels: list[Line] | None = Field(
        default=None, max_length=100, description="Labels of the key, at least one if it writes; all if absent."
    )
    expires: Time | None = None
    max_source: Source | None = Field(
        default=None,
        description="Most trusted source of what the key writes; conversation for a key with labels or a user, else "
        "user_edit.",
    )
    user: Annotated[str, Field(pattern=USER_PATTERN)] | None = Field(
        default=None,
        description="The only user that the key reads and writes for; the user of your own key if absent.",
        examples=["mara"],
    )


class Rotation(Body):
    """The time for which the previous secret still works."""

    grace_seconds: Whole = Field(default=86_400, ge=0, le=31_536_000)


@router.get("")
async def list_keys(service: CurrentService, caller: AdminCaller, cursor: Cursor = None, limit: Limit = 100) -> KeyPage:
    """List the keys that you may manage, revoked ones too. A page may have fewer keys than its limit, or none."""
    id_, _ = read_cursor(service.secret, "keys", cursor) if cursor else ("", "")
    rows = await service.run_on_registry(
        caller.id, lambda registry: registry.list_keys(after=registry.get_key(id_), limit=limit + 1)
    )
    page, end = cut_page(rows, limit)
    more = make_cursor(service.secret, "keys", (end.id, "")) if end else None
    visible = [KeyInfo.of(key) for key in page if caller.can_grant(key)]
    return KeyPage(keys=visible, next=more)


@router.post(
    "",
    status_code=201,
    responses={201: {"links": KEY_LINKS}, **describe_problems(*BODY_STATUSES)},
)
async def create_key(service: CurrentService, caller: AdminCaller, body: NewKey) -> IssuedKey:
    """Create a key. Its token is shown only once."""
    user = caller.author.choose_user(body.user or "")
    key, token = make_key(
        body.name,
        collections=body.collections,
        scope=body.scope,
        labels=body.labels,
        expires=body.expires,
        max_source=body.max_source or caller.author.cap(get_default_source(body.labels, user)),
        user=user or None,
    )
    if not caller.can_grant(key):
        raise Forbidden("collections, labels and max_source must be within those of your own key; leave the others out")
    await _store_key(service, caller, key)
    return IssuedKey(info=KeyInfo.of(key), token=token)


@router.post("/{key}/rotate", responses=describe_problems(*BODY_STATUSES))
async def rotate_key(service: CurrentService, caller: AdminCaller, key: KeyId, body: Rotation) -> IssuedKey:
    """Give a key a new token. The previous token works for a while longer."""
    known = await _find_key(service, caller, key)
    if known.revoked:
        raise NotFound(f"key {key} is revoked; create a new one")
    rotated, token = rotate_secret(known, grace=timedelta(seconds=body.grace_seconds))
    await _store_key(service, caller, rotated)
    return IssuedKey(info=KeyInfo.of(rotated), token=token)


@router.delete("/{key}")
async def revoke_key(service: CurrentService, caller: AdminCaller, key: KeyId) -> KeyInfo:
    """Revoke a key. It cannot be used any more after a few seconds, and this cannot be undone."""
    revoked = mark_revoked(await _find_key(service, caller, key))
    await _store_key(service, caller, revoked)
    return KeyInfo.of(revoked)


@audit_router.get("")
async def audit_keys(
    service: CurrentService, caller: AdminCaller, after: After = 0, cursor: Cursor = None, limit: Limit = 100
) -> AuditPage:
    """List changes of the keys that you may manage, oldest first. A page may have fewer entries than its limit."""
    start = int(read_cursor(service.secret, "audit", cursor)[0]) if cursor else after

    def read(registry: Registry) -> tuple[tuple[AuditEntry, ...], dict[str, Key | None]]:
        entries = registry.audit(after=start, limit=limit + 1)
        return entries, {id_: registry.get_key(id_) for id_ in {entry.key for entry in entries}}

    entries, keys = await service.run_on_registry(caller.id, read)
    page = cut_log(service.secret, "audit", entries, limit)
    own = {id_ for id_, key in keys.items() if key and caller.can_grant(key)}
    return AuditPage(entries=[entry for entry in page.entries if entry.key in own], next=page.next)


async def _find_key(service: Service, caller: Caller, id_: str) -> Key:
    key = await service.run_on_registry(caller.id, lambda registry: registry.get_key(id_))
    if key is None or not caller.can_grant(key):
        raise NotFound(f"no key {id_}; GET /v1/keys lists the keys that you may manage")
    return key


async def _store_key(service: Service, caller: Caller, key: Key) -> None:
    await service.run_on_registry(caller.id, lambda registry: registry.set_key(key, author=caller.id), is_writing=True)
    service.api_keys.forget(key.id)
