"""Every surface says what was left out of what it added, and none stores it."""

import json
from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from surfaces.serving import make_settings, open_client, read_json
from unit.indexing.secrets.samples import SECRETS
from waylore import Waylore
from waylore.surfaces.tools.arguments import Add, Remember
from waylore.surfaces.tools.tools import Agent, memory_add, memory_remember

TOKEN = SECRETS[2][2]
TEXT = f"The token {TOKEN} is new."
LEFT_OUT = {"github token": 1}
NOTES = "/v1/collections/default"


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text(TEXT)
    (tmp_path / "a.jsonl").write_text(json.dumps(["Ann", "has", TOKEN]))
    run("init", "--embedder", "none")
    assert "left out: 1 × github token" in run("add", "--text", TEXT)
    assert "left out: 1 × github token" in run("add", "a.md")
    assert "left out: 1 × github token" in run("remember", stdin=TEXT)
    assert "left out: 1 × github token" in run("import", "a.jsonl", "--format", "triples")
    assert run_json("add", "--text", f"{TEXT} Again.")["left_out"] == LEFT_OUT
    assert "left out" not in run("add", "--text", "Nothing secret.")
    monkeypatch.setenv("WAYLORE_SECRETS_SCRUB", "false")
    assert run_json("add", "--text", f"{TEXT} Kept.")["left_out"] == {}
    assert TOKEN in run("search", "Kept", "--method", "keyword")


def test_one_collection_keeps_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("init", "--embedder", "none")
    monkeypatch.setenv("WAYLORE_SECRETS_KEEP_IN", "vault, safe")
    for collection, left_out in (("vault", {}), ("safe", {}), ("default", LEFT_OUT)):
        assert run_json("add", "--text", TEXT, "--collection", collection)["left_out"] == left_out
        assert (TOKEN in run("search", "token", "--collection", collection)) == (not left_out)


async def test_one_collection_of_a_service_keeps_secrets(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "memory.waylore", secrets={"keep_in": ["vault"]})
    async with open_client(settings, scope="admin") as client:
        for collection, left_out in (("vault", {}), ("default", LEFT_OUT)):
            await client.put(f"/v1/collections/{collection}", json={})
            added = await client.post(f"/v1/collections/{collection}/documents", json={"text": TEXT})
            assert read_json(added)["left_out"] == left_out


async def test_http(tmp_path: Path) -> None:
    async with open_client(make_settings(tmp_path / "memory.waylore"), scope="write") as client:
        fact = {"subject": "Ann", "predicate": "has", "object": TOKEN}
        bodies = {
            "documents": {"text": TEXT},
            "facts": {"facts": [fact]},
            "remember": {"messages": [{"role": "user", "content": TEXT}]},
        }
        for route, body in bodies.items():
            assert read_json(await client.post(f"{NOTES}/{route}", json=body))["left_out"] == LEFT_OUT
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("memory.waylore*"))
    assert TOKEN.encode() not in stored
    assert b"[left out: github token]" in stored


def test_tools(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        agent = Agent(memory)
        for answer in (memory_add(agent, Add(text=TEXT)), memory_remember(agent, Remember(text=TEXT))):
            assert answer.left_out == LEFT_OUT
            assert "Left out: 1 × github token." in answer.to_text()
