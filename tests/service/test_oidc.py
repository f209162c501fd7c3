"""Valid and forged tokens of an OpenID provider, which is a real server on loopback."""

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tools.waiting import HANG_SECONDS

from surfaces.serving import create_client, create_token, make_settings, read_json, start_app

RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
CURVE = ec.generate_private_key(ec.SECP256R1())


class Provider:
    """An OpenID provider that records the requests that it gets."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.keys = [_public(RSAAlgorithm.to_jwk(RSA.public_key()), "one")]
        self.is_up = True
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests.append(self.path)
                body = provider._respond(self.path) if provider.is_up else None
                self.send_response(200 if body else 503)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the library's)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def _respond(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": self.keys} if path == "/keys" else None

    def token(self, key_: Any = RSA, algorithm: str = "RS256", kid: str = "one", **claims: Any) -> str:
        payload = {
            "iss": self.issuer,
            "aud": "waylore",
            "sub": "mara",
            "exp": time.time() + 600,
            "scope": "openid write",
            "waylore_collections": ["default"],
        } | claims
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, key_, algorithm, headers={"kid": kid})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


def _public(jwk: str, kid: str) -> dict[str, Any]:
    return {**json.loads(jwk), "kid": kid, "use": "sig"}


async def statuses(tmp_path: Path, provider: Provider, *tokens: str) -> list[int]:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer})
    async with start_app(of) as app:
        found = []
        for token in tokens:
            async with create_client(app, token) as caller:
                found.append((await caller.get("/v1/collections/default/stats")).status_code)
        return found


async def test_token_grants_what_its_claims_say(tmp_path: Path, provider: Provider) -> None:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer})
    async with start_app(of) as app, create_client(app, provider.token()) as caller:
        read_json(await caller.post("/v1/collections/default/documents", json={"text": "The login."}))
        assert (await caller.get("/v1/keys")).status_code == 403
        assert [one["name"] for one in read_json(await caller.get("/v1/collections"))["collections"]] == ["default"]
        reader = provider.token(scope=["read"], waylore_collections="other default", waylore_labels=["red"])
        async with create_client(app, reader) as limited:
            read_json(await limited.post("/v1/collections/default/search", json={"query": "login"}))
            assert (await limited.get("/v1/collections/default/export")).status_code == 403
        async with create_client(app, provider.token(waylore_collections=["other"])) as stranger:
            assert (await stranger.get("/v1/collections/default")).status_code == 404
        async with create_client(app, create_token(of.store)) as holder:
            read_json(await holder.get("/v1/collections"))
    assert provider.requests == ["/.well-known/openid-configuration", "/keys"]


FORGED: dict[str, Callable[[Provider], str]] = {
    "another's key": lambda p: p.token(OTHER_RSA),
    "an unknown key": lambda p: p.token(OTHER_RSA, kid="two"),
    "no signature": lambda p: p.token(None, "none"),
    "the public key as a password": lambda p: p.token("x" * 64, "HS256"),
    "too late": lambda p: p.token(exp=time.time() - 60),
    "too early": lambda p: p.token(nbf=time.time() + 600),
    "never ending": lambda p: p.token(exp=None),
    "of nobody": lambda p: p.token(sub=None),
    "meant for others": lambda p: p.token(aud="other"),
    "of another provider": lambda p: p.token(iss="http://evil.example"),
    "without a scope": lambda p: p.token(scope="openid profile"),
    "without collections": lambda p: p.token(waylore_collections=None),
    "collections of no kind": lambda p: p.token(waylore_collections={"default": True}),
    "no token": lambda _: "a.b.c",
    "nothing": lambda _: ".",
}


async def test_invalid_tokens_are_refused(tmp_path: Path, provider: Provider) -> None:
    tokens = {name: forge(provider) for name, forge in FORGED.items()}
    found = await statuses(tmp_path, provider, *tokens.values())
    assert dict(zip(tokens, found, strict=True)) == dict.fromkeys(tokens, 401)
    assert provider.requests.count("/keys") == 1  # tokens with unknown keys do not cause more requests


async def test_other_signature_algorithms_work(tmp_path: Path, provider: Provider) -> None:
    provider.keys.append(_public(ECAlgorithm.to_jwk(CURVE.public_key()), "curve"))
    tokens = [provider.token(CURVE, "ES256", "curve"), provider.token(algorithm="PS384")]
    assert await statuses(tmp_path, provider, *tokens) == [200, 200]


async def test_unavailable_provider_gives_503_until_it_is_back(tmp_path: Path, provider: Provider) -> None:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer})
    provider.is_up = False
    async with start_app(of) as app, create_client(app, provider.token()) as caller:
        assert (await caller.get("/v1/collections")).status_code == 503
        async with create_client(app, create_token(of.store)) as holder:
            read_json(await holder.get("/v1/collections"))
        provider.is_up = True
        assert (await caller.get("/v1/collections")).status_code == 200
        provider.is_up = False
        assert (await caller.get("/v1/collections")).status_code == 200  # its keys are cached


async def test_tokens_are_refused_without_a_provider(tmp_path: Path, provider: Provider) -> None:
    async with (
        start_app(make_settings(tmp_path / "memory.waylore")) as app,
        create_client(app, provider.token()) as caller,
    ):
        assert (await caller.get("/v1/collections")).status_code == 401
    assert provider.requests == []


def test_provider_publishes_its_keys(provider: Provider) -> None:
    assert isinstance(RSA, RSAPrivateKey)
    with httpx.Client(trust_env=False, timeout=HANG_SECONDS) as caller:
        assert caller.get(f"{provider.issuer}/keys").json()["keys"][0]["kid"] == "one"
