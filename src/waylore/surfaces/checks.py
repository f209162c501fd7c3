"""What a new user gets wrong, found: each check is a function that gives findings, each with its remedy.

No file is made and no schema upgraded by looking. It says what is wrong with settings, model, store,
collection and disk; it does not look into what is stored.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from waylore.cells.open import open_catalogue
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, ModelError, StoreError, WayloreError
from waylore.protocols import Embedder
from waylore.settings.load import PROJECT, Settings, load, unknown_variables, without_password
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import schema_of
from waylore.store.urls import parse_url
from waylore.surfaces.open import embedder_of, extractor_of
from waylore.surfaces.terminal.hits import many

State = Literal["good", "note", "wrong"]
ROOM = 200_000_000  # bytes that should be free where the store is
PATIENCE = 5  # seconds that a server may take to answer
FILES = {"markdown_it": "Markdown", "lxml": "HTML", "pypdf": "PDF", "docx": "DOCX", "pathspec": ".gitignore"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, whether it is good, what is to be said of it, and what to do about it."""

    about: str
    state: State
    told: str
    remedy: str = ""


def findings(**options: Any) -> Iterator[Finding]:
    """Everything that can be said of this machine, these settings and this store."""
    yield from variables()
    try:
        settings = load(**options)
    except ConfigError as error:
        yield Finding("settings", "wrong", str(error), f"edit {PROJECT} or the variable that it names")
        return
    yield Finding("settings", "good", f"from {PROJECT}" if PROJECT.exists() else f"no {PROJECT}: defaults")
    yield from readers()
    embedder, of_models = models(settings)
    yield from of_models
    of_store = list(store(settings.store))
    yield from of_store
    if all(finding.state == "good" for finding in of_store):
        yield from collection(settings, embedder)


def variables() -> Iterator[Finding]:
    """Variables that look like ours and are read by nobody: somebody misspelled one."""
    for name in unknown_variables():
        yield Finding("settings", "wrong", f"{name} is no setting", "`waylore config` lists their names")


def readers() -> Iterator[Finding]:
    """Formats that cannot be read for want of a library."""
    lacking = [form for module, form in FILES.items() if find_spec(module) is None]
    if lacking:
        yield Finding("files", "note", f"{', '.join(lacking)} cannot be read", "pip install 'waylore[files]'")


# -- models --------------------------------------------------------------------------------------------


def models(settings: Settings) -> tuple[Embedder | None, list[Finding]]:
    """The embedder, where it can be loaded, and what is to be said of it and of the extractor."""
    found: list[Finding] = []
    embedder = None
    try:
        embedder = embedder_of(settings.embedding)
    except (ModelError, ConfigError) as error:
        remedy = "mend [embedding] in waylore.toml, or choose another: none searches words only"
        found.append(Finding("model", "wrong", _first_line(error), remedy))
    else:
        found.append(_embedding(embedder))
    try:
        extractor_of(settings.extraction)
    except (ModelError, ConfigError) as error:
        found.append(Finding("extraction", "wrong", _first_line(error), "mend [extraction] in waylore.toml"))
    return embedder, found


def _embedding(embedder: Embedder | None) -> Finding:
    if embedder is None:
        installed = "" if find_spec("fastembed") else "pip install 'waylore[local]', then "
        remedy = f'{installed}set embedding.provider = "fastembed" in waylore.toml'
        return Finding("model", "note", "no embedder: only words are searched", remedy)
    return Finding("model", "good", f"{embedder.name}, {embedder.dimension} dimensions")


# -- the store -----------------------------------------------------------------------------------------


def store(url: str) -> Iterator[Finding]:
    """What stands behind an address, and whether we can work with it."""
    try:
        parsed = parse_url(url)
        if parsed.is_cells:
            yield from cells(url)
        elif parsed.is_server:
            yield from server(url)
        elif parsed.is_file:
            yield from file(parsed.path)
        else:
            yield Finding(
                "store", "wrong", f"no store for {without_password(url)}", "give a file or postgresql://…"
            )
    except WayloreError as error:
        yield Finding("store", "wrong", str(error), "check --store, or store in waylore.toml")


def cells(url: str) -> Iterator[Finding]:
    """Every cell of a catalogue."""
    parsed = parse_url(url)
    if parsed.is_file and not parsed.path.exists():
        yield Finding(
            "store", "wrong", f"there is no catalogue at {parsed.path}", "`waylore cells add` makes one"
        )
        return
    catalogue = open_catalogue(url)
    try:
        known = catalogue.cells().values()
    finally:
        catalogue.close()
    if not known:
        yield Finding(
            "store", "wrong", "the catalogue has no cells", "`waylore cells add NAME URL --catalogue …`"
        )
    for cell in known:
        yield from store(cell.url)


