"""One caller, or a hung provider, does not stop a running service for other callers.

Each test measures the searches of another caller before and during the attack. The machine may be busy, so the
time before the attack counts too.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import jwt
import numpy as np
import psutil
import pytest

from surfaces.serving import Served, create_token, read_json, start_service
from waylore.engine.waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

NOTES = "/v1/collections/default"
IDLE_SEARCHES = 30
NO_PROXY: dict[str, Any] = {"trust_env": False, "verify": False}  # and no certificates, which take long to load
Attack = Callable[[httpx.AsyncClient, int], Awaitable[object]]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.waylore"
    with Waylore.open(path, embedder=HashingEmbedder(quiet=True)) as memory:
        for number in range(40):
            memory.add(f"Mara Lind owns part {number} of the login. The login needs Sessions and part {number + 1}.")
    return path


def make_headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}


def open_caller(service: Served, token: str) -> httpx.Client:
    return httpx.Client(base_url=service.url, headers=make_headers(token), timeout=60, **NO_PROXY)


def search(service: Served, caller: httpx.Client, number: int) -> float:
    """Return the processor seconds of the service during a search that no cache can answer."""
    began = read_processor_seconds(service)
    read_json(caller.post(f"{NOTES}/search", json={"query": f"Who owns part {number} of the login? {number}"}))
    return read_processor_seconds(service) - began


def check_ready(service: Served, caller: httpx.Client) -> float:
    """Return the processor seconds of the service until `/readyz` reported that all is well."""
    began = read_processor_seconds(service)
    assert read_json(caller.get("/readyz"))["store"] == "ok"
    return read_processor_seconds(service) - began


def read_processor_seconds(service: Served) -> float:
    """Return the processor time of all threads of a service, which other programs do not change."""
    used = psutil.Process(service.process.pid).cpu_times()
    return used.user + used.system


@contextmanager
def run_attack(service: Served, token: str, attack: Attack, number: int) -> Iterator[list[Any]]:
    """Send the requests of an attack at once, from one thread, and collect the results."""
    results: list[Any] = []

    async def run() -> None:
        options: dict[str, Any] = {"limits": httpx.Limits(max_connections=number), "timeout": 120, **NO_PROXY}
        async with httpx.AsyncClient(base_url=service.url, headers=make_headers(token), **options) as client:
            results.extend(await asyncio.gather(*(attack(client, each) for each in range(number))))

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    time.sleep(0.3)
    yield results
    thread.join()


def measure_during(
    service: Served, store: Path, attack: Attack, *, token: str, number: int, seconds: float
) -> list[Any]:
    """Check that other callers are answered during an attack, within a second of work, and return its results.

    The work is processor time of the service, so that a busy machine does not count.
    """
    with open_caller(service, create_token(store, scope="read")) as caller:
        idle = [search(service, caller, -n) for n in range(1, IDLE_SEARCHES + 1)]
        busy, ready, until = list[float](), list[float](), time.monotonic() + seconds
        with run_attack(service, token, attack, number) as results:
            while time.monotonic() < until:
                busy.append(search(service, caller, len(busy)))
                ready.append(check_ready(service, caller))
    assert len(busy) > 3
    before, during = np.percentile(idle, 99), np.percentile(busy, 99)
    print(f"searches: {before:.2f} s before, {during:.2f} s during the attack; /readyz {max(ready):.2f} s")
    assert during < 1 + 4 * before
    assert max(ready) < 2 + 4 * before
    return results


# -- a provider that hangs -----------------------------------------------------------------------------


@pytest.fixture
def hung_provider() -> Iterator[str]:
    """Accept connections and never answer."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:

        def accept() -> None:
            while True:
                try:
                    taken.append(listener.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    for each in taken:
        each.close()


@pytest.mark.full
def test_hung_provider_does_not_delay_callers_with_keys(store: Path, tmp_path: Path, hung_provider: str) -> None:
    made_up = jwt.encode({"iss": hung_provider, "sub": "x"}, "x" * 32, "HS256", headers={"kid": "unknown"})

    async def attack(client: httpx.AsyncClient, _: int) -> set[int]:
        return {(await client.get("/v1/collections")).status_code for _ in range(4)}

    with start_service(store, tmp_path, WAYLORE_OIDC_ISSUER=hung_provider) as service:
        results = measure_during(service, store, attack, token=made_up, number=24, seconds=10)
        with open_caller(service, service.token) as caller:
            assert read_json(caller.get("/readyz"))["provider"] == "unreachable"
    assert set[int]().union(*results) <= {401, 503}
    assert any(401 in each for each in results)


# -- questions over MCP --------------------------------------------------------------------------------


def test_long_questions_over_mcp_do_not_delay_other_callers(store: Path, tmp_path: Path) -> None:
    question = " ".join(f"Name{n} login{n % 7}" for n in range(10_000))[:7_900]

    async def attack(client: httpx.AsyncClient, number: int) -> str:
        call = {"name": "memory_search", "arguments": {"query": f"{question} {number}"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return (await client.post("/mcp", json=body)).text

    with start_service(store, tmp_path) as service:
        token = create_token(store, scope="read")
        results = measure_during(service, store, attack, token=token, number=60, seconds=8)
    assert all("jsonrpc" in each for each in results)
    assert any("requests of yours are waiting" in each for each in results)


# -- writes that wait ----------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "Idempotency-Key"])
def test_waiting_writes_do_not_delay_searches(store: Path, tmp_path: Path, word: str) -> None:
    other_process = apsw.Connection(str(store))
    other_process.set_busy_timeout(30_000)
    release = threading.Timer(8, lambda: other_process.execute("ROLLBACK"))

    async def attack(client: httpx.AsyncClient, number: int) -> int:
        if not number:
            other_process.execute("BEGIN IMMEDIATE")
            release.start()
        body, headers = {"text": f"Note {number}.", "labels": ["red"]}, {word: f"note-{number}"} if word else {}
        return (await client.post(f"{NOTES}/documents", json=body, headers=headers)).status_code

    with closing(other_process), start_service(store, tmp_path) as service:
        token = create_token(store, scope="write", labels=["red"])
        results = measure_during(service, store, attack, token=token, number=16, seconds=7)
        release.join()
    assert results == [201] * 16


# -- uploads that take long ----------------------------------------------------------------------------


@pytest.mark.full
def test_slow_uploads_do_not_delay_other_callers(store: Path, tmp_path: Path) -> None:
    slow = "".join(f"Mara Lind{n} works at Acme {n} Group. Acme {n} Group owns Part {n}.\n\n" for n in range(20_000))
    names = ("red", "blue", "green")
    tokens = {name: create_token(store, scope="write", collections=[name]) for name in names}

    async def attack(client: httpx.AsyncClient, number: int) -> str:
        address, headers = f"/v1/collections/{names[number]}", make_headers(tokens[names[number]])
        job = read_json(await client.put(f"{address}/uploads/slow.md", content=slow.encode(), headers=headers))
        return f"{address}/jobs/{job['id']}"

    with start_service(store, tmp_path) as service, service.client() as admin:
        for name in names:
            read_json(admin.put(f"/v1/collections/{name}", json={}))
        attackers = measure_during(service, store, attack, token="", number=2, seconds=6)
        with open_caller(service, tokens["green"]) as caller:
            job = read_json(caller.put("/v1/collections/green/uploads/a.md", content=b"Mara Lind owns the login."))
            deadline = time.monotonic() + 60
            while read_json(caller.get(f"/v1/collections/green/jobs/{job['id']}"))["state"] != "done":
                assert time.monotonic() < deadline
                time.sleep(0.2)
        assert [read_json(admin.get(each))["state"] for each in attackers] == ["running", "running"]
        service.process.kill()  # the rest of the slow files does not matter
