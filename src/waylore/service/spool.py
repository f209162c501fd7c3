"""Uploads: a body of any length goes to a file in the spool folder as it comes, and never into memory.

A file is there under its final name only when all of it is, synced to the disk: before that it is a `.part`.
Its name holds the job that is to add it and a hash of its bytes. A sender that stalls, is too slow, sends too
much or goes away leaves nothing behind; what a process that died left behind goes after a day. What is done
with a file is decided by a job.
"""

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO
from uuid import uuid4

from waylore.errors import ConfigError
from waylore.settings.sections import Http

NAME = ".name"
WRITTEN = 1 << 20  # bytes that are gathered before they are written
RESERVE = 0.05  # of the disk is left to others
LARGEST_RESERVE = 1_000_000_000  # bytes of it, at most
OLD = 86_400.0  # seconds after which what nobody claims is taken for left behind
_ADDRESSED = re.compile(r"(?P<job>[0-9a-f]{32})-[0-9a-f]{64}(\.[a-z0-9]{1,16})?")


class Refused(Exception):
    """An upload that is not taken: the HTTP status that says so, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(slots=True)
class Places:
    """How many may do something at the same time, and how many do."""

    what: str
    most: int
    taken: int = field(default=0)

    @property
    def is_full(self) -> bool:
        """Whether one more would be refused."""
        return self.taken >= self.most

    @contextmanager
    def one(self) -> Iterator[None]:
        """A place for as long as the block lasts."""
        if self.is_full:
            raise Refused(503, f"there are {self.taken} {self.what} already: try again in a moment")
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder of uploads, what all who see it call it, and places for those that come."""

    folder: Path
    name: str
    places: Places

    def free(self) -> int:
        """Bytes that may still be written."""
        disk = shutil.disk_usage(self.folder)
        return disk.free - min(int(disk.total * RESERVE), LARGEST_RESERVE)

    def sweep(self, unfinished: Callable[[Sequence[str]], frozenset[str]]) -> int:
        """Remove what is old and belongs to no job that is still to be done; how many files that was."""
        before = time.time() - OLD
        old = [path for path in self.folder.iterdir() if path.name != NAME and _changed(path) < before]
        jobs = {path: found["job"] for path in old if (found := _ADDRESSED.fullmatch(path.name))}
        kept = unfinished(sorted(set(jobs.values()))) if jobs else frozenset()
        gone = [path for path in old if jobs.get(path) not in kept]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)


def open_spool(http: Http) -> Spool:
    """The folder that the settings name, or one of our own below the system's temporary one."""
    folder = http.spool or Path(tempfile.gettempdir()) / f"waylore-spool-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if http.spool is None and (folder.is_symlink() or folder.stat().st_uid != os.getuid()):
            raise ConfigError(f"{folder} is somebody else's: set http.spool to a folder of your own")
        return Spool(folder, _name(folder), Places("uploads", http.uploads))
    except OSError as error:
        told = error.strerror or error
        raise ConfigError(f"uploads cannot be kept in {folder} ({told}): set http.spool to another") from error


async def spooled(
    spool: Spool, body: AsyncIterable[bytes], *, job: str, suffix: str, declared: int | None, http: Http
) -> tuple[Path, int]:
    """The file of a body that came to its end, and its size; any other leaves nothing."""
    _check_size(declared or 0, http)
    _check_room(declared or 0, spool)
    part = spool.folder / f"{job}.part"
    digest, size = blake2b(digest_size=32), 0
    try:
        with part.open("xb") as file:
            async for few in _gathered(_paced(body, http)):
                size += len(few)
                _check_room(len(few), spool)
                digest.update(few)
                await asyncio.to_thread(_write, file, few)
            _check_end(size, declared)
            await asyncio.to_thread(_sync, file)
        path = spool.folder / f"{job}-{digest.hexdigest()}{suffix}"
        part.rename(path)
    except OSError as error:
        raise Refused(507, f"the upload cannot be kept ({error.strerror or error}): try later") from error
    finally:
        part.unlink(missing_ok=True)
    await asyncio.to_thread(_sync_folder, spool.folder)
    return path, size


async def _paced(body: AsyncIterable[bytes], http: Http) -> AsyncIterator[bytes]:
    """What comes, as long as it comes steadily and fast enough, and is not too much."""
    began, size, coming = time.monotonic(), 0, aiter(body)
    while True:
        try:
            async with asyncio.timeout(http.stall):
                few = await anext(coming, None)
        except TimeoutError:
            raise Refused(408, f"nothing came for {http.stall:g} seconds: send it again") from None
        if few is None:
            return
        size += len(few)
        _check_size(size, http)
        if size < http.pace * (time.monotonic() - began - http.stall):
            raise Refused(408, f"it comes at less than {http.pace} bytes a second: send it again, faster")
        yield few


async def _gathered(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    gathered = bytearray()
    async for few in body:
        gathered += few
        if len(gathered) >= WRITTEN:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _check_size(size: int, http: Http) -> None:
    if size > http.max_upload:
        raise Refused(413, f"it has more than {http.max_upload:,} bytes: split it, or raise http.max_upload")


def _check_room(size: int, spool: Spool) -> None:
    if spool.free() < size:
        raise Refused(507, "the disk is nearly full: try later, or set http.spool to another folder")


def _check_end(size: int, declared: int | None) -> None:
    if not size:
        raise Refused(422, "there is nothing in it: send the file as the body of the request")
    if declared is not None and size != declared:
        raise Refused(400, f"{size} bytes came of {declared}: send it again")


def _write(file: IO[bytes], few: bytes) -> None:
    file.write(few)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _name(folder: Path) -> str:
    """What a spool folder is called by all who see it: made up by the first of them."""
    own = folder / f"{uuid4().hex}.part"
    own.write_text(uuid4().hex)
    try:
        os.link(own, folder / NAME)
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return (folder / NAME).read_text()


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # somebody else removed it
        return time.time()
