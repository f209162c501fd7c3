"""Walks a folder in the order of names, leaving out what `.gitignore` files and a few fixed rules leave out.

Rules are Git's: a `.gitignore` counts for its folder and below, the last rule that matches decides, the nearest
file first, and nothing inside an ignored folder can be brought back. Symbolic links are not followed, so that
no walk runs in circles or leaves the folder. Git's global and per-clone exclude files are not read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Refused, required

IGNORED = frozenset(
    """.git .hg .svn .bzr node_modules __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache
    .hypothesis .idea .vscode .DS_Store .gitignore .gitattributes .gitmodules .env waylore.toml""".split()
)
OURS = (
    ".waylore",
    ".waylore-wal",
    ".waylore-shm",
)  # reading a store that this process has open would drop its locks
_LONGEST_RULES = 1_000_000
Rules = list[tuple[Path, Any]]  # the nearest folder last


def files(folder: Path, *, root: Path | None = None) -> Iterator[Path | tuple[Path, str]]:
    """The files of a folder and its folders; what cannot be entered comes with the reason.

    The `.gitignore` files from `root` down to the folder count too.
    """
    rules: Rules = []
    for above in _way(root, folder):
        rules = rules + _rules(above)
        below = folder if above == folder.parent else None
        if below is not None and _is_ignored(below, rules, is_folder=True):
            return
    yield from _walk(folder, rules)


def _way(root: Path | None, folder: Path) -> list[Path]:
    """The folders from the root to the folder's parent."""
    if root is None or folder == root or root not in folder.parents:
        return []
    return [above for above in reversed(folder.parents) if above == root or root in above.parents]


def _walk(folder: Path, rules: Rules) -> Iterator[Path | tuple[Path, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        rules = rules + _rules(folder)
    except (OSError, Refused) as error:
        yield folder, _why(error)
        return
    for entry in entries:
        path = folder / entry.name
        if entry.name in IGNORED or entry.name.endswith(OURS):
            continue
        if _is_ignored(path, rules, is_folder=entry.is_dir(follow_symlinks=False)):
            continue
        if entry.is_symlink():
            yield path, "it is a symbolic link, which is not followed: read its target itself"
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(path, rules)
        else:
            yield path


def _rules(folder: Path) -> Rules:
    file = folder / ".gitignore"
    if not file.is_file():
        return []
    with file.open("rb") as opened:
        lines = opened.read(_LONGEST_RULES).decode("utf-8-sig", "replace").splitlines()
    spec = required("pathspec").GitIgnoreSpec
    try:
        return [(folder, spec.from_lines(lines))]
    except Exception:  # noqa: BLE001 (pathspec raises ValueError or re.error for a rule that Git passes over)
        return [(folder, spec.from_lines([line for line in lines if _is_rule(spec, line)]))]


def _is_rule(spec: Any, line: str) -> bool:
    try:
        spec.from_lines([line])
    except Exception:  # noqa: BLE001 (as above)
        return False
    return True


def _is_ignored(path: Path, rules: Rules, *, is_folder: bool) -> bool:
    for folder, spec in reversed(rules):
        place = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
        decided = spec.check_file(place).include
        if decided is not None:
            return bool(decided)
    return False


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"the folder cannot be entered: {error.strerror or error}"
    return f"its .gitignore cannot be honoured: {error}"
