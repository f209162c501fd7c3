"""List the files of a checkout, or of a copy of one without Git."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

MADE = {"__pycache__", "node_modules", "build", "dist", "page"}  # folders that are not committed, beside hidden ones


def list_files(root: Path, *options: str) -> list[str]:
    """Return the files that Git lists, by their paths below the root; in a copy without Git, all that are not made."""
    if not (root / ".git").exists():
        return sorted(str(path.relative_to(root)) for path in _walk(root))
    listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=root, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if (root / name).is_file() and name]


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            is_made = path.name in MADE or (path.name.startswith(".") and path.name not in (".ci", ".github"))
            yield from () if is_made else _walk(path)
        elif path.is_file():
            yield path
