"""Back up a store in a file into a folder, verify the folder, and restore it.

The copy is the store at one moment, and nobody who writes has to wait. It is verified before it gets its name: every
page has its checksum, and every document the digest that was stored with it. `MANIFEST.json` has the hash of each part
and a digest of each collection, so a changed copy is noticed. The keys of a service are in the same file.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path

from waylore import __version__
from waylore.errors import ConfigError, DamagedStore, NotFound, SchemaOutdated
from waylore.service.integrity import check_documents
from waylore.service.spool import sync_file, sync_folder
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import list_collections, read_schema, translate_errors
from waylore.store.sqlite.pages import copy_file
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.store.urls import parse_url

FORMAT = 1
MANIFEST, COPY = "MANIFEST.json", "store.waylore"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SavedCollection:
    """A collection of a backup: its size, its embedding model, and a digest of all its documents."""

    documents: int
    passages: int
    model: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains: its format, who wrote it and when, its collections by name, and the hash of each part."""

    format: int
    version: str
    schema: int
    created_at: str
    collections: Mapping[str, SavedCollection]
    parts: Mapping[str, str]


def back_up(url: str, folder: Path, *, progress: Progress = lambda _: None) -> Manifest:
    """Copy the store of a URL into a new folder, verify the copy, and return what it contains."""
    if folder.exists():
        raise ConfigError(f"{folder} exists already; name a new folder for the backup")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    progress("copying")
    _copy(find_file(url), part / COPY)
    progress("verifying")
    manifest = Manifest(
        FORMAT,
        __version__,
        read_schema(str(part / COPY)) or 0,
        datetime.now(UTC).isoformat(timespec="seconds"),
        describe_collections(part / COPY),
        {COPY: _hash(part / COPY)},
    )
    _write_durably(part / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
    part.rename(folder)
    sync_folder(folder.parent)
    return manifest


def verify_backup(folder: Path) -> Manifest:
    """Return what a backup contains. Raise DamagedStore if it is not what was written."""
    manifest = read_manifest(folder)
    for name, expected in manifest.parts.items():
        if not (folder / name).is_file() or _hash(folder / name) != expected:
            raise DamagedStore(f"{folder / name} is missing or was changed; use another backup")
    return manifest


def restore(folder: Path, url: str, *, progress: Progress = lambda _: None) -> Manifest:
    """Restore a backup as a new store, and check that its documents are those of the backup."""
    file = parse_url(url).path if _is_file(url) else None
    if file is None or file.exists():
        raise ConfigError(f"{url} exists already or is no file; name a new file with --store")
    progress("verifying")
    manifest = verify_backup(folder)
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    progress("copying")
    _copy(folder / COPY, part)
    if describe_collections(part) != manifest.collections:
        raise DamagedStore(f"the documents of {folder} are not those of its {MANIFEST}; use another backup")
    part.rename(file)
    sync_folder(file.parent)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Read what a backup contains. Raise an error that says what to do if this version cannot read it."""
    file = folder / MANIFEST
    if not file.is_file():
        raise NotFound(f"{folder} is no backup: it has no {MANIFEST}; make one with `waylore backup FOLDER`")
    written = json.loads(file.read_text("utf-8"))
    newest = max(step.number for step in load_migrations("waylore.store.sqlite"))
    if written["format"] > FORMAT or written["schema"] > newest:
        raise SchemaOutdated(
            f"{folder} was written by Waylore {written['version']}, which is newer than this one; install that version"
        )
    collections = {name: SavedCollection(**each) for name, each in written["collections"].items()}
    return Manifest(**{**written, "collections": collections})


def describe_collections(file: Path) -> dict[str, SavedCollection]:
    """Return the collections of a file with digests made anew. Raise DamagedStore if a page or document is damaged."""
    checked = check_pages(str(file))
    if checked.damaged:
        raise DamagedStore(f"{file} has {len(checked.damaged)} damaged pages; run `waylore doctor` on the store")
    return {name: _describe(file, name) for name, *_ in list_collections(str(file))}


def _describe(file: Path, collection: str) -> SavedCollection:
    """Read every document of a collection and compare its digest with the stored one."""
    digest = sha256()
    with closing(SqliteStore(file, collection)) as store:
        size = store.statistics()
        for document in check_documents(store):
            if not document.is_whole:
                raise DamagedStore(f"{document.uri or document.id} in {file} is damaged; run `waylore doctor`")
            digest.update(f"{document.id} {document.digest}\n".encode())
    return SavedCollection(size.documents, size.passages, size.model, digest.hexdigest())


def _copy(file: Path, to: Path) -> None:
    with translate_errors(str(file)):
        copy_file(str(file), str(to))


def find_file(url: str) -> Path:
    """Return the file of a store. Raise an error that says what to do if it is on a server, or does not exist."""
    if not _is_file(url):
        raise ConfigError("this works only with a store in a file so far; for PostgreSQL use pg_dump as the owner")
    file = parse_url(url).path
    if not file.exists():
        raise NotFound(f"no store at {file}; name one with --store")
    return file


def _is_file(url: str) -> bool:
    parsed = parse_url(url)
    return parsed.is_file and not parsed.is_cells


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _write_durably(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8") as opened:
        opened.write(text)
        sync_file(opened)
