"""Run the commands that a page of the docs shows, and write their output into the page.

    python -m tools.transcripts docs/how-to/command-line.md            write the page
    python -m tools.transcripts docs/how-to/command-line.md --check    exit with 1 if the page is outdated

A command is a line `$ waylore …` in a `console` block. All commands of a page run in one folder, which is empty
at the start. A block that begins with ```markdown title="notes/login.md" (or another language) is a file, which
exists from the start. Comments of the page add what else the commands need: `<!-- file notes/login.md` up to `-->`
creates a file, `<!-- folder examples -->` copies a folder of the project, and `<!-- model bge-small -->` uses weights
that were downloaded for tests. Parts that differ from run to run (times, ids, free space, the last digits of a
score) are not compared.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.command import START_SCRIPT
from tools.models import CACHE

BLOCK = re.compile(r"^```console\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
FILE = re.compile(r"^<!-- file (\S+)\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
SHOWN_FILE = re.compile(r'^```\w+ title="(\S+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"^<!-- folder (\S+) -->$", re.MULTILINE)
MODEL = re.compile(r"^<!-- model (\S+) -->$", re.MULTILINE)
TIMEOUT_SECONDS = 100  # for one command; commands that never end, such as serve, have no prompt in the docs
ROOT = Path(__file__).parents[1]

OUR_VARIABLES = ("WAYLORE_", "NO_COLOR", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE")
VARYING_PATTERNS = (
    (r" +[\d.]+ ms", " 0 ms"),
    (r"in [\d.]+ s\b", "in 0 s"),
    (r"[\d.,]+ (GB are free|kB|MB)", r"0 \1"),
    (r"\b(\d\.\d)\d{2,3}\b", r"\1"),
    (r"schema \d+", "schema 0"),
    (r"\b[0-9a-f]{32}\b", "IDENTITY"),
)


def update_transcripts(text: str, program: Path | None = None) -> str:
    """Return the page with the current output of its commands.

    program: an installed `waylore`; None runs this source.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in FOLDER.findall(text):
            shutil.copytree(ROOT / path, folder / path)
        for path, content in [*FILE.findall(text), *SHOWN_FILE.findall(text)]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, "utf-8")
        model = MODEL.search(text)
        weights = {"WAYLORE_EMBEDDING_PATH": str(CACHE / model.group(1))} if model else {}
        path = {"PATH": f"{(program or create_program(folder)).parent}{os.pathsep}{os.environ['PATH']}"}
        env = _remove_our_variables() | path | weights | {"XDG_CONFIG_HOME": str(folder), "COLUMNS": "80"}
        return BLOCK.sub(lambda block: f"```console\n{_run_block(block.group(1), folder, env)}```", text)


def create_program(folder: Path) -> Path:
    """Write a program `waylore` that runs this source, and return its path."""
    program = folder / ".bin" / "waylore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(START_SCRIPT)} "$@"\n')
    program.chmod(0o755)
    return program


def _remove_our_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OUR_VARIABLES)}


def normalize(text: str) -> str:
    """Replace the parts of a page that differ from run to run by fixed texts."""
    for pattern, replacement in VARYING_PATTERNS:
        text = re.sub(pattern, replacement, text)
    return text


def _run_block(text: str, folder: Path, env: dict[str, str]) -> str:
    return "".join(f"$ {command}\n{_run_command(command, folder, env)}" for command in COMMAND.findall(text))


def _run_command(command: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-c", f"{command} 2>&1"],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages; with `--check` write nothing and return 1 if one of them is outdated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, help="Markdown pages")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is outdated")
    options = parser.parse_args(arguments)
    stale = []
    for page in options.pages:
        text = page.read_text("utf-8")
        now = update_transcripts(text)
        if normalize(now) != normalize(text):
            stale.append(page)
            if not options.check:
                page.write_text(now, "utf-8")
    for page in stale:
        print(f"{page} {'is outdated' if options.check else 'was written'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
