"""Blank the bytes of a SQLite file that belong to no row, and count pages that still hold some.

`secure_delete` overwrites deleted rows. But when SQLite moves rows to another page, it leaves copies in the
unallocated middle of the old page, and these copies outlive the rows. Therefore Waylore runs its own
checkpoints, through a VFS that blanks this middle when a page is copied from the log to the file. Pages are
also read through SQLite, because a process that opens and closes the file on its own drops SQLite's locks. This
module knows no tables.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
from apsw import VFS, VFSFile

READER_WAIT_SECONDS = 0.5  # while a checkpoint waits for readers, no connection can write
MAX_LOG_PAGES = 1_000  # pages in the log from which on a commit runs a checkpoint
_VFS = "waylore-blanking"
_FIRST_HEADER = 100  # bytes before the header of page 1
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}  # length of the header by kind of b-tree page, in bytes
_MAX_PAGES = 1 << 25  # from here on a page number can begin with a byte that looks like a kind
_CHUNK_PAGES = 128  # pages per read


def checkpoint(path: str, *, truncate_log: bool = False) -> bool:
    """Copy committed pages from the log to the file, and return whether no other connection prevented it.

    With `truncate_log` it also waits for readers, up to `READER_WAIT_SECONDS`, and empties the log.
    """
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate_log else apsw.SQLITE_CHECKPOINT_PASSIVE
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=_VFS)
    try:
        db.set_busy_timeout(int(READER_WAIT_SECONDS * 1000))
        db.pragma("schema_version")  # before its first read a connection does not know that there is a log
        db.wal_checkpoint(mode=mode)
    except apsw.BusyError:
        return False
    finally:
        db.close()
    return True


def checkpoint_when_long(db: apsw.Connection, _: str, pages: int) -> int:
    """Run a checkpoint if the log is long; called after each commit, in place of SQLite's own checkpoints."""
    if pages >= MAX_LOG_PAGES:
        with suppress(apsw.Error):  # the commit is safe, and the next one tries again
            checkpoint(db.filename)
    return apsw.SQLITE_OK


def measure_log(path: str) -> int:
    """Return the size of the log in bytes."""
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0


# -- blanking ------------------------------------------------------------------------------------------


def find_unallocated(page: bytes, number: int) -> slice:
    """Return the middle of a b-tree page, between its cell pointers and its cells; empty for any other page."""
    at = _FIRST_HEADER if number == 1 else 0
    header = _HEADERS.get(page[at])
    if header is None or number >= _MAX_PAGES:
        return slice(0, 0)
    cells, content = struct.unpack_from(">HH", page, at + 3)
    return slice(at + header + 2 * cells, content or 65_536)


class _BlankingFile(VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._has_pages = bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._has_pages:
            page = bytearray(data)
            middle = find_unallocated(data, offset // len(data) + 1)
            page[middle] = bytes(middle.stop - middle.start)
            data = bytes(page)
        super().xWrite(data, offset)


class _BlankingVFS(VFS):
    def __init__(self) -> None:
        super().__init__(_VFS, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> VFSFile:  # noqa: N802
        return _BlankingFile(name, flags)


_BLANKING = _BlankingVFS()  # SQLite uses it as long as this object exists


# -- reading -------------------------------------------------------------------------------------------


def read_pages(db: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    """Yield every page of the file with its number, as stored on disk."""
    size = int(db.pragma("page_size"))
    count = int(db.pragma("page_count"))
    for first in range(0, count, _CHUNK_PAGES):
        amount = min(_CHUNK_PAGES, count - first)
        _, read = db.read("main", 0, first * size, amount * size)
        for at in range(amount):
            yield first + at + 1, read[at * size : (at + 1) * size]


def count_unclean(db: apsw.Connection) -> tuple[int, int]:
    """Count the free pages, and the pages in use, that hold bytes of no row."""
    count = int(db.pragma("page_count"))
    trunks, leaves = _list_free(db, count)
    free = used = 0
    for number, page in read_pages(db):
        if number in leaves:
            free += page.count(0) < len(page)
        elif number in trunks:
            free += not _is_trunk_clean(page, count)
        else:
            middle = find_unallocated(page, number)
            used += page.count(0, middle.start, middle.stop) < middle.stop - middle.start
    return free, used


def _list_free(db: apsw.Connection, count: int) -> tuple[set[int], set[int]]:
    """Return the trunk pages of the free list, and the free pages that they list."""
    size = int(db.pragma("page_size"))
    _, first = db.read("main", 0, 0, size)
    (trunk,) = struct.unpack_from(">I", first, 32)
    trunks: set[int] = set()
    leaves: set[int] = set()
    while 0 < trunk <= count and trunk not in trunks:
        trunks.add(trunk)
        _, page = db.read("main", 0, (trunk - 1) * size, size)
        trunk, listed = struct.unpack_from(">II", page)
        leaves.update(struct.unpack_from(f">{listed}I", page, 8))
    return trunks, leaves


def _is_trunk_clean(page: bytes, count: int) -> bool:
    """Return whether a trunk page holds only page numbers. Numbers that it listed before may remain."""
    return all(number <= count for number in struct.unpack_from(f">{len(page) // 4 - 2}I", page, 8))
