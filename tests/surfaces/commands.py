"""The command line as tests use it: in this process, or as one of its own."""

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
POTION = Path(__file__).parents[2] / ".cache" / "models" / "potion"
NOTES = {
    "login.md": "# Login\n\nThe login service checks passwords and issues tokens.\n\n"
    "## Tokens\n\nTokens are kept by [[Sessions]].\n",
    "sessions.md": "---\nowner: Mara\n---\n# Sessions\n\nTokens live for eight hours.\n",
    "mara.md": "# Mara\n\nMara leads the platform team. Kofi leads Mara.\n",
}


def notes(folder: Path) -> Path:
    """A folder of three notes that point at each other."""
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text, "utf-8")
    return folder / "notes"


def run(*arguments: str, code: int = 0, stdin: str = "") -> str:
    """What a command prints, in the working folder of this process."""
    done = CliRunner().invoke(app, arguments, input=stdin, prog_name="waylore")
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done.stdout if code == 0 else done.output


def told(*arguments: str) -> Any:
    """What a command tells a program."""
    return json.loads(run(*arguments, "--json"))


def environment(**variables: str) -> dict[str, str]:
    """That of a user: no terminal's width, no colours, compiled modules kept."""
    ours = ("WAYLORE_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | variables


def process(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
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
