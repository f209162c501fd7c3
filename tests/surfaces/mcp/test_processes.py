"""Test `waylore mcp` as a process with the SDK's client: stdio, HTTP, wrong requests and signals."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from tools.waiting import HANG_SECONDS, wait_until

from surfaces.agents import READING, TOOLS, call, call_wrongly, fill, get_text, run_agent
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

COMMAND = ["-m", "waylore.surfaces.cli.__main__", "mcp"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}
NOISY = """
import os, sys, warnings, anyio
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.surfaces.mcp.server import create_server, serve_stdio
from waylore.surfaces.tools.tools import Agent

class Noisy(HashingEmbedder):
    def embed_query(self, text):
        print("loading the model ...")
        warnings.warn("this model is old")
        os.write(1, b"a library in C says hello\\n")
        return super().embed_query(text)

with Waylore.open(sys.argv[1], embedder=Noisy(quiet=True)) as memory:
    anyio.run(serve_stdio, create_server(lambda _: Agent(memory)))
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Waylore.open(tmp_path / "memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        fill(memory)
    return tmp_path / "memory.waylore"


def environment(store: Path) -> dict[str, str]:
    paths = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        **paths,
        "HOME": str(store.parent),
        "WAYLORE_STORE": str(store),
        "WAYLORE_EMBEDDING_PROVIDER": "hashing",
    }


def make_stdio_parameters(store: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[*COMMAND, *options], env=environment(store), cwd=store.parent
    )


@contextmanager
def process(store: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process with pipes, and kill it at the end."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [sys.executable, *arguments], env=environment(store), cwd=store.parent, text=True, **pipes
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def send(started: subprocess.Popen[str], method: str, number: int | None = None, **params: Any) -> None:
    assert started.stdin
    message = {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
    started.stdin.write(json.dumps({k: v for k, v in message.items() if v is not None}) + "\n")
    started.stdin.flush()


def read_message(started: subprocess.Popen[str]) -> Any:
    assert started.stdout
    return json.loads(started.stdout.readline())


def greet(started: subprocess.Popen[str]) -> None:
    send(started, "initialize", 1, **HELLO)
    assert read_message(started)["result"]["serverInfo"]["name"] == "waylore"
    send(started, "notifications/initialized")


# -- stdio ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agent_can_use_stdio(store: Path, mode: str) -> None:
    async with Client(make_stdio_parameters(store), mode=mode) as agent:
        await run_agent(agent)


async def test_two_processes_share_a_file(store: Path) -> None:
    async with Client(make_stdio_parameters(store)) as one, Client(make_stdio_parameters(store)) as other:
        async with anyio.create_task_group() as both:
            both.start_soon(run_agent, one, "Bo takes over the session service in May.")
            both.start_soon(run_agent, other, "Ida moves to Tromsø in June.")
        added = await call(one, "memory_add", text="The harbour closes in winter.")
        assert (await call(other, "memory_get", id=added["document_id"]))["text"]


@pytest.mark.full
async def test_labels_and_read_only_are_options(store: Path) -> None:
    with Waylore.open(store, embedder=HashingEmbedder(quiet=True)) as memory:
        hidden = memory.add("Mara earns forty crowns an hour.", labels=["office"])
    async with Client(make_stdio_parameters(store, "--label", "crew", "--read-only")) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == READING
        await call_wrongly(agent, "memory_get", id=hidden)
    async with Client(make_stdio_parameters(store, "-l", "crew", "-l", "office")) as agent:
        assert (await call(agent, "memory_get", id=hidden))["document_id"] == hidden


async def test_research_tools_are_listed_on_request(store: Path) -> None:
    async with Client(make_stdio_parameters(store, "--deep-research")) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == [*TOOLS, "search", "fetch"]


async def test_agent_can_use_text_alone(store: Path) -> None:
    async with Client(make_stdio_parameters(store, "--text")) as agent:
        listed = (await agent.list_tools()).tools
        assert all(tool.output_schema is None for tool in listed)
        found = await agent.call_tool("memory_search", {"query": "Who owns the session service?"})
        [mark] = re.findall(r"^\[(\w+)\] Rota · docs/rota\.md$", get_text(found), re.MULTILINE)
        read = await agent.call_tool("memory_get", {"id": mark})
        assert "Mara owns the session service." in get_text(read)
        [document] = re.findall(r"^part of document (\w+), ", get_text(read), re.MULTILINE)
        whole = await agent.call_tool("memory_get", {"id": document})
        gone = await agent.call_tool("memory_forget", {"documents": [mark]})
        assert get_text(gone).startswith("Forgotten: 1 documents")
        assert [each.structured_content for each in (found, read, whole, gone)] == [None] * 4
        assert "that you may see" in await call_wrongly(agent, "memory_get", id=mark)


async def test_store_error_is_an_answer_to_the_agent(store: Path) -> None:
    async with Client(make_stdio_parameters(store, "--store", str(store.parent / "no" / "such.waylore"))) as agent:
        assert "such.waylore" in await call_wrongly(agent, "memory_search", query="login")


def test_stdout_has_only_the_protocol(store: Path) -> None:
    with process(store, "-c", NOISY, str(store)) as started:
        greet(started)
        send(started, "tools/call", 2, name="memory_search", arguments={"query": "login"})
        assert read_message(started)["result"]["structuredContent"]["hits"]
        rest, log = started.communicate(timeout=HANG_SECONDS)
        assert (started.returncode, rest) == (0, "")
        assert all(noise in log for noise in ("loading the model", "this model is old", "in C says hello"))


def test_nonsense_on_stdin_does_not_end_the_server(store: Path) -> None:
    with process(store, *COMMAND) as started:
        greet(started)
        assert started.stdin
        started.stdin.write('nonsense\n[1, 2\n\n{"jsonrpc": "2.0"}\n{"id": 7}\n')
        send(started, "tools/call", 2, name="memory_search", arguments="login")
        send(started, "tools/call", 3, name="memory_search", arguments={"query": "login"})
        answers = {2: read_message(started), 3: None}
        while answers[3] is None:
            answer = read_message(started)
            answers[answer["id"]] = answer
        assert answers[3]["result"]["structuredContent"]["hits"]


def test_disconnected_client_ends_the_server(store: Path) -> None:
    with process(store, *COMMAND) as started:
        greet(started)
        send(started, "tools/call", 2, name="memory_add", arguments={"text": "The harbour closes in winter."})
        assert started.stdin
        started.stdin.close()
        assert started.wait(HANG_SECONDS) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_server_and_keeps_memories(store: Path, number: signal.Signals) -> None:
    with process(store, *COMMAND) as started:
        greet(started)
        send(started, "tools/call", 2, name="memory_add", arguments={"text": "The harbour closes in winter."})
        added = read_message(started)["result"]["structuredContent"]["document_id"]
        started.send_signal(number)
        assert started.wait(HANG_SECONDS) == -number
    with Waylore.open(store, embedder=HashingEmbedder(quiet=True)) as memory:
        assert memory.get(added).passages[0].text == "The harbour closes in winter."


def test_wrong_setting_is_reported_at_once(store: Path) -> None:
    wrong = {**environment(store), "WAYLORE_EMBEDDING_PROVIDER": "magic"}
    done = subprocess.run(
        [sys.executable, *COMMAND], env=wrong, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "embedding.provider" in done.stderr


# -- HTTP ----------------------------------------------------------------------------------------------


@contextmanager
def start_http(store: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a server. Yield its address and its process when it accepts connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(store, *COMMAND, "--http", "--port", str(port), *options) as started:
        wait_until(lambda: started.poll() is not None or is_open(port))
        yield f"http://127.0.0.1:{port}/mcp", started


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_two_agents_use_http_at_once(store: Path) -> None:
    with start_http(store) as (url, started):
        async with Client(url) as one, Client(url, mode="legacy") as other, anyio.create_task_group() as both:
            both.start_soon(run_agent, one, "Bo takes over the session service in May.")
            both.start_soon(run_agent, other, "Ida moves to Tromsø in June.")
        started.terminate()
        started.wait(HANG_SECONDS)


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"query": "login"}},
}


def test_wrong_requests_are_refused(store: Path) -> None:
    with start_http(store) as (url, _), httpx.Client(headers=HEADERS, timeout=HANG_SECONDS) as web:
        assert web.post(url, json=CALL, headers={"host": "evil.example"}).status_code == 421
        assert web.post(url, json=CALL, headers={"origin": "https://evil.example"}).status_code == 403
        assert web.post(url, json=CALL, headers={"origin": url.removesuffix("/mcp")}).status_code == 200
        assert web.post(url, content=b"{").status_code == 400
        assert web.post(url, content=b"x" * 5_000_000).status_code == 413
        assert web.post(url.removesuffix("/mcp") + "/other", json=CALL).status_code == 404
        for method in ("GET", "DELETE", "PUT"):
            assert web.request(method, url).status_code == 405
        address = ("127.0.0.1", int(url.split(":")[2].split("/")[0]))
        for said in (
            b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 900\r\n\r\n{",
            b"\x00\xff" * 99,
        ):
            with socket.create_connection(address) as rude:
                rude.sendall(said)
        answer = web.post(url, json=CALL).json()
        assert answer["result"]["structuredContent"]["hits"]


def test_disconnected_http_clients_do_no_harm(store: Path) -> None:
    with start_http(store) as (url, started):
        body = json.dumps(CALL).encode()
        lines = [b"POST /mcp HTTP/1.1", b"host: 127.0.0.1", *(f"{k}: {v}".encode() for k, v in HEADERS.items())]
        head = b"\r\n".join([*lines, f"content-length: {len(body)}".encode(), b"", b""])
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))) as leaving:
                leaving.sendall(head + body)
        assert httpx.post(url, json=CALL, headers=HEADERS, timeout=HANG_SECONDS).status_code == 200
        started.terminate()
        started.wait(HANG_SECONDS)
        assert started.stderr
        assert "Traceback" not in started.stderr.read()


def test_store_error_is_printed_start_http(store: Path) -> None:
    with start_http(store, "--store", str(store.parent / "no" / "such.waylore")) as (_, started):
        assert started.wait(HANG_SECONDS) == 4
        assert started.stderr
        assert "such.waylore" in started.stderr.read()


def test_other_host_names_must_be_allowed(store: Path) -> None:
    with start_http(store, "--host", "0.0.0.0", "--allow-host", "memory.example") as (url, started):
        for host, status in (("memory.example", 200), ("memory.example:80", 200), ("evil.example", 421)):
            assert (
                httpx.post(url, json=CALL, headers={**HEADERS, "host": host}, timeout=HANG_SECONDS).status_code
                == status
            )
        started.terminate()
        assert started.stderr
        assert "everyone who can reach this address can use it" in started.stderr.read()
