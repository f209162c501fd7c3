"""Check that the store at an address can be opened and written: a file, a server, or the cells of a catalogue."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from waylore.cells.open import open_catalogue
from waylore.errors import DamagedStore, StoreError, WayloreError
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import MAX_REWRITTEN_BYTES, is_read_only, read_schema
from waylore.store.sqlite.verify import CheckedPages, check_pages
from waylore.store.urls import parse_url, without_password
from waylore.surfaces.checks.cells import check_moves
from waylore.surfaces.checks.findings import COMPACT, ENABLE_CHECKSUMS, RESTORE, Finding

MIN_FREE_BYTES = 200_000_000  # on the disk of the store
SERVER_TIMEOUT_SECONDS = 5
MAX_PAGES_SHOWN = 10


def check_store(url: str) -> Iterator[Finding]:
    """Check the store at an address."""
    try:
        parsed = parse_url(url)
        if parsed.is_cells:
            yield from _check_cells(url)
        elif parsed.is_server:
            yield from _check_server(url)
        elif parsed.is_file:
            yield from _check_file(parsed.path)
        else:
            yield Finding("store", "wrong", f"no store for {without_password(url)}", "give a file or postgresql://…")
    except WayloreError as error:
        yield Finding("store", "wrong", str(error), "check --store, or store in waylore.toml")


def _check_cells(url: str) -> Iterator[Finding]:
    """Check every cell of a catalogue."""
    parsed = parse_url(url)
    if parsed.is_file and not parsed.path.exists():
        yield Finding("store", "wrong", f"no catalogue at {parsed.path}", "create one with `waylore cells add`")
        return
    with closing(open_catalogue(url)) as catalogue:
        known = catalogue.get_cells().values()
        if not known:
            remedy = "add one with `waylore cells add NAME URL --catalogue …`"
            yield Finding("store", "wrong", "the catalogue has no cells", remedy)
        for cell in known:
            yield from check_store(cell.url)
            if parse_url(cell.url).is_server and find_spec("psycopg"):
                yield from check_moves(catalogue, cell)


def _check_file(path: Path) -> Iterator[Finding]:
    """Check that a file can be written, is a store, and has room to grow."""
    folder = path.resolve().parent
    if not folder.is_dir():
        yield Finding("store", "wrong", f"{folder} is not a folder", f"mkdir -p {folder}")
        return
    if is_read_only(str(path)):
        yield from _check_read_only(path, folder)
        return
    if not path.exists() and not os.access(folder, os.W_OK):
        message = f"{folder} is read-only, so no store can be created in it"
        yield Finding("store", "wrong", message, f"chmod u+w {folder}, or put the store elsewhere")
        return
    yield from _check_disk(folder)
    if path.exists():
        yield from _check_schema(path)
        yield from _check_pages(path)
    else:
        yield Finding(
            "store", "note", f"no store at {path} yet", "create it with `waylore init`, then `waylore add PATH`"
        )


def _check_read_only(path: Path, folder: Path) -> Iterator[Finding]:
    """Report a read-only file. An old schema is a problem, because it cannot be upgraded."""
    place = folder if os.access(path, os.W_OK) else path
    message = f"{place} is read-only; searches work, writes do not, and uses are not counted"
    yield Finding("store", "note", message, f"chmod u+w {place}, or put the store elsewhere")
    for finding in _check_schema(path):
        if finding.state == "note":
            remedy = f"copy it with `cp {quote(str(path))} elsewhere`, and open the copy"
            yield replace(finding, state="wrong", remedy=remedy)
        else:
            yield finding
    yield from _check_pages(path)


def _check_schema(path: Path) -> Iterator[Finding]:
    try:
        schema = read_schema(str(path))
    except StoreError as error:
        remedy = "check that it is a store of Waylore, or name another with --store"
        yield Finding("store", "wrong", str(error), RESTORE if isinstance(error, DamagedStore) else remedy)
        return
    if schema is None:
        message = f"{path} is a database of another program"
        yield Finding("store", "wrong", message, "name another file with --store, or set store in waylore.toml")
    else:
        yield describe_schema(str(path), schema, load_migrations("waylore.store.sqlite")[-1][0])


def _check_pages(path: Path) -> Iterator[Finding]:
    """Read the whole file, and compare its pages with their checksums."""
    try:
        yield _describe_pages(path, check_pages(str(path)))
    except WayloreError:  # reported by `_check_schema`
        return


def _describe_pages(path: Path, checked: CheckedPages) -> Finding:
    if checked.damaged:
        shown = ", ".join(map(str, checked.damaged[:MAX_PAGES_SHOWN]))
        more = ", …" if len(checked.damaged) > MAX_PAGES_SHOWN else ""
        return Finding("pages", "wrong", f"{path} has damaged pages: {shown}{more}", RESTORE)
    if checked.lost_writes > 1:
        message = f"the log of {path} is damaged: {checked.lost_writes} writes cannot be read"
        return Finding("pages", "wrong", message, RESTORE)
    if checked.lost_writes:
        message = f"the log of {path} ends with a write that is not whole: a crash cut it off, or the log is damaged"
        return Finding(
            "pages", "note", message, "`waylore doctor --repair NEW` reads it, before anything else is written"
        )
    if checked.has_checksums:
        return Finding("pages", "good", "every page has its checksum")
    message = f"{path} has no checksums, so damage may not be noticed"
    remedy = "the next command that may write adds them, if no other process uses the file"
    return Finding("pages", "note", message, COMPACT if checked.size > MAX_REWRITTEN_BYTES else remedy)


def _check_disk(folder: Path) -> Iterator[Finding]:
    """Check that the disk has room."""
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        message = f"{free / 1e6:,.0f} MB are free in {folder}; when the disk is full, writes fail"
        yield Finding("disk", "wrong", message, f"free {MIN_FREE_BYTES / 1e6:,.0f} MB, or put the store elsewhere")
    else:
        yield Finding("disk", "good", f"{free / 1e9:,.1f} GB are free")


def _check_server(url: str) -> Iterator[Finding]:
    """Check that a PostgreSQL server answers and has pgvector."""
    if find_spec("psycopg") is None or find_spec("pgvector") is None:
        yield Finding("store", "wrong", "PostgreSQL needs its driver", "pip install 'waylore[postgres]'")
        return
    from waylore.store.postgres.connections import may_reach_replica  # noqa: PLC0415
    from waylore.store.postgres.setup import inspect_database, is_too_old  # noqa: PLC0415

    try:
        schema, has, available, is_pooled, has_checksums = inspect_database(url, wait_seconds=SERVER_TIMEOUT_SECONDS)
    except StoreError as error:
        remedy = "start the server, or correct host, port, user and password in the address"
        yield Finding("store", "wrong", str(error), remedy)
        return
    version = has or available
    if not version:
        message = "the server has no pgvector"
        yield Finding("store", "wrong", message, "install pgvector 0.8 or newer on the server")
    elif is_too_old(version):
        message = f"the server has pgvector {version}, Waylore needs 0.8"
        yield Finding(
            "store", "wrong", message, "install a newer version on the server, then ALTER EXTENSION vector UPDATE"
        )
    else:
        yield Finding("store", "good", f"pgvector {version}")
        if may_reach_replica(url):
            message = f"{without_password(url)} has several servers, so a replica may be taken for the primary"
            yield Finding("store", "wrong", message, "add ?target_session_attrs=read-write to the address")
        if is_pooled:
            remedy = "nothing to do; run `waylore migrate`, `compact` and `cells` with the address of the server itself"
            yield Finding("store", "note", "a pooler is between Waylore and the server", remedy)
        if not has_checksums:
            message = "the server has no data checksums, so damage may not be noticed"
            yield Finding("pages", "note", message, ENABLE_CHECKSUMS)
        yield _check_server_schema(url, schema)


def _check_server_schema(url: str, schema: int) -> Finding:
    from waylore.store.postgres.setup import has_old_schema  # noqa: PLC0415 (optional driver)

    if has_old_schema(url, wait_seconds=SERVER_TIMEOUT_SECONDS):
        message = f"{without_password(url)} has the schema of the old name"
        remedy = "the next command renames it; keep a backup, older versions cannot open it"
        return Finding("store", "note", message, remedy)
    return describe_schema(without_password(url), schema, load_migrations("waylore.store.postgres")[-1][0])


def describe_schema(place: str, schema: int, newest: int) -> Finding:
    """Compare the schema of a store with the newest one."""
    if schema > newest:
        message = f"{place} has schema {schema}, this version reads up to {newest}"
        return Finding("store", "wrong", message, "upgrade Waylore: pip install --upgrade waylore")
    if 0 < schema < newest:
        message = f"{place} has schema {schema}, this version has {newest}"
        return Finding(
            "store", "note", message, "the next command upgrades it; keep a copy, older versions cannot open it"
        )
    if not schema:
        return Finding("store", "note", f"{place} is empty", "add to it with `waylore add PATH`")
    return Finding("store", "good", f"{place}, schema {newest}")
