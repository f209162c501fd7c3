"""Find the files of a source, a path or a URL that fsspec opens, and fetch them for their reader.

A file of a bucket has a version that its server reports, such as an ETag, and is not fetched again while the version
stays the same. Without a version, its bytes are fetched and hashed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from waylore.errors import ConfigError, NotFound
from waylore.indexing import pipeline
from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.files.addresses import Address, escape
from waylore.indexing.files.batches import SkippedFiles
from waylore.indexing.files.compare import LOOKUP_SIZE, KnownFile, find_task_commits, look_up_files, read_fingerprints
from waylore.indexing.files.folders import get_size, list_paths
from waylore.indexing.files.formats import find_reader, get_suffix
from waylore.indexing.files.task import Task
from waylore.indexing.loading.job import Piece
from waylore.store.protocol import Store

UNIT_FILES = 64  # maximum number of files that are prepared together
URL_PLACE = "url"  # place of addresses that are URLs; stored in fingerprints, so the value stays
_VERSIONS = ("ETag", "etag", "md5Hash", "Content-MD5", "Digest")  # names of a file's version in file systems


@dataclass(slots=True)
class FoundFiles:
    """The files of a source: paths with their sizes, or URLs with the details of their server."""

    sizes: dict[Path, int] = field(default_factory=dict)
    urls: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    skipped: SkippedFiles = field(default_factory=SkippedFiles)

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.sizes) + len(self.urls)

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(self.sizes.values()) + sum(int(about.get("size") or 0) for about in self.urls.values())


def is_url(source: str) -> bool:
    """Return whether a source is a URL, such as s3://bucket/folder."""
    return "://" in source


def find_files(source: str, task: Task) -> FoundFiles:
    """List the files of a path or a URL. Raise NotFound if there is nothing."""
    return _find_urls(source, task) if is_url(source) else _find_paths(task)


def _find_paths(task: Task) -> FoundFiles:
    found = FoundFiles()
    for path in list_paths(task.path, root=task.folder):
        if isinstance(path, tuple):
            found.skipped.add(Skipped(task.make_address(path[0]).uri, path[1]))
        else:
            found.sizes[path] = get_size(path)
    return found


def _find_urls(source: str, task: Task) -> FoundFiles:
    system, path = _open_system(source)
    try:
        is_pattern = any(mark in path for mark in "*?[")
        listed = system.glob(path, detail=True) if is_pattern else system.find(path, detail=True)
    except Exception as error:
        raise NotFound(f"{source} cannot be listed: {error}"[:300]) from error
    found = FoundFiles()
    for name, about in sorted(listed.items()):
        if about.get("type") == "directory":
            continue
        url = system.unstrip_protocol(name)
        try:
            find_reader(get_suffix(PurePosixPath(name)), int(about.get("size") or 0), task.limits)
            found.urls[url] = about
        except ReadError as error:
            found.skipped.add(Skipped(escape(url), str(error)))
    if not found.urls and not found.skipped.count:
        raise NotFound(f"no files at {source}; check the address")
    return found


def _open_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ConfigError("a URL needs fsspec: pip install 'waylore[urls]'") from error
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # no package for its scheme, or it is not installed
        raise ConfigError(f"{url} cannot be opened: {error}"[:300]) from error
    return system, path


# -- look up and group ----------------------------------------------------------------------------------


def look_up(found: FoundFiles, stores: Sequence[Store], task: Task) -> Iterator[KnownFile]:
    """Yield the files with their stored fingerprints."""
    commits = find_task_commits(task, found.sizes) if found.sizes else {}
    yield from look_up_files(stores, task, found.sizes, commits)
    for batch in pipeline.split_into_batches(found.urls.items(), LOOKUP_SIZE):
        stored = read_fingerprints(stores, {escape(url) for url, _ in batch})
        for url, about in batch:
            address = Address(escape(url), URL_PLACE)
            version = next((str(about[name]) for name in _VERSIONS if about.get(name)), "")
            own = {address.uri: stored[address.uri]} if address.uri in stored else {}
            size, name = int(about.get("size") or 0), PurePosixPath(url).name
            yield KnownFile(Path(name), size, (address,), own, url=url, version=version)


def group_files(files: Iterable[KnownFile], max_bytes: int) -> Iterator[list[KnownFile]]:
    """Yield files in groups that are prepared together: several small files, or a single long one."""
    group, size = list[KnownFile](), 0
    for file in files:
        if group and (size + file.size > max_bytes or len(group) >= UNIT_FILES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
    if group:
        yield group


# -- fetch ----------------------------------------------------------------------------------------------


@contextmanager
def fetch(piece: Piece) -> Iterator[Path]:
    """Yield the path of a file, or of a temporary copy of it or of its piece."""
    if not piece.file.url and not piece.content:
        yield piece.file.path
        return
    with TemporaryDirectory(prefix="waylore-load-") as folder:
        path = Path(folder) / f"file{get_suffix(piece.file.path)}"
        if piece.content:
            path.write_bytes(piece.content)
        else:
            _download(piece.file.url, path)
        yield path


def _download(url: str, to: Path) -> None:
    """Copy a file of a URL. Raise OSError for any error of the library."""
    system, path = _open_system(url)
    try:
        system.get_file(path, str(to))
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"it cannot be fetched: {error}"[:300]) from error
