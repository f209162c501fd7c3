"""Valid and forged tokens of an OpenID provider, which is a real server on loopback."""

import json
import socket
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from fastapi import FastAPI
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tools.waiting import HANG_SECONDS

from surfaces.serving import create_client, create_token, make_settings, read_json, start_app
from waylore.errors import StoreUnavailable
from waylore.service.callers import Unauthenticated
from waylore.service.provider_keys import ProviderKeys

NULL = object()  # stands for a claim that is null; None leaves a claim out
RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
CURVE = ec.generate_private_key(ec.SECP256R1())


class Provider:
    """An OpenID provider that records the requests that it gets."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.keys = [_public(RSAAlgorithm.to_jwk(RSA.public_key()), "one")]
        self.is_up = True
        self.keys_url = ""
        self.is_asked, self.may_answer = Event(), Event()
        self.may_answer.set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests.append(self.path)
                provider.is_asked.set()
                provider.may_answer.wait(30)
                if self.path.startswith("/authorize?"):
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(parse_qs(urlsplit(self.path).query)))
                    self.end_headers()
                    return
                body = provider._respond(self.path) if provider.is_up else None
                with suppress(OSError):  # the client may have given up
                    self.send_response(200 if body else 503)
                    self.send_header("Content-Type", "application/json")
                    self.end_headers()
                    self.wfile.write(json.dumps(body).encode())

            def do_POST(self) -> None:
                sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                token = provider.exchange({name: values[0] for name, values in sent.items()})
                self.send_response(200 if token else 400)
                self.end_headers()
                answer = {"access_token": token, "id_token": "opaque"} if token else {"error": "invalid_grant"}
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the library's)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def _respond(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer,
                "jwks_uri": self.keys_url or f"{self.issuer}/keys",
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
            }
        return {"keys": self.keys} if path == "/keys" else None

    def authorize(self, asked: dict[str, list[str]]) -> str:
        """Let everybody in: return the address to go back to, with a code that is good for one exchange."""
        code = f"code-{len(self.codes)}"
        self.codes[code] = {name: values[0] for name, values in asked.items()}
        return f"{asked['redirect_uri'][0]}?{urlencode({'code': code, 'state': asked['state'][0]})}"

    def exchange(self, sent: dict[str, str]) -> str:
        """Return a token for a code, if it was asked for with the hash of this word; else nothing."""
        asked = self.codes.pop(sent.get("code", ""), {})
        hashed = urlsafe_b64encode(sha256(sent.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        same = ("client_id", "redirect_uri")
        is_right = asked.get("code_challenge") == hashed and all(asked.get(name) == sent.get(name) for name in same)
        return self.token() if is_right and sent["grant_type"] == "authorization_code" else ""

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
        payload = {name: None if value is NULL else value for name, value in payload.items()}
        return jwt.encode(payload, key_, algorithm, headers={"kid": kid})

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Accept requests and answer none while the block runs."""
        self.is_asked.clear()
        self.may_answer.clear()
        try:
            yield
        finally:
            self.may_answer.set()

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
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer, "labels": ""})
    async with start_app(of) as app:
        found = []
        for token in tokens:
            async with create_client(app, token) as caller:
                found.append((await caller.get("/v1/collections/default/stats")).status_code)
        return found


async def test_token_grants_what_its_claims_say(tmp_path: Path, provider: Provider) -> None:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer})
    async with start_app(of) as app, create_client(app, provider.token(waylore_labels="red")) as caller:
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


CLAIMS: dict[str, tuple[Any, set[str]]] = {
    "absent": (None, {"public"}),
    "null": (NULL, {"public"}),
    "empty list": ([], {"public"}),
    "empty text": ("", {"public"}),
    "blank text": ("  ", {"public"}),
    "number": (7, {"public"}),
    "truth value": (True, {"public"}),
    "object": ({"hr": True}, {"public"}),
    "list of numbers": ([7, None], {"public"}),
    "list in a list": ([["hr"]], {"public"}),
    "list": (["hr"], {"public", "hr"}),
    "words": ("red hr", {"public", "hr"}),
}


async def add_documents(app: FastAPI, token: str) -> None:
    async with create_client(app, token) as owner:
        for title, labels in (("public", []), ("hr", ["hr"])):
            body = {"text": f"It is {title}.", "title": title, "labels": labels}
            read_json(await owner.post("/v1/collections/default/documents", json=body))


