"""Damage a page of a real PostgreSQL server: `waylore doctor --deep` notices it, and says what it could not check."""

import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tools.postgres.builds import Build, find_plain_build
from tools.postgres.server import Server, start_server

from databases import create_database
from waylore import Waylore
from waylore.errors import DamagedStore
from waylore.surfaces.checks.findings import Finding
from waylore.surfaces.checks.run import run_checks

PAGE = 8192
HEADER = 24  # bytes of a page before its list of rows
FUNCTIONS = ("bt_index_check(regclass, boolean)", "gin_index_check(regclass)", "verify_heapam")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no settings of this checkout or of the environment decide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    for name in [name for name in os.environ if name.startswith("WAYLORE_")]:
        monkeypatch.delenv(name)


def fill(url: str) -> None:
    with Waylore.open(url) as memory:
        for number in range(30):
            memory.add(f"Person {number} lives in Town {number % 7}.", uri=f"{number}.md")


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql.SQL(statement))
        return cursor.fetchall() if cursor.description else []


def check(url: str) -> list[Finding]:
    """Return what the deep checks say about tables and indexes."""
    return [finding for finding in run_checks(True, store=url) if finding.subject == "structure"]


# -- what could be checked -------------------------------------------------------------------------------


def test_database_without_amcheck_is_a_note(postgres: Server) -> None:
    url = create_database()
    fill(url)
    [note] = check(url)
    assert (note.state, "CREATE EXTENSION amcheck" in note.remedy) == ("note", True)
    assert execute(url, "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'") == [(0,)]


def test_whole_database_has_no_problems(postgres: Server) -> None:
    url = create_database()
    fill(url)
    execute(url, "CREATE SCHEMA elsewhere; CREATE EXTENSION amcheck SCHEMA elsewhere")
    [good] = check(url)
    [[tables]] = execute(
        url, "SELECT count(*) FROM pg_class c WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r'"
    )
    assert good.state == "good"
    assert int(good.message.split()[2]) > 2 * int(str(tables))


def test_role_that_may_not_check_is_a_note(postgres: Server) -> None:
    url = create_database()
    fill(url)
    execute(url, "CREATE EXTENSION amcheck; CREATE ROLE checker LOGIN IN ROLE waylore_app")
    theirs = postgres.build_url(url.rpartition("/")[2], user="checker")
    [note] = check(theirs)
    assert (note.state, "grant its role EXECUTE" in note.remedy) == ("note", True)
    execute(url, "".join(f"GRANT EXECUTE ON FUNCTION {name} TO checker;" for name in FUNCTIONS))
    assert [finding.state for finding in check(theirs)] == ["good"]


# -- damage ----------------------------------------------------------------------------------------------


def swap_rows(page: bytearray) -> None:
    """Swap the first two rows of a page, so that they are not in order."""
    first, second = page[HEADER : HEADER + 4], page[HEADER + 4 : HEADER + 8]
    page[HEADER : HEADER + 8] = second + first


def age_row(page: bytearray) -> None:
    """Say that the first row of a page was written by a transaction that never was."""
    (pointer,) = struct.unpack_from("<I", page, HEADER)
    struct.pack_into("<I", page, pointer & 0x7FFF, 4_000_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("has_checksums", [True, False], ids=["checksums", "no checksums"])
@pytest.mark.parametrize(
    ("relation", "block", "change", "remedy"),
    [
        ("waylore.documents_pkey", 1, swap_rows, "REINDEX INDEX waylore.documents_pkey"),
        ("waylore.passages", 0, age_row, "restore a backup with `waylore restore`"),
    ],
)
def test_damaged_page_is_noticed(
    relation: str, block: int, change: Callable[[bytearray], None], remedy: str, has_checksums: bool
) -> None:
    build = find_plain_build()
    with start_server(build) as server:
        fill(server.url)
        execute(server.url, "CREATE EXTENSION amcheck")
        assert [finding.state for finding in check(server.url)] == ["good"]
        [[name]] = execute(server.url, f"SELECT pg_relation_filepath('{relation}')")
        server.stop()
        if not has_checksums:
            disable_checksums(build, server)
        damage(server.folder / "data" / str(name), block, change)
        server.start()
        found = [finding for finding in check(server.url) if finding.state == "wrong"]
        assert relation in {finding.message.split()[0] for finding in found}
        assert remedy in {finding.remedy for finding in found}
        if has_checksums:
            with pytest.raises(DamagedStore, match="waylore doctor --deep"):
                read_all(server.url)


def read_all(url: str) -> None:
    with Waylore.open(url) as memory:
        list(memory.export_lines())
        list(memory.documents())


def disable_checksums(build: Build, server: Server) -> None:
    command = build.build_command("pg_checksums", "--disable", "--pgdata", str(server.folder / "data"))
    subprocess.run(command, check=True, capture_output=True)


def damage(file: Path, block: int, change: Callable[[bytearray], None]) -> None:
    """Change a page of a file."""
    content = bytearray(file.read_bytes())
    page = content[block * PAGE : (block + 1) * PAGE]
    before = bytes(page)
    change(page)
    assert page != before
    content[block * PAGE : (block + 1) * PAGE] = page
    file.write_bytes(content)
