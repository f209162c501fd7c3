"""Copy a store in a file into a backup and back.

The copy is a snapshot of the file, and writers need not wait. It is verified before it is used: the checksum of every
page, and the stored digest of every document. The keys of a service are in the same file.
"""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj

from waylore.errors import ConfigError, DamagedStore, NotFound
from waylore.service.backups.manifest import (
    Manifest,
    Progress,
    SavedCollection,
    check_parts,
    compare_collections,
    hash_file,
    make_manifest,
    summarise,
)
from waylore.service.integrity import check_documents
from waylore.service.spool import sync_file
from waylore.store.sqlite.file import list_collections, read_schema, translate_errors
from waylore.store.sqlite.pages import copy_file
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.store.urls import parse_url
from waylore.system import open_private, sync_folder

COPY = "store.waylore"


def save_file(file: Path, folder: Path, progress: Progress) -> Manifest:
    """Copy a file into a folder, verify the copy, and return its manifest."""
    copy = folder / COPY
    progress("copying")
    created_at = datetime.now(UTC)
    _copy(file, copy)
    progress("verifying")
    schemas = {"store": read_schema(str(copy)) or 0}
    collections = describe_collections(copy)
    return make_manifest("sqlite", schemas, collections, {COPY: hash_file(copy)}, columns={}, created_at=created_at)


def load_file(folder: Path, manifest: Manifest, file: Path, progress: Progress) -> None:
    """Restore a backup as a new file, and check that it has the documents of the backup."""
    if file.exists():
        raise ConfigError(f"{file} exists already; name a new file with --store")
    progress("verifying")
    check_parts(folder, manifest)
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    progress("copying")
    _copy_part(folder / COPY, part)
    compare_collections(folder, manifest, describe_collections(part))
    part.rename(file)
    sync_folder(file.parent)


def describe_collections(file: Path) -> dict[str, SavedCollection]:
    """Return the collections of a file with new digests. Raise DamagedStore if a page or document is damaged."""
    checked = check_pages(str(file))
    if checked.damaged:
        raise DamagedStore(f"{file} has {len(checked.damaged)} damaged pages; run `waylore doctor` on the store")
    return {name: _describe(file, name) for name, *_ in list_collections(str(file))}


def _describe(file: Path, collection: str) -> SavedCollection:
    with closing(SqliteStore(file, collection)) as store:
        return summarise(store.statistics(), check_documents(store), file)


def _copy(file: Path, to: Path) -> None:
    with translate_errors(str(file)):
        copy_file(str(file), str(to))


def _copy_part(copy: Path, to: Path) -> None:
    """Copy a part of a backup byte by byte. SQLite would create a log, which fails on a read-only disk."""
    with copy.open("rb") as source, open(to, "wb", opener=open_private) as target:
        copyfileobj(source, target)
        sync_file(target)


def find_file(url: str) -> Path:
    """Return the file of a store. Raise an error with a remedy if the store is on a server or does not exist."""
    parsed = parse_url(url)
    if not parsed.is_file or parsed.is_cells:
        raise ConfigError("this works only with a store in a file; name one with --store")
    if not parsed.path.exists():
        raise NotFound(f"no store at {parsed.path}; name one with --store")
    return parsed.path
