"""Runs the commands that a page of the docs shows, and writes what they print into the page.

    python -m tools.transcripts docs/how-to/command-line.md            write it
    python -m tools.transcripts docs/how-to/command-line.md --check    only say whether it is true

A command is a line `$ waylore …` in a `console` block; all commands of a page share one empty folder. A file that
they need is made by a comment of the page, `<!-- file notes/login.md` up to `-->`; `<!-- folder examples -->`
is one of the project's, `<!-- model bge-small -->` gives them the test weights as what they would fetch. What
differs from run to run (times, identities, free room, the last digits of a score) is not compared.
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

from tools.models import CACHE

BLOCK = re.compile(r"^```console\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
FILE = re.compile(r"^<!-- file (\S+)\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"^<!-- folder (\S+) -->$", re.MULTILINE)
MODEL = re.compile(r"^<!-- model (\S+) -->$", re.MULTILINE)
LONGEST = 100  # seconds of a command: one that serves, and so never ends, has no prompt in the docs
ROOT = Path(__file__).parents[1]
START = "import sys; sys.argv[0] = 'waylore'; from waylore.surfaces.cli.__main__ import main; main()"
OURS = ("WAYLORE_", "NO_COLOR", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE")
VARYING = (
    (r" +[\d.]+ ms", " 0 ms"),
    (r"in [\d.]+ s\b", "in 0 s"),
    (r"[\d.,]+ (GB are free|kB|MB)", r"0 \1"),
    (r"\b(\d\.\d)\d{2,3}\b", r"\1"),
    (r"schema \d+", "schema 0"),
    (r"\b[0-9a-f]{32}\b", "IDENTITY"),
)


def true(text: str, program: Path | None = None) -> str:
    """The page with what its commands print now, by this source or by a `waylore` that is installed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in FOLDER.findall(text):
            shutil.copytree(ROOT / path, folder / path)
        for path, content in FILE.findall(text):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, "utf-8")
        model = MODEL.search(text)
        weights = {"WAYLORE_EMBEDDING_PATH": str(CACHE / model.group(1))} if model else {}
        path = {"PATH": f"{(program or _ours(folder)).parent}{os.pathsep}{os.environ['PATH']}"}
        env = _without_ours() | path | weights | {"XDG_CONFIG_HOME": str(folder), "COLUMNS": "80"}
        return BLOCK.sub(lambda block: f"```console\n{_block(block.group(1), folder, env)}```", text)


def _ours(folder: Path) -> Path:
    """A program `waylore` that runs this source."""
    program = folder / ".bin" / "waylore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(START)} "$@"\n')
    program.chmod(0o755)
    return program


def _without_ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


def comparable(text: str) -> str:
    """A page without what differs from run to run."""
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def _block(text: str, folder: Path, env: dict[str, str]) -> str:
    return "".join(f"$ {command}\n{_printed(command, folder, env)}" for command in COMMAND.findall(text))


def _printed(command: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-c", f"{command} 2>&1"],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or 1 if one of them is not true."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    stale = []
    for page in given.pages:
        text = page.read_text("utf-8")
        now = true(text)
        if comparable(now) != comparable(text):
            stale.append(page)
            if not given.check:
                page.write_text(now, "utf-8")
    print(*(f"{page} is {'not true' if given.check else 'written'}" for page in stale), sep="\n", end="")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
