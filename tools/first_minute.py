"""Act as a new user: empty environments, `pip install`, what the README says to type; measure what it costs.

    python -m tools.first_minute

Checks that from nothing to the first answer takes a minute at most (with the model on disk already, as tests
have it), that the README's commands and its first program print what the README says, that the core brings
nothing heavier than NumPy, that no torch comes along, and that the sizes in the README's table are right within
a tenth.
"""

import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tools.transcripts import comparable, true

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMAND_LINE = ".[cli,local,files]"
MINUTE = 60
CORE = {"waylore", "apsw", "cachetools", "numpy", "PyStemmer", "pip"}
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment(folder: Path, package: str) -> Path:
    """An environment with nothing but pip and the package."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, cwd=ROOT)
    return python


def installed(python: Path) -> set[str]:
    """The names of what was installed."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    return {line.split("==")[0].split(" @")[0] for line in listed.stdout.split()} - {"setuptools"}


def megabytes(folder: Path) -> float:
    """What the environment's packages take on disk, without pip itself and compiled caches."""
    site = next(folder.glob("lib/python*/site-packages"))
    files = (f for f in site.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    ours = (
        f for f in files if not f.relative_to(site).parts[0].startswith(("pip", "setuptools", "_distutils"))
    )
    return sum(f.stat().st_size for f in ours) / 1e6


def check_size(package: str, folder: Path) -> None:
    """Compare a size with the README's."""
    measured = megabytes(folder)
    stated = re.search(rf"`pip install '?{re.escape(package)}'?` \| (\d+) MB", README)
    print(f"{package}: {measured:.0f} MB, the README says {stated.group(1) if stated else 'nothing'} MB")
    if stated is None or abs(measured - int(stated.group(1))) > measured / 10:
        sys.exit(f"the README's size of {package} should be {measured:.0f} MB")


def first_answer(folder: Path) -> Path:
    """Install the command line, type what the README says, and compare; return the environment's Python."""
    start = time.monotonic()
    python = environment(folder, COMMAND_LINE)
    told = true(README, python.with_name("waylore"))
    took = time.monotonic() - start
    print(f"from nothing to the first answer of the command line in {took:.0f} s")
    if comparable(told) != comparable(README):
        sys.exit("the README is not true: python -m tools.transcripts README.md")
    if took > MINUTE:
        sys.exit(f"that is more than {MINUTE} s")
    return python


def first_program(folder: Path) -> Path:
    """Install the core, run the README's first program, and compare; return the environment's Python."""
    program, promised = (text for _, text in BLOCK.findall(README)[:2])
    python = environment(folder, ".")
    run = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, cwd=folder.parent, check=False
    )
    if run.stdout != promised:
        sys.exit(f"the README's first program does not print what it says, but {run.stdout}{run.stderr}")
    return python


def main() -> None:
    """Both installs, and what the README says of them."""
    with tempfile.TemporaryDirectory() as name:
        python = first_answer(Path(name) / "command-line")
        if heavy := {p for p in installed(python) if p.lower() in {"torch", "tensorflow", "transformers"}}:
            sys.exit(f"{COMMAND_LINE} brings {sorted(heavy)}")
        check_size(COMMAND_LINE, Path(name) / "command-line")
        python = first_program(Path(name) / "core")
        if extra := installed(python) - CORE:
            sys.exit(f"the core brings more than it should: {sorted(extra)}")
        check_size(".", Path(name) / "core")


if __name__ == "__main__":
    main()
