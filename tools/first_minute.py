"""Install and run Waylore as a new user does: in empty environments, with the commands of the README.

    python -m tools.first_minute

It checks that the commands up to the first answer take a small part of the time that pip takes (with the model
already on disk, as in tests), and that the commands and the first program of the README print the output shown there.
It also checks that the core installs nothing heavier than NumPy, that torch is not installed, and that the sizes in the
README are right within a tenth.
"""

import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tools.transcripts import normalize, update_transcripts

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMAND_LINE_PACKAGE = ".[cli,local,files]"
MAX_SHARE = 0.3  # of the processor time of the installation; pip alone takes 20 to 60 s, depending on the machine
CORE_PACKAGES = {"waylore", "apsw", "cachetools", "numpy", "PyStemmer", "pip"}
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def create_environment(folder: Path, package: str) -> Path:
    """Create an environment with only pip and the package; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, cwd=ROOT)
    return python


def list_packages(python: Path) -> set[str]:
    """Return the names of the installed packages."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    return {line.split("==")[0].split(" @")[0] for line in listed.stdout.split()} - {"setuptools"}


def measure_megabytes(folder: Path) -> float:
    """Return the size of the installed packages on disk, with the bytecode that pip compiles, without pip itself."""
    site = next(folder.glob("lib/python*/site-packages"))
    files = (f for f in site.rglob("*") if f.is_file())
    ours = (f for f in files if not f.relative_to(site).parts[0].startswith(("pip", "setuptools", "_distutils")))
    return sum(f.stat().st_size for f in ours) / 1e6


def check_size(package: str, folder: Path) -> None:
    """Exit with an error if the size of a package differs from the README by more than a tenth."""
    measured = measure_megabytes(folder)
    stated = re.search(rf"`pip install '?{re.escape(package)}'?` \| about (\d+) MB", README)
    print(f"{package}: {measured:.0f} MB, in the README: {stated.group(1) if stated else 'no'} MB")
    if stated is None or abs(measured - int(stated.group(1))) > measured / 10:
        sys.exit(f"wrong size of {package} in the README; it is {measured:.0f} MB")


def measure_processor_seconds() -> float:
    """Return the processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_first_answer(folder: Path) -> Path:
    """Install the command line, run the commands of the README and compare; return the environment's Python."""
    start = time.monotonic()
    python = create_environment(folder, COMMAND_LINE_PACKAGE)
    installing = measure_processor_seconds()
    updated = update_transcripts(README, python.with_name("waylore"))
    answering = measure_processor_seconds() - installing
    print(f"installation and first answer took {time.monotonic() - start:.0f} s")
    print(f"processor time: {installing:.0f} s for pip, {answering:.0f} s for the commands of the README")
    if normalize(updated) != normalize(README):
        sys.exit("the output in the README is outdated; run `python -m tools.transcripts README.md`")
    if answering > MAX_SHARE * installing:  # not the clock, which depends on what else the machine does
        sys.exit(f"the commands took more than {MAX_SHARE:.0%} of the processor time of the installation")
    return python


def check_first_program(folder: Path) -> Path:
    """Install the core, run the first program of the README and compare; return the environment's Python."""
    program, promised = (text for _, text in BLOCK.findall(README)[:2])
    python = create_environment(folder, ".")
    run = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=folder.parent, check=False)
    if run.stdout != promised:
        sys.exit(f"the first program of the README printed something else: {run.stdout}{run.stderr}")
    return python


def main() -> None:
    """Check both installations."""
    with tempfile.TemporaryDirectory() as name:
        python = check_first_answer(Path(name) / "command-line")
        if heavy := {p for p in list_packages(python) if p.lower() in {"torch", "tensorflow", "transformers"}}:
            sys.exit(f"{COMMAND_LINE_PACKAGE} installs {sorted(heavy)}; remove these dependencies")
        check_size(COMMAND_LINE_PACKAGE, Path(name) / "command-line")
        python = check_first_program(Path(name) / "core")
        if extra := list_packages(python) - CORE_PACKAGES:
            sys.exit(f"the core installs packages that are not allowed: {sorted(extra)}")
        check_size(".", Path(name) / "core")


if __name__ == "__main__":
    main()
