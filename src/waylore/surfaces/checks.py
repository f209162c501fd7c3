"""The checks of `waylore doctor`: functions that yield findings, each with its remedy.

They check settings, models, store, collection and disk. They create no file, upgrade no schema, and do not examine the
stored content; but every page of a file is compared with its checksum.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from waylore.cells.open import open_catalogue
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, DamagedStore, ModelError, StoreError, WayloreError
from waylore.project import PROJECT, find_project_file
from waylore.protocols import Embedder
from waylore.service.integrity import list_disagreements
from waylore.settings.load import (
    find_unknown_variables,
    list_old_settings,
    load,
    suggest,
)
from waylore.settings.names import PREFIX
from waylore.settings.sections import Settings
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import MAX_REWRITTEN_BYTES, is_read_only, read_schema
from waylore.store.sqlite.verify import CheckedPages, check_pages
from waylore.store.urls import open_store, parse_url, without_password
from waylore.surfaces.open import create_embedder, create_extractor, create_reranker
from waylore.surfaces.terminal.hits import count

State = Literal["good", "note", "wrong"]
MIN_FREE_BYTES = 200_000_000  # on the disk of the store
SERVER_TIMEOUT_SECONDS = 5
MAX_PAGES_SHOWN = MAX_LINES_SHOWN = 10
RESTORE = "restore a backup with `waylore restore`, or save what is whole with `waylore doctor --repair NEW`"
COMPACT = "run `waylore compact` while no other process uses the file"
ENABLE_CHECKSUMS = "stop the server, run `pg_checksums --enable` on its data folder, and start it"
FORMATS = {"markdown_it": "Markdown", "lxml": "HTML", "pypdf": "PDF", "docx": "DOCX", "pathspec": ".gitignore"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: its subject, its state, a message, and the remedy for a problem."""

    subject: str
    state: State
    message: str
    remedy: str = ""


def run_checks(is_deep: bool = False, /, **options: Any) -> Iterator[Finding]:
    """Run all checks on this machine, these settings and this store; the deep ones read every document."""
    yield from _check_old_settings()
    yield from _check_variables()
    try:
        settings = load(**options)
    except ConfigError as error:
        is_untrusted = "`waylore trust" in str(error)
        remedy = "trust only files whose origin you know" if is_untrusted else "edit the file or variable that it names"
        yield Finding("settings", "wrong", str(error), remedy)
        return
    yield Finding("settings", "good", _describe_source())
    yield from _check_readers()
    embedder, of_models = _check_models(settings)
    yield from of_models
    of_store = list(check_store(settings.store))
    yield from of_store
    if all(finding.state == "good" or finding.remedy in (COMPACT, ENABLE_CHECKSUMS) for finding in of_store):
        yield from _check_collection(settings, embedder)
        if is_deep:
            yield from _check_content(settings)


def _check_old_settings() -> Iterator[Finding]:
    """Yield variables and files that have the old name of this product, which are not read."""
    for old, new in list_old_settings():
        yield Finding("settings", "note", f"{old} is not read", f"rename it to {new}")


def _check_variables() -> Iterator[Finding]:
    """Yield variables with our prefix that are no setting."""
    for name in find_unknown_variables():
        setting = suggest(name.removeprefix(PREFIX).lower().replace("_", ".", 1))
        hint = (
            f"did you mean {PREFIX}{setting.replace('.', '_').upper()}?"
            if setting
            else "list them with `waylore config`"
        )
        yield Finding("settings", "wrong", f"unknown setting {name}", hint)


def _check_readers() -> Iterator[Finding]:
    """Yield formats whose library is not installed."""
    missing = [form for module, form in FORMATS.items() if find_spec(module) is None]
    if missing:
        yield Finding("files", "note", f"{', '.join(missing)} cannot be read", "pip install 'waylore[files]'")


# -- models --------------------------------------------------------------------------------------------


