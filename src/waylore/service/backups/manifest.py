"""Describe a backup in its `MANIFEST.json`, and check its parts against it.

The manifest has the hash of each part and a digest of each collection, so changes of a backup are detected.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from waylore import __version__
from waylore.errors import DamagedStore, NotFound, SchemaOutdated
from waylore.service.integrity import CheckedDocument
from waylore.service.spool import sync_file
from waylore.store.sql import Migration, load_migrations
from waylore.types.results import Statistics

FORMAT = 2  # format 1 had only files, with the number of their schema as `schema`
MANIFEST = "MANIFEST.json"
# Package and dialect of the migrations of each schema, by engine.
SCHEMAS = {
    "sqlite": {"store": ("waylore.store.sqlite", "")},
    "postgresql": {
        "waylore": ("waylore.store.postgres", ""),
        "waylore_service": ("waylore.service.registry", "postgres"),
        "waylore_jobs": ("waylore.service.jobs", "postgres"),
        "waylore_cells": ("waylore.cells.catalogue", "postgres"),
    },
}
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
    """The content of a backup: version and time, the number of each schema, its collections, the hash of each part.

    `columns` has the columns of each part that contains rows of a table.
    """

    format: int
    version: str
    engine: str
    schemas: Mapping[str, int]
    created_at: str
    collections: Mapping[str, SavedCollection]
    parts: Mapping[str, str]
    columns: Mapping[str, Sequence[str]]


def make_manifest(
    engine: str,
    schemas: Mapping[str, int],
    collections: Mapping[str, SavedCollection],
    parts: Mapping[str, str],
    *,
    columns: Mapping[str, Sequence[str]],
    created_at: datetime,
) -> Manifest:
    """Make the manifest of a backup that this version writes."""
    moment = created_at.astimezone(UTC).isoformat(timespec="seconds")
    return Manifest(FORMAT, __version__, engine, schemas, moment, collections, parts, columns)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a backup to the disk."""
    with (folder / MANIFEST).open("w", encoding="utf-8") as opened:
        opened.write(json.dumps(asdict(manifest), indent=2) + "\n")
        sync_file(opened)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a backup. Raise an error with a remedy if this version cannot read it."""
    file = folder / MANIFEST
    if not file.is_file():
        raise NotFound(f"{folder} is no backup: it has no {MANIFEST}; make one with `waylore backup FOLDER`")
    try:
        written = _convert(json.loads(file.read_text("utf-8")))
    except ValueError as error:
        raise DamagedStore(f"{file} was changed ({error}); use another backup") from error
    if _is_newer(written):
        raise SchemaOutdated(
            f"{folder} was written by Waylore {written['version']}, which is newer than this one; install that version"
        )
    collections = {name: SavedCollection(**each) for name, each in written["collections"].items()}
    return Manifest(**{**written, "collections": collections})


def _convert(written: dict[str, Any]) -> dict[str, Any]:
    """Convert a manifest of format 1 to format 2."""
    if written["format"] != 1:
        return written
    number = written.pop("schema")
    return {**written, "engine": "sqlite", "schemas": {"store": number}, "columns": {}}


def list_migrations(engine: str, schema: str) -> tuple[Migration, ...]:
    """Return the migrations of a schema; none if this version does not know it."""
    known = SCHEMAS.get(engine, {}).get(schema)
    return load_migrations(*known) if known else ()


def find_newest(engine: str, schema: str) -> int:
    """Return the number of the newest migration of a schema; 0 if this version does not know it."""
    return max((step.number for step in list_migrations(engine, schema)), default=0)


def _is_newer(written: Mapping[str, Any]) -> bool:
    numbers = written["schemas"].items()
    return written["format"] > FORMAT or any(n > find_newest(written["engine"], schema) for schema, n in numbers)


def check_parts(folder: Path, manifest: Manifest) -> None:
    """Raise DamagedStore if a part of a backup is missing or was changed."""
    for name, expected in manifest.parts.items():
        if not (folder / name).is_file() or hash_file(folder / name) != expected:
            raise DamagedStore(f"{folder / name} is missing or was changed; use another backup")


def compare_collections(folder: Path, manifest: Manifest, restored: Mapping[str, SavedCollection]) -> None:
    """Raise DamagedStore if restored collections differ from the backup."""
    if restored != manifest.collections:
        raise DamagedStore(f"the documents of {folder} are not those of its {MANIFEST}; use another backup")


def summarise(size: Statistics, documents: Iterable[CheckedDocument], place: object) -> SavedCollection:
    """Return a collection with a digest of its documents. Raise DamagedStore if a document is damaged."""
    digest = sha256()
    for document in documents:
        if not document.is_whole:
            raise DamagedStore(f"{document.uri or document.id} in {place} is damaged; run `waylore doctor`")
        digest.update(f"{document.id} {document.digest}\n".encode())
    return SavedCollection(size.documents, size.passages, size.model, digest.hexdigest())


def hash_file(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
