"""Brings a database to the schema this Waylore speaks, one recorded migration after another.

It refuses a schema that is newer than itself. It does not know which database it works on: the store gives
it a way to run a statement, inside a transaction that the store has begun.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from waylore.errors import SchemaOutdated


def migrate(
    migrations: Sequence[tuple[int, str, str]],
    *,
    applied: set[int],
    run: Callable[[str], None],
    record: Callable[[int, str], None],
) -> int:
    """Apply what is missing, in order; return how many were."""
    newest = max(number for number, _, _ in migrations)
    if applied and max(applied) > newest:
        raise SchemaOutdated(
            f"the store has schema {max(applied)}, this Waylore knows {newest}: upgrade Waylore to open it"
        )
    missing = [m for m in migrations if m[0] not in applied]
    for number, name, sql in missing:
        run(sql)
        record(number, name)
    return len(missing)


_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def load_queries(package: str, dialect: str = "") -> Mapping[str, str]:
    """Return the named queries in the folder `sql` of a package, or of one dialect in it."""
    text = files(package).joinpath("sql", dialect, "queries.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    names = parts[::2]
    if len(set(names)) != len(names):
        raise ValueError(f"queries.sql of {package} defines a name twice")
    return MappingProxyType({n: sql.strip() for n, sql in zip(names, parts[1::2], strict=True)})


@cache
def load_migrations(package: str, dialect: str = "") -> tuple[tuple[int, str, str], ...]:
    """Return the migrations of a package, or of one dialect in it, as number, name and SQL, in order."""
    folder = files(package).joinpath("sql", dialect, "migrations")
    found = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple((int(name[:4]), name[5:-4], folder.joinpath(name).read_text("utf-8")) for name in found)
