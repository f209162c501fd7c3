"""Act as a new user: empty environments, `pip install`, the README's first program; and measure what it costs.

    python tools/first_minute.py

Checks that the program prints what the README says, that the core brings nothing heavier than NumPy, that
`[local]` brings no torch, and that both sizes in the README's table are right within a tenth.
"""

import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CORE = {"weft", "apsw", "cachetools", "numpy", "PyStemmer", "pip"}
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


def main() -> None:
    """Both installs, and the first program."""
    program, promised = (text for _, text in BLOCK.findall(README)[:2])
    with tempfile.TemporaryDirectory() as name:
        start = time.monotonic()
        python = environment(Path(name) / "core", ".")
        run = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=name, check=False)
        print(
            f"from nothing to the first answer in {time.monotonic() - start:.0f} s:\n{run.stdout}{run.stderr}"
        )
        if run.stdout != promised:
            sys.exit("the README's first program does not print what the README says")
        if extra := installed(python) - CORE:
            sys.exit(f"the core brings more than it should: {sorted(extra)}")
        check_size(".", Path(name) / "core")
        python = environment(Path(name) / "local", ".[local]")
        if heavy := {p for p in installed(python) if p.lower() in {"torch", "tensorflow", "transformers"}}:
            sys.exit(f"[local] brings {sorted(heavy)}")
        check_size(".[local]", Path(name) / "local")


if __name__ == "__main__":
    main()
