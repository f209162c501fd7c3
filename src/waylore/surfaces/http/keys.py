"""API keys over HTTP, for administrators: making, listing, rotating and revoking them.

Nobody hands on more than they have: who administers some collections, or reads some labels, governs keys for
those alone, and others are not there for them.
"""

from datetime import timedelta
from typing import Annotated

from fastapi import Path

from waylore.errors import Forbidden, NotFound
from waylore.service.callers import Caller
from waylore.service.keys import issued, revoked, rotated
from waylore.service.registry.protocol import Key
from waylore.service.service import Service
from waylore.surfaces.http.access import Administrator, Running, router_of
from waylore.surfaces.http.requests import After, Limit, NewKey, Rotation
from waylore.surfaces.http.responses import (
    OF_BODIES,
    IssuedKey,
    KeyInfo,
    Keys,
    cursor,
    last_of,
    leads_to,
    problems,
)

router = router_of("keys", "/v1/keys")
OF_A_KEY = leads_to("rotate_key", "revoke_key", key="$response.body#/info/id")
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="A key's identity.")]


@router.get("", operation_id="list_keys")
async def listed(service: Running, caller: Administrator, after: After = None, limit: Limit = 100) -> Keys:
    """List the keys that you may govern, revoked ones too; a page may have fewer than its limit, or none."""
    id_, _ = last_of(service.secret, "keys", after) if after else ("", "")
    found = await service.look(lambda registry: registry.keys(after=registry.key(id_), limit=limit))
    more = cursor(service.secret, "keys", (found[-1].id, "")) if len(found) == limit else None
    governed = [KeyInfo.of(key) for key in found if caller.covers(key.collections, key.labels)]
    return Keys(keys=governed, next=more)


@router.post(
    "", operation_id="create_key", status_code=201, responses={201: {"links": OF_A_KEY}, **problems(*OF_BODIES)}
)
async def made(service: Running, caller: Administrator, body: NewKey) -> IssuedKey:
    """Make a key; its token is told this once."""
    if not caller.covers(body.collections, body.labels):
        raise Forbidden("you cannot hand on collections or labels that your own key has not: leave them out")
    key, token = issued(
        body.name, collections=body.collections, scope=body.scope, labels=body.labels, expires=body.expires
    )
    await service.look(lambda registry: registry.set_key(key))
    return IssuedKey(info=KeyInfo.of(key), token=token)


@router.post("/{key}/rotate", operation_id="rotate_key", responses=problems(*OF_BODIES))
async def turned(service: Running, caller: Administrator, key: KeyId, body: Rotation) -> IssuedKey:
    """Give a key a new token; the former one works for a while longer."""
    known = await _governed(service, caller, key)
    if known.revoked:
        raise NotFound(f"key {key} is revoked: make a new one")
    after, token = rotated(known, grace=timedelta(seconds=body.grace_seconds))
    await _changed(service, after)
    return IssuedKey(info=KeyInfo.of(after), token=token)


@router.delete("/{key}", operation_id="revoke_key")
async def withdrawn(service: Running, caller: Administrator, key: KeyId) -> KeyInfo:
    """Revoke a key for good; it opens nothing from a moment later on."""
    after = revoked(await _governed(service, caller, key))
    await _changed(service, after)
    return KeyInfo.of(after)


async def _governed(service: Service, caller: Caller, id_: str) -> Key:
    key = await service.look(lambda registry: registry.key(id_))
    if key is None or not caller.covers(key.collections, key.labels):
        raise NotFound(f"there is no key {id_} that you may govern: GET /v1/keys lists those")
    return key


async def _changed(service: Service, key: Key) -> None:
    await service.look(lambda registry: registry.set_key(key))
    service.keyholders.forget(key.id)