def _check_models(settings: Settings) -> tuple[Embedder | None, list[Finding]]:
    """Return the embedder, if it can be loaded, and the findings about it and the extractor."""
    found: list[Finding] = []
    embedder = None
    try:
        embedder = create_embedder(settings.embedding)
    except (ModelError, ConfigError) as error:
        remedy = "correct [embedding] in waylore.toml, or choose another; none searches words only"
        found.append(Finding("model", "wrong", _get_first_line(error), remedy))
    else:
        found.append(_describe_embedder(embedder))
    try:
        create_extractor(settings.extraction)
    except (ModelError, ConfigError) as error:
        found.append(Finding("extraction", "wrong", _get_first_line(error), "correct [extraction] in waylore.toml"))
    return embedder, found + list(_check_reranker(settings))


def _check_reranker(settings: Settings) -> Iterator[Finding]:
    """Let the reranker score a pair of words, if the settings name one."""
    try:
        reranker = create_reranker(settings)
        if reranker:
            reranker.rerank("test", ["test"])
            yield Finding("reranker", "good", getattr(reranker, "name", settings.search.reranker))
    except Exception as error:  # noqa: BLE001 (a plugin may raise any)
        remedy = "correct search.reranker and [reranking] in waylore.toml; until then hits keep their order"
        yield Finding("reranker", "wrong", _get_first_line(error), remedy)


def _describe_embedder(embedder: Embedder | None) -> Finding:
    if embedder is None:
        installed = "" if find_spec("fastembed") else "pip install 'waylore[local]', then "
        remedy = f'{installed}set embedding.provider = "fastembed" in waylore.toml'
        return Finding("model", "note", "no embedder: only words are searched", remedy)
    return Finding("model", "good", f"{embedder.name}, {embedder.dimension} dimensions")


# -- the store -----------------------------------------------------------------------------------------


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
    catalogue = open_catalogue(url)
    try:
        known = catalogue.get_cells().values()
    finally:
        catalogue.close()
    if not known:
        yield Finding(
            "store", "wrong", "the catalogue has no cells", "add one with `waylore cells add NAME URL --catalogue …`"
        )
    for cell in known:
        yield from check_store(cell.url)


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
    """Report a file that can only be read. A schema that must be upgraded is wrong, because it cannot be."""
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


# -- the collection ------------------------------------------------------------------------------------


def _check_content(settings: Settings) -> Iterator[Finding]:
    """Compare every document of the collection with its digest, and indexes and counts with the documents."""
    with closing(open_store(settings.store, settings.collection)) as store:
        wrong = list(list_disagreements(store))
    for line in wrong[:MAX_LINES_SHOWN]:
        yield Finding("content", "wrong", line, RESTORE)
    if len(wrong) > MAX_LINES_SHOWN:
        yield Finding("content", "wrong", f"{len(wrong) - MAX_LINES_SHOWN} more", RESTORE)
    if not wrong:
        yield Finding("content", "good", "every document has its digest, and indexes and counts agree with them")


def _check_collection(settings: Settings, embedder: Embedder | None) -> Iterator[Finding]:
    """Check that the collection was made with the model of the settings."""
    name = settings.collection
    try:
        with Waylore.open(settings.store, collection=name) as memory:
            known = memory.stats()
    except WayloreError as error:
        yield Finding("collection", "wrong", str(error))
        return
    if not known.documents:
        yield Finding("collection", "note", f"{name} is empty", "add to it with `waylore add PATH`")
    elif known.model and embedder is None:
        message = f"{name} was embedded with {known.model}, but no embedder is set, so only words are searched"
        yield Finding("collection", "wrong", message, "set embedding.provider and model in waylore.toml")
    elif embedder and known.model != embedder.name:
        message = f"{name} was embedded with {known.model or 'no model'}, the settings name {embedder.name}"
        yield Finding("collection", "wrong", message, "set that model in waylore.toml, or run `waylore reembed`")
    else:
        yield Finding(
            "collection", "good", f"{name}: {count(known.documents, 'document')}, {count(known.facts, 'fact')}"
        )


def _get_first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _describe_source() -> str:
    file = find_project_file()
    return f"from {file}" if file.is_file() else f"no {PROJECT}; defaults and variables are used"
