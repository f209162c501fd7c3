"""Uploads on disk: a request body of any length is written to the spool folder while it arrives.

A file gets its final name only when it is complete and synced to disk; before that its name ends in `.part`. The name
contains the id of the job that adds the file, and a hash of its content. If the sender stalls, is too slow, sends too
much or disconnects, the file is deleted. Files of a dead process are deleted after a day. Jobs decide what happens with
a file.
"""

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from waylore import legacy
from waylore.errors import ConfigError
from waylore.settings.sections import HttpSettings
from waylore.system import is_own, name_user, open_private, sync_folder

NAME_FILE = ".name"  # contains the name of the folder, shared by all processes that use it
WRITE_BUFFER_BYTES = 1 << 20  # bytes that are collected before they are written
RESERVED_SHARE = 0.05  # share of the disk that uploads leave free
MAX_RESERVED_BYTES = 1_000_000_000  # upper limit of that share
ORPHAN_AGE_SECONDS = 86_400.0  # a file of this age without an unfinished job is deleted
MAX_SUFFIX_LENGTH = 16  # maximum suffix of a file's name; a longer one is left out
_UPLOAD_NAME = re.compile(r"(?P<job>[0-9a-f]{32})-[0-9a-f]{64}(\..*)?", re.DOTALL)


class UploadRejected(Exception):
    """An upload that is not accepted, with the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class UploadSlots:
    """A limited number of slots, counted by caller. `kind` is the noun for users of slots in messages.

    A quarter more slots are for callers that have less than a quarter, so no caller can take all of them.
    """

    kind: str
    limit: int
    taken: Counter[str] = field(default_factory=Counter)  # by caller

    def is_full(self, caller: str) -> bool:
        """Return whether a caller gets no slot now."""
        share = max(1, self.limit // 4)
        return self.taken.total() >= self.limit + (share if self.taken[caller] < share else 0)

    @contextmanager
    def reserve(self, caller: str) -> Iterator[None]:
        """Take a slot while the block runs. Raise UploadRejected if no slot is free for the caller."""
        if self.is_full(caller):
            raise UploadRejected(503, f"{self.taken.total()} {self.kind} are active already; try again in a moment")
        self.taken[caller] += 1
        try:
            yield
        finally:
            self.taken -= Counter((caller,))


@dataclass(frozen=True, slots=True)
class Spool:
    """The upload folder, its name, which all processes that share it use, and slots for uploads."""

    folder: Path
    name: str
    slots: UploadSlots

    def count_free_bytes(self) -> int:
        """Return how many bytes may still be written."""
        disk = shutil.disk_usage(self.folder)
        return disk.free - min(int(disk.total * RESERVED_SHARE), MAX_RESERVED_BYTES)

    def sweep(self, find_unfinished: Callable[[Sequence[str]], frozenset[str]]) -> int:
        """Delete old files that belong to no unfinished job. Return their number."""
        before = time.time() - ORPHAN_AGE_SECONDS
        old = [path for path in self.folder.iterdir() if path.name != NAME_FILE and _get_mtime(path) < before]
        jobs = {path: match["job"] for path in old if (match := _UPLOAD_NAME.fullmatch(path.name))}
        unfinished = find_unfinished(sorted(set(jobs.values()))) if jobs else frozenset()
        orphans = [path for path in old if jobs.get(path) not in unfinished]
        for path in orphans:
            path.unlink(missing_ok=True)
        return len(orphans)


def open_spool(http: HttpSettings) -> Spool:
    """Open the upload folder of the settings, or a default one in the system's temporary folder."""
    folder = http.upload_dir or _get_default_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if http.upload_dir is None and (folder.is_symlink() or not is_own(folder)):
            raise ConfigError(f"{folder} belongs to another user; set http.upload_dir to a folder of your own")
        return Spool(folder, _read_name(folder), UploadSlots("uploads", http.max_concurrent_uploads))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(
            f"uploads cannot be stored in {folder} ({reason}); set http.upload_dir to another folder"
        ) from error


