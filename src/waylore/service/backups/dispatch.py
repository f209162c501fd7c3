"""Back up a store into a folder, verify the folder, and restore it, by the engine that its URL names."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from waylore.errors import ConfigError, DamagedStore, StoreError, StoreUnavailable
from waylore.service.backups.file import COPY, find_file, load_file, save_file
from waylore.service.backups.manifest import Manifest, Progress, check_parts, read_manifest, write_manifest
from waylore.store.urls import parse_url, require_driver
from waylore.system import sync_folder

TARGETS = {"sqlite": "a new file", "postgresql": "an empty database, postgresql://…,"}  # target of a restore by engine


def back_up(url: str, folder: Path, *, progress: Progress = lambda _: None) -> Manifest:
    """Copy the store of a URL into a new folder, verify the copy, and return its manifest."""
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


def verify_backup(folder: Path, url: str = "", *, progress: Progress = lambda _: None) -> tuple[Manifest, bool]:
    """Restore a backup as a trial and remove the trial. Return the manifest, and whether a trial was possible.

    A backup of a file is restored into a temporary file, a backup of PostgreSQL into the empty database of the URL.
    Without a URL, only the hashes of its parts are compared. Raise DamagedStore if the backup was changed.
    """
    manifest = read_manifest(folder)
    if url:
        require_no_cells(url)
        _require_engine(folder, manifest, url)
    if manifest.engine != "sqlite" and not url:
        check_parts(folder, manifest)
        return manifest, False
    try:
        with TemporaryDirectory() as scratch:
            target = f"{scratch}/{COPY}" if manifest.engine == "sqlite" else url
            _load(folder, manifest, target, progress, is_trial=True)
    except (StoreUnavailable, ConfigError):
        raise
    except StoreError as error:
        raise DamagedStore(f"{folder} cannot be restored ({error}); use another backup") from error
    return manifest, True


def restore(folder: Path, url: str, *, progress: Progress = lambda _: None) -> Manifest:
    """Restore a backup as a new store, and check that it has the documents of the backup."""
    require_no_cells(url)
    manifest = read_manifest(folder)
    _require_engine(folder, manifest, url)
    _load(folder, manifest, url, progress)
    return manifest


def _require_engine(folder: Path, manifest: Manifest, url: str) -> None:
    """Raise ConfigError if a backup has another engine than the store of a URL."""
    if manifest.engine != parse_url(url).scheme:
        raise ConfigError(
            f"{folder} is a backup of {manifest.engine}: name {TARGETS[manifest.engine]} with --store; to change the "
            "engine, restore it there, then run `waylore export` and `waylore import` for each collection"
        )


def require_no_cells(url: str) -> None:
    """Raise ConfigError for a catalogue of cells, because its databases have no common snapshot."""
    if parse_url(url).is_cells:
        raise ConfigError("a backup has one database: back up the catalogue and each cell by their own addresses")


def _save(url: str, part: Path, progress: Progress) -> Manifest:
    if not parse_url(url).is_server:
        return save_file(find_file(url), part, progress)
    with require_driver():
        from waylore.service.backups.server import save_database  # noqa: PLC0415 (optional driver)
    return save_database(url, part, progress)


def _load(folder: Path, manifest: Manifest, url: str, progress: Progress, *, is_trial: bool = False) -> None:
    if not parse_url(url).is_server:
        load_file(folder, manifest, parse_url(url).path, progress)
        return
    with require_driver():
        from waylore.service.backups.server import load_database  # noqa: PLC0415 (optional driver)
    load_database(folder, manifest, url, progress, is_trial=is_trial)
