"""The bytes of a SQLite file that belong to no row: how they are blanked, and how they are looked at.

`secure_delete` overwrites a row that is deleted. But when SQLite moves rows to another page, it leaves copies
of them in the unallocated middle of the page they came from, and these outlive the rows. So Waylore does its own
checkpoints, through a layer below SQLite that blanks this middle on a page's way from the log to the file.
Bytes are read through SQLite as well: whoever opens and closes the file beside it drops its locks. Nothing
here knows tables.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
from apsw import VFS, VFSFile

PATIENCE = 0.5  # seconds that a checkpoint waits for readers, in which no one else can write
LOG_PAGES = 1_000  # pages in the log that are worth a checkpoint
_VFS = "waylore-blanking"
_FIRST_HEADER = 100  # bytes before the header of page 1
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}  # kinds of b-tree pages, and how long their headers are
_MOST_PAGES = 1 << 25  # where page numbers begin with a byte that could be a kind
_CHUNK = 128  # pages read at once


def checkpoint(path: str, *, is_emptying: bool = False) -> bool:
    """Move what is committed from the log to the file; return whether nobody was in the way.

    If it `is_emptying`, it also waits a little for readers, and cuts the log off.
    """
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if is_emptying else apsw.SQLITE_CHECKPOINT_PASSIVE
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=_VFS)
    try:
        db.set_busy_timeout(int(PATIENCE * 1000))
        db.pragma("schema_version")  # a connection that has read nothing does not know of the log
        db.wal_checkpoint(mode=mode)
    except apsw.BusyError:
        return False
    finally:
        db.close()
    return True


def checkpoint_when_long(db: apsw.Connection, _: str, pages: int) -> int:
    """What a connection calls after each commit, in place of SQLite's own checkpoints."""
    if pages >= LOG_PAGES:
        with suppress(apsw.Error):  # the commit stands; the next one tries again
            checkpoint(db.filename)
    return apsw.SQLITE_OK


def log_size(path: str) -> int:
    """How many bytes the log has."""
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0


# -- blanking ------------------------------------------------------------------------------------------


def unallocated(page: bytes, number: int) -> slice:
    """The middle of a b-tree page, between its list of cells and the cells; nothing of any other page."""
    at = _FIRST_HEADER if number == 1 else 0
    header = _HEADERS.get(page[at])
    if header is None or number >= _MOST_PAGES:
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
            middle = unallocated(data, offset // len(data) + 1)
            page[middle] = bytes(middle.stop - middle.start)
            data = bytes(page)
        super().xWrite(data, offset)


class _BlankingVFS(VFS):
    def __init__(self) -> None:
        super().__init__(_VFS, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> VFSFile:  # noqa: N802
        return _BlankingFile(name, flags)


_BLANKING = _BlankingVFS()  # SQLite knows it for as long as it lives


# -- looking -------------------------------------------------------------------------------------------


def pages(db: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    """Every page of the file with its number, as it lies on the disk."""
    size = int(db.pragma("page_size"))
    count = int(db.pragma("page_count"))
    for first in range(0, count, _CHUNK):
        amount = min(_CHUNK, count - first)
        _, read = db.read("main", 0, first * size, amount * size)
        for at in range(amount):
            yield first + at + 1, read[at * size : (at + 1) * size]


def unclean(db: apsw.Connection) -> tuple[int, int]:
    """How many free pages, and how many pages in use, hold bytes that belong to nothing."""
    count = int(db.pragma("page_count"))
    trunks, leaves = _free(db, count)
    free = used = 0
    for number, page in pages(db):
        if number in leaves:
            free += page.count(0) < len(page)
        elif number in trunks:
            free += not _is_trunk_clean(page, count)
        else:
            middle = unallocated(page, number)
            used += page.count(0, middle.start, middle.stop) < middle.stop - middle.start
    return free, used


def _free(db: apsw.Connection, count: int) -> tuple[set[int], set[int]]:
    """The pages that list the free ones, and the free ones."""
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
    """Whether it holds page numbers only: those that it listed before may still stand there."""
    return all(number <= count for number in struct.unpack_from(f">{len(page) // 4 - 2}I", page, 8))
