"""The layer between SQLite and a file: it blanks bytes that belong to no row, and gives every page a checksum.

`secure_delete` overwrites deleted rows. But when SQLite moves rows to another page, it leaves copies in the
unallocated middle of the old page, and these copies outlive the rows. So this middle is blanked when a page is
written to the file.

The last eight bytes of each page are its checksum, which includes the number of the page. It is compared when
SQLite reads the page into its cache. Pages in the log have checksums of SQLite. A file that reserves no bytes for
checksums has none (`pages.add_checksums` adds them). This module knows no tables.
"""

import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from zlib import crc32

import apsw
from apsw import VFS, URIFilename, VFSFile

CHECKSUM_BYTES = 8
_NAME = "waylore"
_MAGIC = b"SQLite format 3\x00"  # a file begins with it
FIRST_HEADER = 100  # bytes before the header of page 1
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}  # length of the header by kind of b-tree page, in bytes
_MAX_PAGES = 1 << 25  # from here on a page number can begin with a byte that looks like a kind
_PAGE_BYTES = (4096, 8192)  # of a page: 8192, but 4096 in catalogues of older versions
_MIN_PAGE_BYTES = 512  # that SQLite allows
_FIRST_PAGES = (2, 3, 4)
_USE_CHECKSUMS = 0x57617900  # operation of `xFileControl`; SQLite has none with this number
_sync_data = getattr(os, "fdatasync", os.fsync)


class DamagedPage(apsw.CorruptError):
    """A page does not have the bytes that were written to it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"page {number} does not have its checksum")


def open_database(path: str, flags: int) -> apsw.Connection:
    """Open a connection that goes through this layer."""
    db = apsw.Connection(path, flags, vfs=_NAME)
    if flags & apsw.SQLITE_OPEN_READONLY:  # SQLite would try a checkpoint at the end, and apsw would raise its error
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return db


@contextmanager
def reserve_checksums(db: apsw.Connection) -> Iterator[None]:
    """Let the statement that creates or rewrites a file reserve bytes for checksums."""
    db.reserve_bytes("main", CHECKSUM_BYTES)
    try:
        yield
    finally:
        db.reserve_bytes("main", 0)  # from now on SQLite returns the number that the file has


def has_checksums(db: apsw.Connection) -> bool:
    """Return whether the pages of a file that was read from have checksums."""
    return db.reserve_bytes("main") == CHECKSUM_BYTES


def use_checksums(db: apsw.Connection) -> None:
    """Write checksums to a file that has them. While its page 1 is in the log, the file itself does not show this."""
    if has_checksums(db):
        db.file_control("main", _USE_CHECKSUMS, int(db.pragma("page_size")))


def compute_checksum(page: bytes | bytearray | memoryview, number: int) -> bytes:
    """Return the checksum of a page: a CRC-32 of each half, both of which begin with the number of the page.

    For 8 KB it takes 7 µs, and BLAKE2b 21 µs. A scan takes 2.3 times as long with CRC-32, and 4.5 times with BLAKE2b.
    """
    view, middle = memoryview(page), len(page) // 2
    return struct.pack(">II", crc32(view[:middle], number), crc32(view[middle:-CHECKSUM_BYTES], number))


def find_unallocated(page: bytes, number: int) -> slice:
    """Return the middle of a b-tree page, between its cell pointers and its cells; empty for any other page."""
    at = FIRST_HEADER if number == 1 else 0
    header = _HEADERS.get(page[at])
    if header is None or number >= _MAX_PAGES:
        return slice(0, 0)
    cells, content = struct.unpack_from(">HH", page, at + 3)
    return slice(at + header + 2 * cells, content or 65_536)


def blank_unallocated(page: bytes, number: int) -> bytearray:
    """Return a page as it is written to the file: bytes that belong to no row are 0."""
    blank, middle = bytearray(page), find_unallocated(page, number)
    blank[middle] = bytes(middle.stop - middle.start)
    return blank


def _read_page_bytes(header: bytes) -> int:
    """Return the length of a page, from the beginning of a file; 0 if its pages have no checksums."""
    length = int.from_bytes(header[16:18], "big")
    is_known = header[:16] == _MAGIC and length in _PAGE_BYTES and len(header) >= FIRST_HEADER
    return length if is_known and header[20] == CHECKSUM_BYTES else 0


def is_page_whole(page: bytes | memoryview, number: int) -> bool:
    """Return whether a page has the bytes that were written to it."""
    return page[-CHECKSUM_BYTES:] == compute_checksum(page, number)


class _PageFile(VFSFile):
    """The file itself. SQLite reads and writes whole pages, apart from the beginning of page 1."""

    def __init__(self, name: str | URIFilename | None, flags: list[int]) -> None:
        self._page_bytes = 0  # unknown, or pages have no checksums
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        """Read a page, and raise DamagedPage if it does not have its checksum."""
        page = super().xRead(amount, offset)
        if amount < _MIN_PAGE_BYTES:
            return page
        if amount == (self._page_bytes or self._find_page_bytes()):
            number = offset // amount + 1
            if not is_page_whole(page, number):
                raise DamagedPage(number)
        elif offset == 0 and not self._page_bytes:
            self._check_header()
        return page

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write a page with its checksum, and blank bytes that belong to no row."""
        number = offset // len(data) + 1
        page = blank_unallocated(data, number)
        if number == 1:
            self._page_bytes = _read_page_bytes(data)
        elif not self._page_bytes:
            self._find_page_bytes()
        if self._page_bytes:
            page[-CHECKSUM_BYTES:] = compute_checksum(page, number)
        super().xWrite(bytes(page), offset)

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802
        """Take `use_checksums`, and pass other operations on."""
        if op == _USE_CHECKSUMS:
            self._page_bytes = ptr
            return True
        return super().xFileControl(op, ptr)

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        """Deny that parts of pages can be read, because only whole pages can be compared with their checksums."""
        return super().xDeviceCharacteristics() & ~apsw.SQLITE_IOCAP_SUBPAGE_READ

    def _find_page_bytes(self) -> int:
        self._page_bytes = _read_page_bytes(super().xRead(FIRST_HEADER, 0))
        return self._page_bytes

    def _check_header(self) -> None:
        """Raise DamagedPage if other pages have checksums but page 1 does not declare them."""
        for length, number in product(_PAGE_BYTES, _FIRST_PAGES):
            page = super().xRead(length, (number - 1) * length)
            if len(page) == length and is_page_whole(page, number):
                raise DamagedPage(1)