async def test_malformed_claim_of_labels_shows_public_documents_only(tmp_path: Path, provider: Provider) -> None:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer})
    seen: dict[str, set[str]] = {}
    async with start_app(of) as app:
        await add_documents(app, create_token(of.store))
        for name, (claim, _) in CLAIMS.items():
            async with create_client(app, provider.token(waylore_labels=claim)) as caller:
                page = read_json(await caller.get("/v1/collections/default/documents"))
                seen[name] = {document["title"] for document in page["documents"]} - {""}
                written = await caller.post("/v1/collections/default/facts", json={"facts": [["a", "b", name]]})
                assert written.status_code == (201 if "hr" in seen[name] else 403)
    assert seen == {name: expected for name, (_, expected) in CLAIMS.items()}


async def test_empty_setting_gives_all_labels(tmp_path: Path, provider: Provider) -> None:
    of = make_settings(tmp_path / "memory.waylore", oidc={"issuer": provider.issuer, "labels": ""})
    async with start_app(of) as app, create_client(app, provider.token(waylore_labels=["red"])) as caller:
        await add_documents(app, create_token(of.store))
        assert len(read_json(await caller.get("/v1/collections/default/documents"))["documents"]) == 2


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


# -- a provider that is slow, gone or hostile ----------------------------------------------------------


def find_error(keys: ProviderKeys, id_: str) -> type[Exception] | None:
    try:
        keys.find(id_)
    except (Unauthenticated, StoreUnavailable) as error:
        return type(error)
    return None


def make_due(keys: ProviderKeys) -> None:
    """Let the last fetch be long ago."""
    keys._tried = float("-inf")


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "http://keys.example/keys", "ftp://127.0.0.1/keys", "gopher://x", "//127.0.0.1/k"]
)
def test_keys_come_from_https_or_loopback_only(provider: Provider, address: str) -> None:
    provider.keys_url = address
    with pytest.raises(StoreUnavailable, match="jwks_uri must begin with https"):
        ProviderKeys(provider.issuer).find("one")
    assert provider.requests == ["/.well-known/openid-configuration"]


async def test_long_token_is_refused_unread(tmp_path: Path, provider: Provider) -> None:
    assert await statuses(tmp_path, provider, provider.token(x="x" * 5_000), provider.token(x="x" * 6_000)) == [
        200,
        401,
    ]


def test_one_fetch_runs_for_all_and_nobody_else_waits(provider: Provider) -> None:
    keys = ProviderKeys(provider.issuer)
    keys.find("one")
    make_due(keys)
    with provider.hold(), ThreadPoolExecutor(1) as thread:
        fetching = thread.submit(find_error, keys, "two")
        assert provider.is_asked.wait(30)
        unknown = [find_error(keys, "two") for _ in range(20)]
        assert not fetching.done()
        assert find_error(keys, "one") is None  # known keys are used meanwhile
    assert unknown == [Unauthenticated] * 20
    assert fetching.result(30) in (Unauthenticated, StoreUnavailable)
    assert provider.requests.count("/.well-known/openid-configuration") == 2


@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\nx: "])
def test_fetch_ends_after_three_seconds(sends: bytes) -> None:
    """Check that a server that answers nothing, or one byte from time to time, cannot hold the fetch."""
    is_over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.sendall(sends)
                while not is_over.wait(0.3):
                    if sends:
                        connection.sendall(b"x")

        dripping = Thread(target=drip, daemon=True)
        dripping.start()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no answer in 3 seconds"):
            ProviderKeys(f"http://127.0.0.1:{listener.getsockname()[1]}").find("one")
        assert time.monotonic() - began > 2  # and it ended, while the server sends on
        is_over.set()
        dripping.join()


def test_answer_of_provider_has_a_maximum_size(provider: Provider) -> None:
    provider.keys.append({"kty": "x" * 2_000_000})
    with pytest.raises(StoreUnavailable, match="more than 1000000 bytes"):
        ProviderKeys(provider.issuer).find("one")


def test_old_keys_are_used_for_a_day(provider: Provider) -> None:
    keys = ProviderKeys(provider.issuer)
    keys.refresh()
    provider.is_up = False
    make_due(keys)
    with pytest.raises(StoreUnavailable):
        keys.refresh()
    keys._fetched = time.monotonic() - 23 * 3_600
    assert find_error(keys, "one") is None
    keys._fetched = time.monotonic() - 25 * 3_600
    assert find_error(keys, "one") is StoreUnavailable


def test_removed_key_is_not_used_after_a_refresh(provider: Provider) -> None:
    keys = ProviderKeys(provider.issuer)
    keys.refresh()
    provider.keys[0]["kid"] = "two"
    keys.refresh()  # too early
    assert find_error(keys, "one") is None
    make_due(keys)
    keys.refresh()
    assert find_error(keys, "one") is Unauthenticated
    assert find_error(keys, "two") is None