def file(path: Path) -> Iterator[Finding]:
    """A file: whether it can be written, is ours, and has room to grow."""
    folder = path.resolve().parent
    if not folder.is_dir():
        yield Finding("store", "wrong", f"{folder} is no folder", f"mkdir -p {folder}")
        return
    closed = [place for place in (path, folder) if place.exists() and not os.access(place, os.W_OK)]
    if closed:
        told = f"{closed[0]} is read-only: Waylore writes there, also to count uses"
        yield Finding("store", "wrong", told, f"chmod u+w {closed[0]}, or put the store elsewhere")
        return
    yield from room(folder)
    if path.exists():
        yield from _of_file(path)
    else:
        yield Finding(
            "store", "note", f"there is no {path} yet", "`waylore init`, then `waylore add PATH`, makes it"
        )


def _of_file(path: Path) -> Iterator[Finding]:
    try:
        schema = schema_of(str(path))
    except StoreError as error:
        yield Finding("store", "wrong", str(error), "is it a Waylore file? --store names another")
        return
    if schema is None:
        told = f"{path} is a database of another program"
        yield Finding("store", "wrong", told, "name another file with --store, or store in waylore.toml")
    else:
        yield schema_told(str(path), schema, load_migrations("waylore.store.sqlite")[-1][0])


def room(folder: Path) -> Iterator[Finding]:
    """Whether the disk has room."""
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        told = f"{free / 1e6:,.0f} MB are free in {folder}: when it is full, nothing more is written"
        yield Finding("disk", "wrong", told, f"free {ROOM / 1e6:,.0f} MB, or put the store elsewhere")
    else:
        yield Finding("disk", "good", f"{free / 1e9:,.1f} GB are free")


def server(url: str) -> Iterator[Finding]:
    """A PostgreSQL server: whether it answers, and has what we need."""
    if find_spec("psycopg") is None or find_spec("pgvector") is None:
        yield Finding("store", "wrong", "PostgreSQL needs its driver", "pip install 'waylore[postgres]'")
        return
    from waylore.store.postgres.setup import is_too_old, looked_at  # noqa: PLC0415

    try:
        schema, has, available = looked_at(url, wait_seconds=PATIENCE)
    except StoreError as error:
        remedy = "start it, or mend host, port, user and password in the address"
        yield Finding("store", "wrong", str(error), remedy)
        return
    version = has or available
    if not version:
        told = "the server has no pgvector"
        yield Finding("store", "wrong", told, "install its package on the server, 0.8 or newer")
    elif is_too_old(version):
        told = f"the server has pgvector {version}, Waylore needs 0.8"
        yield Finding("store", "wrong", told, "install it there, then ALTER EXTENSION vector UPDATE")
    else:
        yield Finding("store", "good", f"pgvector {version}")
        yield schema_told(without_password(url), schema, load_migrations("waylore.store.postgres")[-1][0])


def schema_told(place: str, schema: int, newest: int) -> Finding:
    """What a schema that is not this Waylore's own means."""
    if schema > newest:
        told = f"{place} has schema {schema}, this Waylore knows {newest}"
        return Finding("store", "wrong", told, "upgrade Waylore: pip install --upgrade waylore")
    if 0 < schema < newest:
        told = f"{place} has schema {schema}, this Waylore has {newest}"
        return Finding(
            "store", "note", told, "the next command upgrades it; keep a copy, older ones cannot open it"
        )
    if not schema:
        return Finding("store", "note", f"{place} is empty", "`waylore add PATH` fills it")
    return Finding("store", "good", f"{place}, schema {newest}")


# -- the collection ------------------------------------------------------------------------------------


def collection(settings: Settings, embedder: Embedder | None) -> Iterator[Finding]:
    """Whether the collection was made with the model that the settings name."""
    name = settings.collection
    try:
        with Waylore.open(settings.store, collection=name) as memory:
            known = memory.stats()
    except WayloreError as error:
        yield Finding("collection", "wrong", str(error))
        return
    if not known.documents:
        yield Finding("collection", "note", f"{name} is empty", "`waylore add PATH`")
    elif known.model and embedder is None:
        told = f"{name} was embedded with {known.model}, but no embedder is set: only words are searched"
        yield Finding("collection", "wrong", told, "set embedding.provider and model in waylore.toml")
    elif embedder and known.model != embedder.name:
        told = f"{name} was embedded with {known.model or 'no model'}, the settings name {embedder.name}"
        yield Finding("collection", "wrong", told, "name that model in waylore.toml, or run `waylore reembed`")
    else:
        yield Finding(
            "collection", "good", f"{name}: {many(known.documents, 'document')}, {many(known.facts, 'fact')}"
        )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
