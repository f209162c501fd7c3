"""Test `waylore mcp install`: the written files, the confirmation, and that no other settings are lost."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from waylore.surfaces.cli.app import app
from waylore.surfaces.mcp import clients

PLACES = {
    "claude": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": ("project/.mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": ("project/.vscode/mcp.json", "servers"),
}


def install(home: Path, *options: str, answer: str = "", **variables: str) -> Result:
    """Run the command in a folder of a user's home."""
    project = home / "project"
    project.mkdir(exist_ok=True)
    with chdir(project):
        env = {"HOME": str(home), "XDG_CONFIG_HOME": None, **variables}
        return CliRunner().invoke(app, ["mcp", "install", *options], input=answer, env=env)


def read_shown(done: Result) -> Any:
    """Return the JSON at the start of the output."""
    return json.JSONDecoder().raw_decode(done.stdout)[0]


def read_file(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


@pytest.mark.skipif(sys.platform != "linux", reason="Claude keeps its file elsewhere")
@pytest.mark.parametrize("client", clients.NAMES)
def test_each_client_has_its_settings_file(tmp_path: Path, client: clients.Name) -> None:
    done = install(tmp_path, "--client", client, "--label", "crew", "--read-only", "--yes")
    assert done.exit_code == 0, done.stderr
    place, key = PLACES[client]
    entry = read_file(tmp_path / place)[key]["waylore"]
    assert read_shown(done) == read_file(tmp_path / place)
    assert entry["args"][-5:] == ["mcp", "--text", "--label", "crew", "--read-only"]
    assert entry["env"] == {
        "WAYLORE_STORE": f"{tmp_path}/project/memory.waylore",
        "WAYLORE_COLLECTION": "default",
    }
    assert entry.get("type") == ("stdio" if client == "vscode" else None)


def test_written_entry_starts_a_server(tmp_path: Path) -> None:
    assert install(tmp_path, "--client", "cursor", "--store", "notes.waylore", "--yes").exit_code == 0
    entry = read_file(tmp_path / ".cursor/mcp.json")["mcpServers"]["waylore"]
    paths = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    asked = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "0"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "memory_add", "arguments": {"text": "The crew meets at nine."}},
        },
    ]
    done = subprocess.Popen(
        [entry["command"], *entry["args"]],
        cwd="/",
        env={**paths, **entry["env"], "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with done:
        assert done.stdin
        assert done.stdout
        for message in asked:
            done.stdin.write(json.dumps(message) + "\n")
        done.stdin.flush()
        done.stdout.readline()
        added = json.loads(done.stdout.readline())
        done.stdin.close()
    assert added["result"]["content"][0]["text"].startswith("Remembered as document ")
    assert "structuredContent" not in added["result"]
    assert (tmp_path / "project" / "notes.waylore").exists()


def test_other_settings_are_preserved(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    before = {
        "theme": "dark ☾",
        "mcpServers": {"other": {"command": "x", "env": {"A": "1"}}, "waylore": {"command": "old"}},
        "z": [1, None],
    }
    file.write_text(json.dumps(before), "utf-8")
    file.chmod(0o600)
    assert install(tmp_path, "--client", "cursor", "--yes").exit_code == 0
    after = read_file(file)
    assert after["mcpServers"].pop("waylore")["command"] != "old"
    assert before["mcpServers"].pop("waylore") == {"command": "old"}  # type: ignore[attr-defined]
    assert after == before
    assert list(after) == list(before)
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_file(file.with_name("mcp.json.bak"))["mcpServers"]["waylore"] == {"command": "old"}
    assert sorted(path.name for path in file.parent.iterdir()) == ["mcp.json", "mcp.json.bak"]


@pytest.mark.parametrize(("answer", "code", "is_written"), [("y\n", 0, True), ("n\n", 1, False), ("", 1, False)])
def test_entry_is_shown_and_confirmed_first(tmp_path: Path, answer: str, code: int, is_written: bool) -> None:
    done = install(tmp_path, "--client", "vscode", "--name", "notes", answer=answer)
    assert done.exit_code == code
    assert list(read_shown(done)["servers"]) == ["notes"]
    assert (tmp_path / "project/.vscode/mcp.json").exists() == is_written


def test_print_writes_nothing(tmp_path: Path) -> None:
    done = install(tmp_path, "--client", "claude-code", "--print", "--uvx", WAYLORE_EMBEDDING_PROVIDER="fastembed")
    entry = read_shown(done)["mcpServers"]["waylore"]
    assert [entry["command"], *entry["args"]] == ["uvx", "--from", "waylore[local,mcp]", "waylore", "mcp", "--text"]
    assert not (tmp_path / "project/.mcp.json").exists()


@pytest.mark.parametrize("content", ["// mine\n{}", "[]", '{"mcpServers": []}'])
def test_unreadable_file_is_not_changed(tmp_path: Path, content: str) -> None:
    (tmp_path / "project").mkdir()
    file = tmp_path / "project" / ".mcp.json"
    file.write_text(content, "utf-8")
    done = install(tmp_path, "--client", "claude-code", "--yes")
    assert done.exit_code == 2
    assert ".mcp.json" in done.stderr
    assert file.read_text("utf-8") == content


def test_settings_are_written_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "waylore.toml").write_text(
        'collection = "crew"\n[embedding]\nprovider = "model2vec"\npath = "potion"\n', "utf-8"
    )
    own = tmp_path / ".config" / "waylore" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('single_valued = ["works_at"]\n', "utf-8")
    secrets = {"WAYLORE_STORE": "postgresql://me:hunter2@db/waylore", "WAYLORE_EXTRACTION_API_KEY": "hunter3"}
    done = install(tmp_path, "--client", "claude-code", "--yes", **secrets)
    assert read_file(tmp_path / "project/.mcp.json")["mcpServers"]["waylore"]["env"] == {
        "WAYLORE_COLLECTION": "crew",
        "WAYLORE_EMBEDDING_PROVIDER": "model2vec",
        "WAYLORE_EMBEDDING_PATH": f"{tmp_path}/project/potion",
    }
    assert "hunter" not in done.stdout + done.stderr
    assert all(f"{variable} is secret" in done.stderr for variable in secrets)
