"""Copy pages from the log to a SQLite file, rewrite or copy the file, and look for damaged and unclean pages.

Waylore runs its own checkpoints, in place of those of SQLite. Pages are read through SQLite, because a process
that opens and closes the file on its own drops SQLite's locks. This module knows no tables.
"""

import os
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import apsw

from waylore.deadline import check_deadline
from waylore.store.sql import load_queries
from waylore.store.sqlite.vfs import (
    DamagedPage,
    blank_unallocated,
    find_unallocated,
    has_checksums,
    open_database,
    reserve_checksums,
    use_checksums,
)
from waylore.system import create_private

SQL = load_queries("waylore.store.sqlite")
READER_WAIT_SECONDS = 0.5  # while a checkpoint waits for readers, no connection can write
MAX_LOG_PAGES = 1_000  # a commit runs a checkpoint if the log has at least this many pages
BUSY_TRIES, BUSY_PAUSE_SECONDS = 100, 0.01
_LOCK_OFFSET = 1 << 30  # of the page that SQLite locks and never writes
LOG_HEADER, FRAME_HEADER = 32, 24  # bytes in the log: once, and before each page
_CHUNK_PAGES = 128  # pages per read


class DamagedLog(apsw.CorruptError):
    """Commits in the log cannot be read, because a page before them is damaged."""

    def __init__(self, commits: int) -> None:
        super().__init__(f"{commits} writes in its log are lost behind a damaged page")


