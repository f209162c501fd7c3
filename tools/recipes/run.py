"""Run the programs of docs/how-to/agents.md, each with the packages that it needs in an environment of its own.

The environments are made by uv and kept in a folder, because they take longer than the programs. Waylore itself runs
from this checkout.
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
    """A recipe: its program on the page, the packages it was tried with, and the tools that it calls."""

    file: str
    packages: tuple[str, ...]
    calls: tuple[str, ...] = ("memory_remember", "memory_search", "memory_search")
    needs_waylore: bool = False  # imports it, and does not start it as a server


RECIPES = {
    "langgraph": AgentRecipe("langgraph_agent.py", ("langgraph==1.2.22", "langchain-openai==1.7.3"), (), True),
    "openai-agents": AgentRecipe("openai_agent.py", ("openai-agents==0.24.0",)),
    "pydantic-ai": AgentRecipe("pydantic_agent.py", ("pydantic-ai-slim[mcp,openai]==2.66.0",)),
}


def read_files() -> dict[str, str]:
    """Return the files that the page shows, by name."""
    return dict(FILE.findall(PAGE.read_text("utf-8")))


def make_environment(recipe: AgentRecipe, place: Path) -> Path:
    """Install the packages of a recipe in an environment, unless they are there, and return its Python."""
    python, marker = place / "bin" / "python", place / "complete"
    wanted = [*recipe.packages, *([str(ROOT)] if recipe.needs_waylore else [])]
    if not marker.exists() or marker.read_text("utf-8").split() != wanted:
        subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(place)], check=True)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(python), *wanted], check=True)
        marker.write_text("\n".join(wanted), "utf-8")
    return python


def prepare_folder(folder: Path) -> dict[str, str]:
    """Write the page's files, fill a memory as the page says, and return the environment of the programs."""
    for name, text in {**read_files(), "notes/pump-house.md": NOTE}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAYLORE_", "OPENAI_"))}
    path = f"{create_program(folder).parent}{os.pathsep}{kept['PATH']}"
    env = {**kept, "PATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    for command in (["waylore", "init", "--embedder", "none"], ["waylore", "add", "notes"]):
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    return env


def run_recipe(name: str, environments: Path, folder: Path) -> list[str]:
    """Talk to the agent of a recipe in an empty folder, and return its answers."""
    recipe = RECIPES[name]
    python = make_environment(recipe, environments / name)
    env = prepare_folder(folder)
    with serve_model() as model:
        variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        answers = [ask_agent([str(python), recipe.file, said], folder, {**env, **variables}) for said, _ in TALK]
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