class _LogFile(VFSFile):
    """The log. It is synced at each commit; apsw itself would let no other thread run meanwhile."""

    def __init__(self, name: str | URIFilename | None, flags: list[int]) -> None:
        self._path = str(name)
        self._descriptor: int | None = None
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Sync the log. The first time SQLite does it, because it also syncs the folder."""
        if self._descriptor is None:
            super().xSync(flags)
            with suppress(OSError):  # then SQLite does it the next time too
                self._descriptor = os.open(self._path, os.O_RDWR)
            return
        try:
            _sync_data(self._descriptor)
        except OSError as error:
            raise apsw.IOError(str(error)) from error

    def xClose(self) -> None:  # noqa: N802
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        super().xClose()


class _WayloreVFS(VFS):
    def __init__(self) -> None:
        super().__init__(_NAME, "")

    def xOpen(self, name: str | URIFilename | None, flags: list[int]) -> VFSFile:  # noqa: N802
        """Open a file of pages, a log, or a temporary file."""
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _PageFile(name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _LogFile(name, flags)
        return super().xOpen(name, flags)

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        """Follow links, as SQLite does. apsw would take its "OK, there was a link" for an error."""
        return os.path.realpath(name)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        """Wait for a lock. apsw would let no other thread run meanwhile."""
        time.sleep(microseconds / 1e6)
        return microseconds


_VFS = _WayloreVFS()  # SQLite uses it as long as this object exists