def checkpoint(path: str, *, truncate_log: bool = False) -> bool:
    """Copy committed pages from the log to the file, and return whether no other connection prevented it.

    With `truncate_log` it also waits for readers, up to `READER_WAIT_SECONDS`, and empties the log.
    """
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate_log else apsw.SQLITE_CHECKPOINT_PASSIVE
    db = open_database(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(int(READER_WAIT_SECONDS * 1000))
        db.pragma("schema_version")  # before its first read a connection does not know that there is a log
        use_checksums(db)
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
            use_checksums(db)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    return apsw.SQLITE_OK


def measure_log(path: str) -> int:
    """Return the size of the log in bytes."""
    log = Path(f"{os.path.realpath(path)}-wal")
    return log.stat().st_size if log.exists() else 0


# -- rewriting -----------------------------------------------------------------------------------------


def rewrite(db: apsw.Connection) -> None:
    """Rewrite a file without unused bytes, in one transaction. No other connection can write meanwhile."""
    before = db.pragma("temp_store")
    db.pragma("temp_store", "file")
    try:
        db.execute(SQL["vacuum"])
    finally:
        db.pragma("temp_store", before)


def add_checksums(db: apsw.Connection, *, busy_seconds: float) -> bool:
    """Rewrite a file without checksums so that it has them, and return whether this was done.

    It is not done if another connection is open, which may be of a version that writes pages without checksums, or if
    the disk is full.
    """
    if has_checksums(db):
        return False
    with _exclude_others(db, busy_seconds), suppress(apsw.BusyError, apsw.FullError):
        with reserve_checksums(db):
            rewrite(db)
        use_checksums(db)
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return has_checksums(db)


@contextmanager
def _exclude_others(db: apsw.Connection, busy_seconds: float) -> Iterator[None]:
    """Let a write raise BusyError at once if another connection is open, and let no other connection be opened."""
    db.set_busy_timeout(0)
    db.pragma("locking_mode", "exclusive")
    try:
        yield
    finally:
        db.pragma("locking_mode", "normal")
        db.pragma("schema_version")  # the lock ends with the next read
        db.set_busy_timeout(int(busy_seconds * 1000))


# -- reading -------------------------------------------------------------------------------------------


def read_pages(db: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    """Yield every page of the file with its number, as stored on disk, without its checksum."""
    size, reserved = int(db.pragma("page_size")), db.reserve_bytes("main")
    count = int(db.pragma("page_count"))
    for first in range(0, count, _CHUNK_PAGES):
        amount = min(_CHUNK_PAGES, count - first)
        _, read = db.read("main", 0, first * size, amount * size)
        for at in range(amount):
            yield first + at + 1, read[at * size : (at + 1) * size - reserved]


def find_damaged(db: apsw.Connection) -> tuple[int, ...]:
    """Return the numbers of the pages that do not have their checksum, in a snapshot that the caller has opened.

    A page that is also in the log is not damaged: SQLite reads it from there, and a checkpoint may be writing it.
    """
    count, size = int(db.pragma("page_count")), int(db.pragma("page_size"))
    suspects = [number for number in range(1, count + 1) if not _is_whole(db, number, size)]
    in_log = _list_logged(db, size) if suspects and measure_log(db.filename) else set()
    return tuple(number for number in suspects if number not in in_log and not _is_whole(db, number, size))


def _is_whole(db: apsw.Connection, number: int, size: int) -> bool:
    offset = (number - 1) * size
    try:
        return offset == _LOCK_OFFSET or bool(db.read("main", 0, offset, size)[0])
    except DamagedPage:
        return False


def _list_logged(db: apsw.Connection, size: int) -> set[int]:
    """Return the numbers of the pages in the log. A page belongs to the log if it has the salts of its beginning."""
    _, first = db.read("main", 1, 0, LOG_HEADER)
    return {int.from_bytes(frame[:4], "big") for frame in _read_frames(db, size) if frame[8:16] == first[16:24]}


# -- the log -------------------------------------------------------------------------------------------


def check_log(db: apsw.Connection) -> None:
    """Raise DamagedLog if writes in the log cannot be read, because a page before them is damaged.

    SQLite ends the log at the first page that is not whole, and says nothing.
    """
    lost = count_lost_writes(db)
    if lost > 1:
        raise DamagedLog(lost)


def count_lost_writes(db: apsw.Connection) -> int:
    """Count the commits in the log behind the last page that SQLite reads, if the file does not have them.

    1 may be a write that a crash cut off and that nobody was told of. If two commits are whole beside each other, the
    page before them was damaged later. A log that begins again still has its old pages, which were copied to the file.
    """
    db.pragma("schema_version")  # before its first read a connection does not know the log
    if measure_log(db.filename) <= LOG_HEADER:
        return 0
    size, log, lost = int(db.pragma("page_size")), (-1, b""), [0]
    while lost and log != (log := (_count_read(db), _read_salts(db))):  # again if another connection has written
        unread = enumerate(_read_frames(db, size, log[0]), log[0])
        frames = {place: frame for place, frame in unread if frame[8:16] == log[1]}
        lost = [place for place, frame in frames.items() if frame[4:8] != bytes(4)]
        if _are_copied(db, size, frames):
            lost = []
    is_damaged = any(_are_joined(db, size, one, next_one) for one, next_one in pairwise(lost))
    return len(lost) if is_damaged else min(len(lost), 1)


def _are_joined(db: apsw.Connection, size: int, first: int, last: int) -> bool:
    """Return whether each page in the log between two places has the checksum that follows from the page before."""
    length = FRAME_HEADER + size
    _, log = db.read("main", 1, LOG_HEADER + first * length, (last - first + 1) * length)
    _, header = db.read("main", 1, 0, 4)
    frames = [log[start : start + length] for start in range(0, len(log), length)]
    return all(
        sum_words(header, before[16:FRAME_HEADER], frame[:8] + frame[FRAME_HEADER:]) == frame[16:FRAME_HEADER]
        for before, frame in pairwise(frames)
    )


def _are_copied(db: apsw.Connection, size: int, frames: Mapping[int, bytes]) -> bool:
    """Return whether the file has the last version of each page in this part of the log."""
    content = size - db.reserve_bytes("main")
    pages = {int.from_bytes(frame[:4], "big"): place for place, frame in frames.items()}
    try:
        return all(
            blank_unallocated(_read_logged(db, size, place), number)[:content]
            == db.read("main", 0, (number - 1) * size, size)[1][:content]
            for number, place in pages.items()
        )
    except DamagedPage:
        return False


def _read_logged(db: apsw.Connection, size: int, place: int) -> bytes:
    return db.read("main", 1, LOG_HEADER + place * (FRAME_HEADER + size) + FRAME_HEADER, size)[1]


def _count_read(db: apsw.Connection) -> int:
    """Return how many pages SQLite reads from the log."""
    for _ in range(BUSY_TRIES - 1):
        with suppress(apsw.BusyError):  # another connection is writing the index of the log; SQLite does not wait here
            return max(0, db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
        time.sleep(BUSY_PAUSE_SECONDS)
    return max(0, db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])


def _read_salts(db: apsw.Connection) -> bytes:
    """Return the salts of the log. They change when the log begins again after a checkpoint."""
    _, beginning = db.read("main", 1, 0, LOG_HEADER + FRAME_HEADER)
    return find_salts(beginning)


def find_salts(beginning: bytes) -> bytes:
    """Return the salts of a log from its first 48 bytes: those of its first page if the bytes before are damaged."""
    header = beginning[:LOG_HEADER]
    is_whole = sum_words(header[:4], bytes(8), header[:24]) == header[24:]
    return header[16:24] if is_whole else beginning[LOG_HEADER + 8 : LOG_HEADER + 16]


def _read_frames(db: apsw.Connection, size: int, first: int = 0) -> Iterator[bytes]:
    """Yield the header of each page in the log, from a place on."""
    offset = LOG_HEADER + first * (FRAME_HEADER + size)
    has_more, frame = db.read("main", 1, offset, FRAME_HEADER)
    while has_more:
        yield frame
        offset += FRAME_HEADER + size
        has_more, frame = db.read("main", 1, offset, FRAME_HEADER)


def sum_words(magic: bytes | memoryview, seed: bytes | memoryview, content: bytes) -> bytes:
    """Return SQLite's checksum of a part of the log. It begins with the checksum of the part before."""
    first, second = struct.unpack(">II", seed)
    order = ">" if magic[3] & 1 else "<"
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return struct.pack(">II", first, second)


# -- unclean pages -------------------------------------------------------------------------------------


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


# -- copying -------------------------------------------------------------------------------------------


def copy_file(path: str, to: str) -> None:
    """Copy a file to a new one as it is at one moment. Other connections go on reading and writing."""
    create_private(to)
    source, target = open_database(path, apsw.SQLITE_OPEN_READONLY), open_database(to, apsw.SQLITE_OPEN_READWRITE)
    with closing(source), closing(target), source:  # one read transaction, so the pages belong together
        source.pragma("schema_version")
        with target.backup("main", source, "main") as copy:
            while not copy.done:
                check_deadline()
                copy.step(_CHUNK_PAGES)
