"""The old name of this product, where users' data or other programs still have it.

It lists suffixes, schemas, the prefix of API keys, the header of exports and the names of settings, and finds them in
the values that a caller passes. It opens no file and reads no environment. The SQL that renames a PostgreSQL schema is
in the files `legacy.sql`.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "weft"
KEY_PREFIX = "weft_"
EXPORT_FIELD = "weft"
SETTINGS_FILE = "weft.toml"
STORE_SUFFIXES = (".weft", ".weft-wal", ".weft-shm")
VARIABLE_PREFIX = "WEFT_"
SCHEMAS = {
    "waylore": "weft",
    "waylore_cells": "weft_cells",
    "waylore_service": "weft_service",
    "waylore_jobs": "weft_jobs",
}


def find_old_path(path: Path) -> Path | None:
    """Return the path that a missing file or folder has under the old name, if something exists there."""
    old = path.with_name(path.name.replace("waylore", NAME))
    return old if old != path and _exists(old) and not path.exists() else None


def rename_settings(variables: Iterable[str], files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of variables, and of existing files, that are no longer read.

    `files` are the paths that are read now; old files are searched for in the same places.
    """
    for variable in sorted(variables):
        if variable.upper().startswith(VARIABLE_PREFIX):
            yield variable, _rename(variable)
    for file in files:
        parts = [part.replace("waylore", NAME) for part in file.parts[-2:]]
        old = Path(*file.parts[:-2], *parts)
        if old != file and _exists(old):
            yield str(old), str(file)


def is_client_entry(name: str, entry: Any) -> bool:
    """Return whether an entry of an MCP client starts this product under its old name."""
    if name != NAME or not isinstance(entry, Mapping):
        return False
    arguments = entry.get("args") or []
    words = [str(entry.get("command", "")), *map(str, arguments)]
    return "mcp" in arguments and any(Path(word).stem.partition(".")[0] == NAME for word in words)


def _rename(variable: str) -> str:
    """Return the new name of a variable or of a secret's file, in the case of the old one."""
    new = "WAYLORE_" if variable.isupper() else "waylore_"
    return new + variable[len(VARIABLE_PREFIX) :]


def _exists(path: Path) -> bool:
    """Return whether a path exists; a folder that may not be entered counts as missing."""
    try:
        return path.exists()
    except PermissionError:
        return False
