"""Run the agents of docs/how-to/agents.md, each with the packages that it needs in an environment of its own.

The environments are made by uv or npm and kept in a folder, because they take longer than the agents. Waylore itself
runs from this checkout.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.recipes.model import ScriptedModel, serve_model
from tools.transcripts import create_program

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "agents.md"
FILE = re.compile(r'^```\w+ title="(\S+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MAX_SECONDS = 300  # ends an agent that hangs
VARIABLES = {
    "OPENAI_API_KEY": "none",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "ENABLE_TOOL_SEARCH": "false",  # Claude Code offers all tools at once
    "MCP_TIMEOUT": "120000",  # milliseconds in which the server must start
}
NOTE = "# Pump House\n\nTomas Reyes repairs the pump, and has the only key.\n"
TALK = (  # what the user says to each agent, every time to a new process, and a word that the answer must have
    ("Remember that I am allergic to nettles.", ""),
    ("What am I allergic to?", "nettles"),
    ("Who repairs the pump?", "Tomas Reyes"),
)


class RecipeFailed(Exception):
    """A program of a recipe ended with an error, or its answer lacks what the memory has."""


@dataclass(frozen=True, slots=True)
class AgentRecipe:
    """A recipe: its file on the page, the packages it was tried with, and the tools that it calls."""

    file: str
    packages: tuple[str, ...]
    calls: tuple[str, ...] = ("memory_remember", "memory_search", "memory_search")
    needs_waylore: bool = False  # imports it, and does not start it as a server

    @property
    def is_program(self) -> bool:
        """Whether the file is a program; otherwise it is the settings of an agent in a package of npm."""
        return self.file.endswith(".py")


CLAUDE_TOOLS = ("mcp__waylore__memory_remember", "mcp__waylore__memory_search", "mcp__waylore__memory_search")
RECIPES = {
    "claude-code": AgentRecipe(".mcp.json", ("@anthropic-ai/claude-code@2.1.327",), CLAUDE_TOOLS),
    "langgraph": AgentRecipe("langgraph_agent.py", ("langgraph==1.2.22", "langchain-openai==1.7.3"), (), True),
    "openai-agents": AgentRecipe("openai_agent.py", ("openai-agents==0.24.0",)),
    "pydantic-ai": AgentRecipe("pydantic_agent.py", ("pydantic-ai-slim[mcp,openai]==2.66.0",)),
}


def read_files() -> dict[str, str]:
    """Return the files that the page shows, by name."""
    return dict(FILE.findall(PAGE.read_text("utf-8")))


def make_environment(recipe: AgentRecipe, place: Path) -> list[str]:
    """Install the packages of a recipe, unless they are there, and return the command that takes a message."""
    marker = place / "complete"
    wanted = [*recipe.packages, *([str(ROOT)] if recipe.needs_waylore else [])]
    if not marker.exists() or marker.read_text("utf-8").split() != wanted:
        (install_programs if recipe.is_program else install_with_npm)(place, wanted)
        marker.write_text("\n".join(wanted), "utf-8")
    if recipe.is_program:
        return [str(place / "bin" / "python"), recipe.file]
    settings = ["--mcp-config", recipe.file, "--strict-mcp-config", "--allowedTools", ",".join(recipe.calls)]
    return [str(place / "node_modules" / ".bin" / "claude"), *settings, "-p"]


def install_programs(place: Path, packages: list[str]) -> None:
    """Install packages of Python in a new environment."""
    subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(place)], check=True)
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(place), *packages], check=True)


def install_with_npm(place: Path, packages: list[str]) -> None:
    """Install packages of npm in a folder."""
    place.mkdir(parents=True, exist_ok=True)
    options = ["--silent", "--no-audit", "--no-fund", "--prefix", str(place)]
    subprocess.run(["npm", "install", *options, *packages], check=True)


def prepare_folder(folder: Path) -> dict[str, str]:
    """Write the page's files, fill a memory as the page says, and return the environment of the programs."""
    for name, text in {**read_files(), "notes/pump-house.md": NOTE}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    others = ("WAYLORE_", "OPENAI_", "ANTHROPIC_", "CLAUDE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    path = f"{create_program(folder).parent}{os.pathsep}{kept['PATH']}"
    env = {**kept, "PATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    for command in (["waylore", "init", "--embedder", "none"], ["waylore", "add", "notes"]):
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    return env


def run_recipe(name: str, environments: Path, folder: Path) -> list[str]:
    """Talk to the agent of a recipe in an empty folder, and return its answers."""
    recipe = RECIPES[name]
    command = make_environment(recipe, environments / name)
    env = prepare_folder(folder)
    with serve_model() as model:
        env |= {"OPENAI_BASE_URL": model.url, "ANTHROPIC_BASE_URL": model.url.removesuffix("/v1"), **VARIABLES}
        answers = [ask_agent([*command, said], folder, env) for said, _ in TALK]
        check_answers(recipe, answers, model)
    return answers


def ask_agent(command: list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a program and return what it prints."""
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
    )
    if done.returncode:
        raise RecipeFailed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def check_answers(recipe: AgentRecipe, answers: list[str], model: ScriptedModel) -> None:
    """Raise an error if an answer lacks what the memory has, or other tools were called."""
    for (said, word), answer in zip(TALK, answers, strict=True):
        if word not in answer:
            raise RecipeFailed(f"{recipe.file}: the answer to {said!r} lacks {word!r}: {answer}")
    if tuple(model.called) != recipe.calls:
        raise RecipeFailed(f"{recipe.file} called {model.called}, not {recipe.calls}")
