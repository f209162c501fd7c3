"""A PostgreSQL server that hangs: `/readyz` answers, and known keys stay known for a minute."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI
from tools.faults import Proxy, start_proxy
from tools.postgres.server import Server

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, read_json, start_app
from waylore.service.callers import KNOWN_KEY_SECONDS, Caller
from waylore.service.keys import mark_revoked, split_token
from waylore.service.service import Service

SECONDS = 60.0  # only a guard against hanging


@asynccontextmanager
async def start_behind_proxy(server: Server) -> AsyncIterator[tuple[FastAPI, Proxy, str]]:
    """Start a service whose connections to the database pass a proxy, and return it with an API key."""
    url = create_database()
    token = create_token(url)
    with start_proxy(server.port) as proxy:
        async with start_app(make_settings(proxy.build_url(url))) as app:
            yield app, proxy, token


async def wait_for_readiness(client: httpx.AsyncClient, status: int) -> httpx.Response:
    async with asyncio.timeout(SECONDS):
        while (answer := await client.get("/readyz")).status_code != status:
            await asyncio.sleep(0.1)
    return answer


async def test_readiness_answers_while_the_database_hangs(postgres: Server) -> None:
    async with start_behind_proxy(postgres) as (app, proxy, _), create_client(app) as client:
        assert read_json(await client.get("/readyz"))["status"] == "ok"
        with proxy.hang():
            gone = await wait_for_readiness(client, 503)
            assert gone.json() == {"status": "not ready", "store": "unreachable", "model": "ok", "provider": "none"}
            began = time.process_time()
            for _ in range(20):
                assert (await client.get("/readyz")).status_code == 503
            assert time.process_time() - began < 2  # nothing is queried
        await wait_for_readiness(client, 200)


def let_seconds_pass(service: Service, token: str, seconds: float) -> None:
    """Let a known key be as old as if some seconds had passed since its look-up."""
    known = service.api_keys._known[split_token(token)[0]]
    known.cached_until -= seconds
    known.known_until -= seconds


async def authenticate(service: Service, token: str) -> Caller | None:
    """Return the caller of a key, or None if the registry does not answer."""
    try:
        async with asyncio.timeout(3):
            return await service.authenticate(token)
    except TimeoutError:
        return None


async def test_known_keys_work_while_the_registry_hangs(postgres: Server) -> None:
    async with start_behind_proxy(postgres) as (app, proxy, token):
        service: Service = app.state.service
        caller = await service.authenticate(token)
        with proxy.hang():
            strangers = [asyncio.create_task(authenticate(service, f"waylore_{number:016x}_x")) for number in range(20)]
            await asyncio.sleep(0)
            let_seconds_pass(service, token, 10)
            assert await authenticate(service, token) == caller
            assert service.api_keys.find_cached(token) == caller  # no second look-up for a moment
            let_seconds_pass(service, token, KNOWN_KEY_SECONDS)
            assert await authenticate(service, token) is None
            assert set(await asyncio.gather(*strangers)) == {None}
        assert await authenticate(service, token) == caller


@pytest.mark.parametrize("hangs", [False, True])
async def test_revoked_key_ends_when_the_registry_answers(postgres: Server, *, hangs: bool) -> None:
    async with start_behind_proxy(postgres) as (app, proxy, token), create_client(app, token) as client:
        service: Service = app.state.service
        key = service.registry.get_key(split_token(token)[0])
        assert key
        assert (await client.get("/v1/collections")).status_code == 200
        service.registry.set_key(mark_revoked(key))
        let_seconds_pass(service, token, 10)
        if hangs:
            with proxy.hang():
                assert await authenticate(service, token)
            let_seconds_pass(service, token, 10)
        async with asyncio.timeout(SECONDS):
            while (await client.get("/v1/collections")).status_code != 401:
                await asyncio.sleep(0.1)
