"""Loads SQL by name from the files beside this one. SQL is written there and nowhere else.

A named query is a line `-- name: NAME` and all that follows it up to the next one. (aiosql does this and
much more; these lines are all of it that we need.)
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def queries(dialect: str, file: str = "queries") -> Mapping[str, str]:
    """All queries of a dialect by name; those of the catalogue of cells are in a file of their own."""
    text = files("waylore.store").joinpath("sql", dialect, f"{file}.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    names = parts[::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{file}.sql of {dialect} defines a name twice")
    return MappingProxyType({n: sql.strip() for n, sql in zip(names, parts[1::2], strict=True)})


@cache
def migrations(dialect: str, of: str = "migrations") -> tuple[tuple[int, str, str], ...]:
    """All migrations of a dialect as number, name and SQL, in order; the catalogue's are in its own folder."""
    folder = files("waylore.store").joinpath("sql", dialect, of)
    found = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple((int(name[:4]), name[5:-4], folder.joinpath(name).read_text("utf-8")) for name in found)
