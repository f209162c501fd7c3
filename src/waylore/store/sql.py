"""Load named SQL from the files of a package, and bring a schema up to date by recorded migrations.

Each applied migration is recorded with a checksum. A schema that is newer than this Waylore is refused, and so is
a schema that was made by different SQL. This module knows no database: the caller passes the
functions that run a statement and record a migration, inside a transaction that the caller has begun.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from waylore.errors import SchemaOutdated


class Migration(NamedTuple):
    """One step of a schema: its number, its name, and the SQL that makes it."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the SQL without comments and white space: a comment may be reworded, SQL may not."""
        return sha256(" ".join(re.sub(r"--.*", "", self.sql).split()).encode()).hexdigest()


NOTHING_TO_FILL: Mapping[int, Callable[..., object]] = MappingProxyType({})


def is_current(migrations: Sequence[Migration], applied: Mapping[int, str]) -> bool:
    """Return whether exactly these migrations were applied, each with the checksum that it has now."""
    return applied == {migration.number: migration.checksum for migration in migrations}


def migrate(
    migrations: Sequence[Migration],
    *,
    applied: Mapping[int, str],
    run: Callable[[str], None],
    record: Callable[[Migration], None],
    fill: Mapping[int, Callable[[], object]] = NOTHING_TO_FILL,
) -> int:
    """Apply the missing migrations in order; return their number.

    `fill` has functions that fill the tables of a migration after its SQL ran, by its number. `applied` maps numbers to
    checksums. An empty checksum stands for a migration from before checksums were
    recorded: its checksum is recorded now.
    """
    _check(migrations, applied)
    missing = [migration for migration in migrations if migration.number not in applied]
    for migration in missing:
        run(migration.sql)
        if migration.number in fill:
            fill[migration.number]()
        record(migration)
    for migration in migrations:
        if applied.get(migration.number) == "":
            record(migration)
    return len(missing)


def _check(migrations: Sequence[Migration], applied: Mapping[int, str]) -> None:
    """Refuse a schema that this Waylore does not know."""
    newest = max(migration.number for migration in migrations)
    if applied and max(applied) > newest:
        raise SchemaOutdated(
            f"the store has schema {max(applied)}, this Waylore knows {newest}: upgrade Waylore to open it"
        )
    for number, name, _ in (m for m in migrations if applied.get(m.number, "") not in ("", m.checksum)):
        raise SchemaOutdated(
            f"migration {number} ({name}) was applied to the store from other SQL than this Waylore has: "
            "export the store with the Waylore that made it, and import the export into a new store"
        )


_PART = re.compile(r"^-- (name|fragment): (\w+)\n", re.MULTILINE)
_CALL = re.compile(r"@([a-z_]+)\(((?:[^()]|\([^()]*\))*)\)")


@cache
def load_queries(package: str, dialect: str = "", file: str = "queries") -> Mapping[str, str]:
    """Return the named queries of a file in the folder `sql` of a package, or of one dialect in it.

    A query has a fragment of the same file as `@fragment(argument, …)`. In the fragment `$1` is the first argument.
    """
    text = files(package).joinpath("sql", dialect, f"{file}.sql").read_text("utf-8")
    _, *parts = _PART.split(text)
    kinds, names, bodies = parts[::3], parts[1::3], [body.strip() for body in parts[2::3]]
    if len(set(names)) != len(names):
        raise ValueError(f"{file}.sql of {package} defines a name twice")
    fragments = {name: body for kind, name, body in zip(kinds, names, bodies, strict=True) if kind == "fragment"}
    queries = {name: body for name, body in zip(names, bodies, strict=True) if name not in fragments}
    return MappingProxyType({name: _insert_fragments(body, fragments) for name, body in queries.items()})


def _insert_fragments(text: str, fragments: Mapping[str, str]) -> str:
    """Replace each call of a fragment by its text, also inside fragments."""

    def expand(call: re.Match[str]) -> str:
        body = re.sub(r"--.*\n", "", fragments[call[1]])
        for place, argument in enumerate(call[2].split(","), start=1):
            body = body.replace(f"${place}", argument.strip())
        return _insert_fragments(body, fragments)

    return _CALL.sub(expand, text)


@cache
def load_migrations(package: str, dialect: str = "") -> tuple[Migration, ...]:
    """Return the migrations of a package, or of one dialect in it, in order."""
    folder = files(package).joinpath("sql", dialect, "migrations")
    found = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    texts = [folder.joinpath(name).read_text("utf-8") for name in found]
    return tuple(Migration(int(name[:4]), name[5:-4], sql) for name, sql in zip(found, texts, strict=True))
