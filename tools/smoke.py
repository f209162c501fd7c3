"""Install Waylore on each supported Python in an empty environment, and get a first answer.

    python -m tools.smoke [VERSION ...]

The interpreters are found by `uv python find`; a missing one is an error. On the first version the package with this
product's old name is installed beside it, and both commands must work.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from waylore import legacy

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.12", "3.13")
PACKAGE = ".[cli,local,files]"
QUESTION = "Who can help with the login?"


def find_python(version: str) -> str:
    """Return the path of an interpreter; exit with an error if there is none."""
    environment = dict(os.environ)
    if pyenv := shutil.which("pyenv"):  # its shims answer only for the versions that are named
        known = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=True)
        environment["PYENV_VERSION"] = ":".join(known.stdout.split())
    found = subprocess.run(
        ["uv", "python", "find", "--system", version], capture_output=True, text=True, check=False, env=environment
    )
    if found.returncode:
        sys.exit(f"no Python {version}: {found.stderr.strip()}")
    return found.stdout.strip()


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return its output; exit with its error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stdout}{done.stderr}")
    return done.stdout


def check_version(version: str, folder: Path, *packages: str) -> Path:
    """Install the packages on a version of Python, add the example notes and search them; return the commands."""
    run(find_python(version), "-m", "venv", folder / "environment")
    commands = folder / "environment" / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", PACKAGE, *packages)
    hits = find_notes(commands, folder)
    print(f"Python {version}: {run(commands / 'waylore', '--version').strip()}, {hits} hits")
    return commands


def find_notes(commands: Path, folder: Path) -> int:
    """Add the example notes in a folder and search them; return the number of hits, or exit if there are none."""
    shutil.copytree(ROOT / "examples" / "notes", folder / "notes")
    waylore = commands / "waylore"
    run(waylore, "init", "--embedder", "none", cwd=folder)
    run(waylore, "add", "notes", cwd=folder)
    hits = json.loads(run(waylore, "search", QUESTION, "--json", cwd=folder))["hits"]
    if not hits:
        sys.exit(f"{commands} finds nothing in the notes")
    return len(hits)


def main(versions: list[str]) -> None:
    """Check each version."""
    for number, version in enumerate(versions or VERSIONS):
        with tempfile.TemporaryDirectory() as name:
            beside = [legacy.NAME] if number == 0 else []
            commands = check_version(version, Path(name), *beside)
            for other in beside:
                run(commands / other, "--help")
                print(f"the command of the other package works beside it on Python {version}")


if __name__ == "__main__":
    main(sys.argv[1:])
