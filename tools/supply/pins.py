"""Pin every package of a release with its hashes: `python -m tools.supply.pins [--upgrade | --check]`.

It writes a file of `pins/` for each set of extras that is released. A pin stays as it is while
pyproject.toml allows it; `--upgrade` takes the newest versions. `--check` writes nothing, needs no network, and fails
if a file is older than pyproject.toml. The files name no host: pip asks the registry of whoever installs.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT_FILE = ROOT / "pyproject.toml"
FOLDER = ROOT / "pins"
RELEASED: Mapping[str, tuple[str, ...]] = {
    "service": ("http", "telemetry", "local", "files"),  # what deploy/Dockerfile installs
    "laptop": ("cli", "local", "files"),  # what the README installs
}
COMPILE_OPTIONS = "--universal --generate-hashes --no-header --no-annotate --python-version 3.11 --quiet".split()
PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; .+?)?(?P<hashes>(?: \\\n +--hash=sha256:[0-9a-f]{64})+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Pin:
    """A package at one version, with the SHA-256 of each of its files."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_project(path: Path = PROJECT_FILE) -> dict[str, Any]:
    """Return the content of pyproject.toml."""
    return tomllib.loads(path.read_text("utf-8"))


def list_requirements(project: Mapping[str, Any], extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield what the package and its extras require, also the extras that are named by other extras."""
    known = project["optional-dependencies"]
    todo = [*project["dependencies"], *(line for extra in extras for line in known[extra])]
    for requirement in map(Requirement, todo):
        if canonicalize_name(requirement.name) == project["name"]:
            yield from list_requirements({**project, "dependencies": []}, requirement.extras)
        else:
            yield requirement


def read_pins(path: Path) -> list[Pin]:
    """Return the pins of a file; a package has several if its version depends on Python's."""
    found = PIN.finditer(path.read_text("utf-8"))
    return [
        Pin(canonicalize_name(one["name"]), one["version"], tuple(re.findall("[0-9a-f]{64}", one["hashes"])))
        for one in found
    ]


def find_stale(pins: Iterable[Pin], requirements: Iterable[Requirement]) -> list[str]:
    """Return what is required and not pinned, or pinned to a version outside of its range."""
    pinned: dict[str, list[str]] = {}
    for pin in pins:
        pinned.setdefault(pin.name, []).append(pin.version)
    wrong = []
    for one in requirements:
        versions = pinned.get(canonicalize_name(one.name), [])
        if not versions or not all(one.specifier.contains(version, prereleases=True) for version in versions):
            wrong.append(f"{one} is required, {' and '.join(versions) or 'nothing'} is pinned")
    return wrong


def list_files(project: Mapping[str, Any]) -> dict[Path, list[Requirement]]:
    """Return what the pins of each file must meet."""
    sets = {name: list(list_requirements(project["project"], extras)) for name, extras in RELEASED.items()}
    sets["build"] = [Requirement(line) for line in project["build-system"]["requires"]]
    return {FOLDER / f"{name}.txt": requirements for name, requirements in sets.items()}


def write_pins(path: Path, requirements: Iterable[Requirement], *arguments: str) -> None:
    """Find versions that meet the requirements on every platform and Python version, and write their pins."""
    command = ["uv", "pip", "compile", "-", *COMPILE_OPTIONS, *arguments, "--output-file", str(path)]
    lines = "\n".join(map(str, requirements))
    subprocess.run(command, check=True, cwd=ROOT, input=lines, text=True, stdout=subprocess.DEVNULL)


def check_pins() -> list[str]:
    """Return what is wrong with the committed files."""
    stale: list[str] = []
    for path, requirements in list_files(read_project()).items():
        pins = read_pins(path) if path.exists() else []
        stale += [f"{path.name}: {problem}" for problem in find_stale(pins, requirements)]
    return stale


def main() -> None:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    chosen = parser.parse_args()
    if not chosen.check:
        for path, requirements in list_files(read_project()).items():
            write_pins(path, requirements, *(["--upgrade"] if chosen.upgrade else []))
            print(f"{path.relative_to(ROOT)}: {len(read_pins(path))} packages")
    if stale := check_pins():
        sys.exit("\n".join([*stale, "the pins are older than pyproject.toml; run `just pins`"]))


if __name__ == "__main__":
    main()
