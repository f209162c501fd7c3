"""Back up a store into a folder, verify the folder, and restore it, by the engine that its URL names."""

import shutil
from pathlib import Path

from waylore.errors import ConfigError
from waylore.service.backups.file import find_file, load_file, save_file
from waylore.service.backups.manifest import Manifest, Progress, check_parts, read_manifest, write_manifest
from waylore.service.spool import sync_folder
from waylore.store.urls import parse_url, require_driver

TARGETS = {"sqlite": "a new file", "postgresql": "an empty database, postgresql://…,"}  # what each engine restores into


def back_up(url: str, folder: Path, *, progress: Progress = lambda _: None) -> Manifest:
    """Copy the store of a URL into a new folder, verify the copy, and return what it contains."""
    if folder.exists():
        raise ConfigError(f"{folder} exists already; name a new folder for the backup")
    require_no_cells(url)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    manifest = _save(url, part, progress)
    write_manifest(part, manifest)
    sync_folder(part)
    part.rename(folder)
    sync_folder(folder.parent)
    return manifest


def verify_backup(folder: Path) -> Manifest:
    """Return what a backup contains. Raise DamagedStore if it is not what was written."""
    manifest = read_manifest(folder)
    check_parts(folder, manifest)
    return manifest


def restore(folder: Path, url: str, *, progress: Progress = lambda _: None) -> Manifest:
    """Restore a backup as a new store, and check that its documents are those of the backup."""
    require_no_cells(url)
    manifest = read_manifest(folder)
    if manifest.engine != parse_url(url).scheme:
        raise ConfigError(
            f"{folder} is a backup of {manifest.engine}: name {TARGETS[manifest.engine]} with --store; to change the "
            "engine, restore it there, then run `waylore export` and `waylore import` for each collection"
        )
    _load(folder, manifest, url, progress)
    return manifest


def require_no_cells(url: str) -> None:
    """Raise ConfigError for a catalogue of cells, whose databases have no common moment."""
    if parse_url(url).is_cells:
        raise ConfigError("a backup has one database: back up the catalogue and each cell by their own addresses")


def _save(url: str, part: Path, progress: Progress) -> Manifest:
    if not parse_url(url).is_server:
        return save_file(find_file(url), part, progress)
    with require_driver():
        from waylore.service.backups.server import save_database  # noqa: PLC0415 (optional driver)
    return save_database(url, part, progress)


def _load(folder: Path, manifest: Manifest, url: str, progress: Progress) -> None:
    if not parse_url(url).is_server:
        load_file(folder, manifest, parse_url(url).path, progress)
        return
    with require_driver():
        from waylore.service.backups.server import load_database  # noqa: PLC0415 (optional driver)
    load_database(folder, manifest, url, progress)
