"""List the files of a folder in order of names, without files that ignore files or fixed rules exclude.

The rules are Git's. A `.gitignore`, and then a `.wayloreignore`, applies to its folder and below, the nearest file
first, and the last matching rule of a file decides. Nothing inside an ignored folder can be included again. Symbolic
links are not followed, so no walk is endless or leaves the folder. Git's global and per-clone exclude files are not
read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waylore import legacy
from waylore.indexing.blocks import ReadError, require_library

IGNORED_NAMES = frozenset(
    """.git .hg .svn .bzr node_modules __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache
    .hypothesis .idea .vscode .DS_Store .gitignore .wayloreignore .gitattributes .gitmodules .env
    waylore.toml""".split()
) | {legacy.SETTINGS_FILE}
# Stores are never read: closing a store file that this process has open elsewhere would drop its locks.
STORE_SUFFIXES = (".waylore", ".waylore-wal", ".waylore-shm", *legacy.STORE_SUFFIXES)
IGNORE_FILE = ".wayloreignore"  # `waylore forget --ignore` writes this file
RULE_FILES = (".gitignore", IGNORE_FILE)
_MAX_RULE_BYTES = 1_000_000
Rules = list[tuple[Path, Any]]  # a folder and its rules, the nearest folder last


def list_paths(path: Path, *, root: Path | None = None) -> Iterator[Path | tuple[Path, str]]:
    """Yield a file itself, or the files of a folder as `list_files` does."""
    return list_files(path, root=root) if path.is_dir() else iter([path])


def get_size(path: Path) -> int:
    """Return the bytes of a file; 0 if they are unknown, because reading it will report the error."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def list_files(folder: Path, *, root: Path | None = None) -> Iterator[Path | tuple[Path, str]]:
    """Yield the files of a folder and its subfolders; a path that cannot be read comes with the reason.

    The ignore files from `root` down to the folder apply too; a folder that they exclude comes with that reason.
    """
    rules: Rules = []
    for above in _list_parents(root, folder):
        rules = rules + _read_rules(above)
        below = folder if above == folder.parent else None
        if below is not None and _is_ignored(below, rules, is_folder=True):
            top = root or above
            rule = f"!/{folder.relative_to(top).as_posix()}/"
            yield folder, f"an ignore file above leaves it out; to add it, write {rule} into {top / IGNORE_FILE}"
            return
    yield from _walk(folder, rules)


def _list_parents(root: Path | None, folder: Path) -> list[Path]:
    """Return the folders from the root to the folder's parent."""
    if root is None or folder == root or root not in folder.parents:
        return []
    return [above for above in reversed(folder.parents) if above == root or root in above.parents]


def _walk(folder: Path, rules: Rules) -> Iterator[Path | tuple[Path, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        rules = rules + _read_rules(folder)
    except (OSError, ReadError) as error:
        yield folder, _describe(error)
        return
    for entry in entries:
        path = folder / entry.name
        if entry.name in IGNORED_NAMES or entry.name.endswith(STORE_SUFFIXES):
            continue
        if _is_ignored(path, rules, is_folder=entry.is_dir(follow_symlinks=False)):
            continue
        if entry.is_symlink():
            yield path, "it is a symbolic link: add its target"
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(path, rules)
        else:
            yield path


def _read_rules(folder: Path) -> Rules:
    """Return the rules of a folder; rules of `.wayloreignore` come last, so they decide."""
    return [rules for name in RULE_FILES if (file := folder / name).is_file() for rules in _parse_rules(folder, file)]


def _parse_rules(folder: Path, file: Path) -> Rules:
    with file.open("rb") as stream:
        lines = stream.read(_MAX_RULE_BYTES).decode("utf-8-sig", "replace").splitlines()
    spec = require_library("pathspec").GitIgnoreSpec
    try:
        return [(folder, spec.from_lines(lines))]
    except Exception:  # noqa: BLE001 (pathspec raises ValueError or re.error for a rule that Git ignores)
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


def _describe(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"the folder cannot be read: {error.strerror or error}"
    return f"its .gitignore cannot be read: {error}"