def _get_default_folder() -> Path:
    """Return the default folder, or the folder with the old name if only that exists: jobs may wait for files in it."""
    folder = Path(tempfile.gettempdir()) / f"waylore-spool-{name_user()}"
    return legacy.find_old_path(folder) or folder


async def save_upload(
    spool: Spool, body: AsyncIterable[bytes], *, job: str, suffix: str, declared: int | None, http: HttpSettings
) -> tuple[Path, int]:
    """Write a complete request body to a file. Return its path and size. An incomplete body leaves no file.

    suffix: the suffix of the file on disk; a job may detect the format by it. No reader has a suffix longer than
        MAX_SUFFIX_LENGTH.
    declared: the length that the request announces, or None.
    """
    _check_size(declared or 0, http)
    _check_free_space(declared or 0, spool)
    part = spool.folder / f"{job}.part"
    digest, size = blake2b(digest_size=32), 0
    try:
        with open(part, "xb", opener=open_private) as file:
            async for data in _collect(_limit_pace(body, http)):
                size += len(data)
                _check_free_space(len(data), spool)
                digest.update(data)
                await asyncio.to_thread(_write, file, data)
            _check_complete(size, declared)
            await asyncio.to_thread(sync_file, file)
        path = spool.folder / f"{job}-{digest.hexdigest()}{suffix if len(suffix) <= MAX_SUFFIX_LENGTH else ''}"
        part.rename(path)
    except OSError as error:
        reason = error.strerror or error
        raise UploadRejected(507, f"the upload cannot be stored ({reason}); try again later") from error
    finally:
        part.unlink(missing_ok=True)
    await asyncio.to_thread(sync_folder, spool.folder)
    return path, size


async def _limit_pace(body: AsyncIterable[bytes], http: HttpSettings) -> AsyncIterator[bytes]:
    """Yield the parts of a body. Raise UploadRejected if it stalls, is too slow or too large."""
    started, size, parts = time.monotonic(), 0, aiter(body)
    while True:
        try:
            async with asyncio.timeout(http.idle_timeout):
                data = await anext(parts, None)
        except TimeoutError:
            reason = f"no data for {http.idle_timeout:g} seconds; send the file again"
            raise UploadRejected(408, reason) from None
        if data is None:
            return
        size += len(data)
        _check_size(size, http)
        if size < http.min_upload_rate * (time.monotonic() - started - http.idle_timeout):
            raise UploadRejected(
                408, f"upload slower than {http.min_upload_rate} bytes per second; send the file again, faster"
            )
        yield data


async def _collect(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Join small parts to buffers of at least WRITE_BUFFER_BYTES."""
    buffer = bytearray()
    async for data in body:
        buffer += data
        if len(buffer) >= WRITE_BUFFER_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _check_size(size: int, http: HttpSettings) -> None:
    if size > http.max_upload_bytes:
        raise UploadRejected(
            413,
            f"the upload has more than {http.max_upload_bytes:,} bytes; split it, or raise http.max_upload_bytes",
        )


def _check_free_space(size: int, spool: Spool) -> None:
    if spool.count_free_bytes() < size:
        raise UploadRejected(507, "the disk is nearly full; try again later, or set http.upload_dir to another folder")


def _check_complete(size: int, declared: int | None) -> None:
    if not size:
        raise UploadRejected(422, "the upload is empty; send the file as the body of the request")
    if declared is not None and size != declared:
        raise UploadRejected(400, f"only {size} of {declared} bytes arrived; send the file again")


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(data)


def sync_file(file: IO[Any]) -> None:
    """Write the content of an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _read_name(folder: Path) -> str:
    """Return the name of a spool folder. The first process that opens the folder chooses a random one."""
    own = folder / f"{uuid4().hex}.part"
    own.write_text(uuid4().hex)
    try:
        os.link(own, folder / NAME_FILE)  # atomic: only one process succeeds
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return (folder / NAME_FILE).read_text()


def _get_mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process removed it
        return time.time()
