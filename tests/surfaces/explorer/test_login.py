"""Sign in to the page with an OpenID provider, a real server on loopback: authorization code with PKCE."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from service.test_oidc import Provider
from surfaces.explorer.browsing import run_browser
from surfaces.serving import create_client, make_settings, start_app, start_service
from waylore import Waylore

VERIFIER = "a-word-that-only-the-page-knows-and-nobody-else"
PAGE = "http://localhost/"


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


def get_code(provider: Provider) -> str:
    """Return a code of the provider for VERIFIER."""
    challenge = urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = {"redirect_uri": PAGE, "state": "s", "client_id": "explorer", "code_challenge": challenge}
    back = provider.authorize({name: [value] for name, value in asked.items()})
    return parse_qs(urlsplit(back).query)["code"][0]


async def test_code_is_exchanged_once_and_only_with_its_word(tmp_path: Path, provider: Provider) -> None:
    oidc = {"issuer": provider.issuer, "client_id": "explorer", "labels": ""}
    settings = make_settings(tmp_path / "memory.waylore", oidc=oidc)
    async with start_app(settings) as app, create_client(app) as anyone:
        described = (await anyone.get("/login")).json()
        assert described["address"] == f"{provider.issuer}/authorize"
        body = {"code": get_code(provider), "verifier": VERIFIER, "address": PAGE}
        token = (await anyone.post("/login", json=body)).json()["token"]
        async with create_client(app, token) as mara:
            assert (await mara.get("/v1/collections/default")).status_code == 200
        assert (await anyone.post("/login", json=body)).status_code == 401  # the code was used
        stolen = {**body, "code": get_code(provider), "verifier": "x" * 43}
        assert (await anyone.post("/login", json=stolen)).status_code == 401
        assert (await anyone.post("/login", json={"code": "a"})).status_code == 422
        foreign = {"Origin": "https://evil.example"}
        assert (await anyone.post("/login", json=body, headers=foreign)).status_code == 403


async def test_token_that_the_service_does_not_accept_lets_nobody_in(tmp_path: Path, provider: Provider) -> None:
    oidc = {"issuer": provider.issuer, "client_id": "explorer", "audience": "another"}
    async with start_app(make_settings(tmp_path / "a.waylore", oidc=oidc)) as app, create_client(app) as anyone:
        body = {"code": get_code(provider), "verifier": VERIFIER, "address": PAGE}
        refused = await anyone.post("/login", json=body)
        assert (refused.status_code, "token" in refused.json()) == (401, False)


async def test_service_without_a_client_has_no_login(tmp_path: Path) -> None:
    async with start_app(make_settings(tmp_path / "a.waylore")) as app, create_client(app) as anyone:
        assert (await anyone.get("/login")).json()["address"] == ""
        body = {"code": "a", "verifier": VERIFIER, "address": PAGE}
        assert (await anyone.post("/login", json=body)).status_code == 404


async def test_silent_provider_is_named(tmp_path: Path, provider: Provider) -> None:
    provider.is_up = False
    oidc = {"issuer": provider.issuer, "client_id": "explorer"}
    async with start_app(make_settings(tmp_path / "a.waylore", oidc=oidc)) as app, create_client(app) as anyone:
        done = await anyone.get("/login")
        assert (done.status_code, provider.issuer in done.json()["detail"]) == (503, True)


@pytest.mark.timeout(1_200)
def test_page_signs_in_with_the_provider(tmp_path: Path, provider: Provider) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("The canteen serves soup.", title="Canteen")
    oidc = {"ISSUER": provider.issuer, "CLIENT_ID": "explorer", "LABELS": ""}
    variables = {f"WAYLORE_OIDC_{name}": value for name, value in oidc.items()}
    variables["WAYLORE_EMBEDDING_PROVIDER"] = "none"
    with start_service(tmp_path / "memory.waylore", tmp_path, **variables) as running:
        run_browser("login", {"url": running.url, "provider": provider.issuer}, tmp_path)
