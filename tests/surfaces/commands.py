"""Run the command line in tests: in this process, or as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from waylore.surfaces.cli.app import app

START = "import sys; sys.argv[0] = 'waylore'; from waylore.surfaces.cli.__main__ import main; main()"
COMMAND = [sys.executable, "-c", START]
NOTES = {
    "login.md": "# Login\n\nThe login service checks passwords and issues tokens.\n\n"
    "## Tokens\n\nTokens are kept by [[Sessions]].\n",
    "sessions.md": "---\nowner: Mara\n---\n# Sessions\n\nTokens live for eight hours.\n",
    "mara.md": "# Mara\n\nMara leads the platform team. Kofi leads Mara.\n",
}


def notes(folder: Path) -> Path:
    """Write three notes that link to each other; return their folder."""
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text, "utf-8")
    return folder / "notes"


def run(*arguments: str, code: int = 0, stdin: str = "") -> str:
    """Run a command in the working folder of this process, and return what it prints."""
    done = CliRunner().invoke(app, arguments, input=stdin, prog_name="waylore")
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done.stdout if code == 0 else done.output


def run_json(*arguments: str) -> Any:
    """Run a command with `--json`, and return the parsed output."""
    return json.loads(run(*arguments, "--json"))


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a user: without settings of Waylore, colours and the width of a terminal."""
    ours = ("WAYLORE_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | variables


def process(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )
