"""Recipes for agents: what the page shows is right, and with real packages the agents remember and search.

The packages are not part of the environment of CI; `just test -m full` and `python -m tools.recipes` install them.
"""

import ast
import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tools.recipes.model import read_tools, read_turns, serve_model
from tools.recipes.run import PAGE, RECIPES, TALK, prepare_folder, read_files, run_recipe
from tools.recipes.script import ToolUse, decide

import waylore
from surfaces.agents import get_text

ENVIRONMENTS = Path(__file__).parents[2] / "build" / "recipes"
FILES = [".mcp.json", ".cursor/mcp.json"]
SEARCH_TOOL = {"type": "function", "function": {"name": "memory_search"}}


def read_imports(program: str) -> dict[str, list[str]]:
    """Return the names that a program imports from each module."""
    nodes = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.ImportFrom)]
    return {str(node.module): [alias.name for alias in node.names] for node in nodes}


def read_server(program: str) -> dict[str, Any]:
    """Return how a program starts the server: the dict `WAYLORE`."""
    values = [node.value for node in ast.parse(program).body if ast.unparse(node).startswith("WAYLORE = ")]  # type: ignore[attr-defined]
    [server] = map(ast.literal_eval, values)
    assert isinstance(server, dict)
    return server


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.is_program])
def test_a_program_is_on_the_page_and_uses_names_that_exist(name: str) -> None:
    recipe = RECIPES[name]
    program = read_files()[recipe.file]
    imported = read_imports(program)
    assert all(hasattr(waylore, each) for each in imported.get("waylore", []))
    assert ("waylore" in imported) == recipe.needs_waylore
    if not recipe.needs_waylore:
        written = json.loads(read_files()[".mcp.json"])["mcpServers"]["waylore"]
        assert read_server(program) == {key: written[key] for key in ("command", "args")}


@pytest.mark.parametrize("name", RECIPES)
def test_the_page_names_the_versions_and_packages_that_are_tried(name: str) -> None:
    page = PAGE.read_text("utf-8")
    for package in RECIPES[name].packages:
        distribution, version = re.split("==|(?<!^)@", package)
        title = {"@anthropic-ai/claude-code": "Claude Code"}.get(distribution, distribution.partition("[")[0])
        assert f"{title} {version}" in page
        assert RECIPES[name].file in page
        if RECIPES[name].is_program:
            assert re.search(rf"^pip install .*{re.escape(distribution)}", page, re.MULTILINE)


@pytest.mark.full
@pytest.mark.parametrize("file", FILES)
async def test_a_client_starts_the_server_of_a_file(tmp_path: Path, file: str) -> None:
    """Read the file as the client does, start the server from its folder, and remember and search in two sessions."""
    env = prepare_folder(tmp_path)
    text = (tmp_path / file).read_text("utf-8").replace("${workspaceFolder}", str(tmp_path))
    entry = json.loads(text)["mcpServers"]["waylore"]
    folder = tmp_path if file == ".mcp.json" else Path("/")  # Claude Code starts servers in the folder of the project
    variables = {name: value for name, value in env.items() if name in {"PATH", "HOME", "PYTHONPATH"}} | entry["env"]
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=variables, cwd=folder)
    async with Client(server) as client:
        await client.call_tool("memory_remember", {"text": "I am allergic to nettles."})
    async with Client(server) as client:
        for question, word in TALK[1:]:
            assert word in get_text(await client.call_tool("memory_search", {"query": question}))


def test_the_file_is_what_the_command_writes(tmp_path: Path) -> None:
    """`waylore mcp install` writes the entry of the page, with the command and the path of this machine."""
    env = prepare_folder(tmp_path)
    command = ["waylore", "mcp", "install", "--client", "claude-code", "--user", "noor", "--print"]
    printed = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True).stdout
    [shown], [written] = (json.loads(text)["mcpServers"].values() for text in (read_files()[".mcp.json"], printed))
    assert written["args"][-4:] == shown["args"]
    assert written["env"] == {**shown["env"], "WAYLORE_STORE": str(tmp_path / "memory.waylore")}


# -- the scripted model ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": [{"text": "Who?"}]}]},
        {"instructions": "Be kind.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Who?"}]}]},
        {"instructions": "Be kind.", "input": "Who?"},
    ],
)
def test_the_script_searches_for_a_question(body: dict[str, Any]) -> None:
    assert decide(read_turns(body), ["memory_search"]) == ToolUse("memory_search", '{"query": "Who?"}')
    assert decide(read_turns(body), []) == "Be kind."


def test_the_script_remembers_and_answers_with_results() -> None:
    said = read_turns({"input": "Remember that I am here."})
    assert decide(said, ["memory_search", "memory_remember"]) == ToolUse("memory_remember", '{"text": "I am here."}')
    output = {"type": "function_call_output", "call_id": "call_1", "output": "remembered"}
    called = {"type": "function_call", "name": "memory_remember", "arguments": "{}"}
    assert decide(read_turns({"input": [called, output]}), ["memory_search"]) == "remembered"
    assert read_tools({"tools": [SEARCH_TOOL, {"type": "function", "name": "a"}]}) == ["memory_search", "a"]


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_the_model_is_served(path: str) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Who?"}], "input": "Who?", "tools": [SEARCH_TOOL]}
    with serve_model() as model:
        request = urllib.request.Request(f"{model.url}/{path}", json.dumps(asked).encode())
        with urllib.request.urlopen(request) as answer:
            assert "memory_search" in answer.read().decode()
        assert model.called == ["memory_search"]


@pytest.mark.full  # installs packages that CI does not have
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RECIPES)
def test_an_agent_remembers_and_searches(tmp_path: Path, name: str) -> None:
    answers = run_recipe(name, ENVIRONMENTS, tmp_path)
    assert len(answers) == len(TALK)
