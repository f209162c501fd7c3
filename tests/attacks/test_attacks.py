"""Attack the service: every way to read and write, with every kind of key, for all labels and users, on both stores.

The model knows the rules and nothing of the code. What a key may not change is equal afterwards, byte by byte in an
export; what it may not see is in no response. Attempts that the rules allow must succeed.
"""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
from starlette.routing import Route

from attacks.ways import GROUPS, WAYS
from attacks.world import KINDS, LABEL_SETS, USERS, World, open_world
from databases import create_database
from service.test_oidc import Provider
from surfaces.serving import make_settings
from waylore.surfaces.http.app import create_app
from waylore.surfaces.mcp.resources import READERS
from waylore.surfaces.tools.tools import TOOLS

STORES = ("file", "server")
OTHER_CALLS = {"tools/list", "resources/list"}  # of MCP
SAMPLES = [pytest.param(100, id="one of 100"), pytest.param(1, id="all", marks=pytest.mark.full)]


@pytest.fixture(params=STORES)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = create_database() if request.param == "server" else str(tmp_path / "memory.waylore")
    with closing(Provider()) as provider:
        async with open_world(store, tmp_path, provider) as opened:
            yield opened


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("one_of", SAMPLES)
@pytest.mark.parametrize("group", GROUPS)
async def test_no_attack_succeeds(world: World, group: str, one_of: int) -> None:
    problems: list[str] = []
    for way in GROUPS[group]:
        for number, target in enumerate(world.targets[:1] if way.is_general else world.targets):
            for kind in KINDS:
                if crc32(f"{way.name} {kind} {number}".encode()) % one_of == 0:
                    problems += await world.attempt(way, kind, target)
    assert problems == []


def test_there_are_thousands_of_attempts() -> None:
    by_way = [len(KINDS) * (1 if way.is_general else len(LABEL_SETS) + len(USERS)) for way in WAYS]
    assert sum(by_way) * len(STORES) >= 5_000


def test_every_route_tool_and_resource_is_attacked() -> None:
    app = create_app(make_settings(":memory:"))
    paths = app.openapi()["paths"].values()
    routes = {operation["operationId"] for operations in paths for operation in operations.values()}
    # files of the package, without knowledge, and the login of the page, which surfaces/explorer/test_login.py attacks
    page = {"/", "/assets/{name}", "/login"}
    assert {route.path for route in app.routes if isinstance(route, Route)} == {"/mcp"} | page
    expected = routes | {f"tool {tool.name}" for tool in TOOLS} | set(READERS) | OTHER_CALLS
    assert {way.of for way in WAYS} == expected
