"""Salvage the intact documents of a damaged store in a file into a new store.

SQLite finds no row behind a damaged page, and no package has `sqlite3_recover`. So rows are read from single pages,
independent of the index pages above them. Each page has a checksum, also in the log. The rows are put into an empty
store and read from there. A document counts as intact if it has the digest that was stored with it. Vectors, counts of
use, and the keys of a service are not salvaged.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from waylore.errors import ConfigError, DamagedStore
from waylore.indexing.pipeline import split_into_batches
from waylore.service.backups.file import find_file
from waylore.store.sql import load_queries
from waylore.store.sqlite import fetch, file
from waylore.store.sqlite.pages import FRAME_HEADER, LOG_HEADER, find_salts, sum_words
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.vfs import CHECKSUM_BYTES, FIRST_HEADER, is_page_whole
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument

SQL = load_queries("waylore.store.sqlite", file="salvage")
BATCH = 100  # documents that are written at a time
PAGE = 8192
USABLE = PAGE - CHECKSUM_BYTES
BRANCH, LEAF_OF_KEYS, LEAF_OF_ROWS = 2, 10, 13  # kinds of pages with rows
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of an integer by its type in a row
Pages = dict[int, memoryview]
Value = int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a table's rows: a pattern of column types, and the defaults of columns that were added later."""

    types: str
    columns: int
    added: tuple[Value, ...] = ()

    def matches(self, row: list[Value]) -> bool:
        """Return whether a row may be of this table."""
        return re.fullmatch(self.types, "".join(TYPES[type(value)] for value in row)) is not None

    def complete(self, row: list[Value]) -> list[Value]:
        """Return a row with defaults for columns that were added to its table after it was written."""
        missing = self.columns - len(row)
        return [*row, *self.added[len(self.added) - missing :]]


TYPES = {int: "i", str: "t", bytes: "b", float: "f", type(None): "n"}
SHAPES = {
    "collections": Shape("nti[nt][ni]i{8}(?:[nb]t?)?", 15, (None, "")),
    "documents": Shape("nibiitttttib[tin]{0,6}", 18, ("", "", "", None, None, "")),
    "passages": Shape("nibibiittiit[tin]{0,4}", 16, ("", "", None, None)),
    "entities": Shape("nibti", 5),
    "packs": Shape("nib", 3),
    "profiles": Shape("iiiitttt", 8),
}


@dataclass(frozen=True, slots=True)
class DamagedDocument:
    """A document that could not be salvaged. Its address is empty if the address could not be read."""

    collection: str
    id: str
    uri: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The salvaged documents of each collection, the damaged ones, and the number of documents without any trace."""

    documents: dict[str, int]
    damaged: tuple[DamagedDocument, ...]
    lost: int


def salvage(url: str, to: Path) -> Salvaged:
    """Write the intact documents of a damaged file to a new file, and return the result."""
    path = find_file(url).resolve()  # its log is beside the file that a link leads to
    if to.exists():
        raise ConfigError(f"{to} exists already; name a new file")
    pages = _read_file(path) | _read_log(path.with_name(f"{path.name}-wal"))
    if not pages:
        raise DamagedStore(f"{path} has no page that can be read; restore a backup with `waylore restore`")
    with TemporaryDirectory(dir=to.parent) as folder:
        scratch = Path(folder) / "rows.waylore"
        SqliteStore(scratch).close()
        _collect_rows(pages, scratch)
        return _copy_whole_documents(scratch, to)


# -- pages ---------------------------------------------------------------------------------------------


def _read_file(path: Path) -> Pages:
    """Return the pages of a file with a correct checksum, by number. They are read when they are used."""
    count = path.stat().st_size // PAGE
    if not count:
        return {}
    with path.open("rb") as opened:
        content = memoryview(mmap(opened.fileno(), count * PAGE, access=ACCESS_READ))
    pages = {number: content[(number - 1) * PAGE : number * PAGE] for number in range(1, count + 1)}
    return {number: page for number, page in pages.items() if is_page_whole(page, number)}


def _read_log(path: Path) -> Pages:
    """Return the newest intact page of each number in the log, up to its last commit."""
    content = memoryview(path.read_bytes() if path.is_file() else b"")
    frames = list(_list_frames(content))
    last = max((place for place, (frame, _) in enumerate(frames) if frame[4:8] != bytes(4)), default=-1)
    seeds = [content[24:LOG_HEADER], *(frame[16:] for frame, _ in frames)]
    found = {}
    for (frame, page), seed in zip(frames[: last + 1], seeds, strict=False):
        if sum_words(content[:4], seed, bytes(frame[:8]) + page) == frame[16:]:
            found[int.from_bytes(frame[:4], "big")] = page
    return found


def _list_frames(log: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield header and page of each frame that belongs to a log, that is, has the salts of the log."""
    beginning = bytes(log[: LOG_HEADER + FRAME_HEADER])
    salts = find_salts(beginning) if len(log) > len(beginning) else b""
    for start in range(LOG_HEADER, len(log) - FRAME_HEADER - PAGE + 1, FRAME_HEADER + PAGE):
        frame = log[start : start + FRAME_HEADER]
        if frame[8:16] == salts:
            yield frame, log[start + FRAME_HEADER : start + FRAME_HEADER + PAGE]


# -- rows ----------------------------------------------------------------------------------------------


def _collect_rows(pages: Pages, scratch: Path) -> None:
    """Put the rows of all pages into the tables of an empty store."""
    with file.translate_errors(str(scratch)), closing(file.open_file(str(scratch))) as db, file.open_transaction(db):
        db.execute(SQL["salvage_no_collection"])
        for number, page in pages.items():
            for row_id, row in _read_rows(pages, number, page):
                for table, shape in SHAPES.items():
                    if shape.matches(row):
                        row[0] = row_id if row[0] is None else row[0]
                        db.execute(SQL[f"salvage_{table}"], shape.complete(row))
                        break


def _read_rows(pages: Pages, number: int, page: memoryview) -> Iterator[tuple[int, list[Value]]]:
    """Yield the rows of a page, each with its number in its table, if it has one. Overflow pages must be whole."""
    at = FIRST_HEADER if number == 1 else 0
    kind = page[at]
    if kind not in (BRANCH, LEAF_OF_KEYS, LEAF_OF_ROWS):
        return
    (cells,) = struct.unpack_from(">H", page, at + 3)
    header = 12 if kind == BRANCH else 8
    for (start,) in islice(struct.iter_unpack(">H", page[at + header : at + header + 2 * cells]), cells):
        try:
            size, place = _read_number(page, start + (4 if kind == BRANCH else 0))
            row_id, place = _read_number(page, place) if kind == LEAF_OF_ROWS else (0, place)
            row = _parse_row(_read_payload(pages, page, place, size, is_row=kind == LEAF_OF_ROWS))
        except (LookupError, ValueError, struct.error):  # a page of another kind, or a damaged overflow page
            continue
        yield row_id, row


def _read_payload(pages: Pages, page: memoryview, start: int, size: int, *, is_row: bool) -> bytes:
    """Return the bytes of a row, from its page and its overflow pages."""
    most = USABLE - 35 if is_row else (USABLE - 12) * 64 // 255 - 23
    if size <= most:
        return bytes(page[start : start + size])
    least = (USABLE - 12) * 32 // 255 - 23
    local = least + (size - least) % (USABLE - 4)
    local = local if local <= most else least
    payload = bytearray(page[start : start + local])
    (following,) = struct.unpack_from(">I", page, start + local)
    while len(payload) < size:
        overflow = pages[following]
        payload += overflow[4 : 4 + min(USABLE - 4, size - len(payload))]
        (following,) = struct.unpack_from(">I", overflow)
    return bytes(payload)


def _parse_row(payload: bytes) -> list[Value]:
    end, at = _read_number(payload, 0)
    types = []
    while at < end:
        type_, at = _read_number(payload, at)
        types.append(type_)
    row: list[Value] = []
    for type_ in types:
        value, at = _parse_value(payload, at, type_)
        row.append(value)
    return row


def _parse_value(payload: bytes, at: int, type_: int) -> tuple[Value, int]:
    if type_ in INTEGERS:
        end = at + INTEGERS[type_]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if type_ == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if type_ < 12:
        return {0: None, 8: 0, 9: 1}[type_], at
    end = at + (type_ - 12) // 2
    if end > len(payload):
        raise ValueError("the row is longer than its payload")
    return payload[at:end].decode() if type_ % 2 else payload[at:end], end


def _read_number(content: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read an integer of one to nine bytes; return it and its end."""
    number = 0
    for place in range(at, at + 8):
        number = number << 7 | content[place] & 0x7F
        if content[place] < 0x80:
            return number, place + 1
    return number << 8 | content[at + 8], at + 9


# -- documents -----------------------------------------------------------------------------------------


def _copy_whole_documents(scratch: Path, to: Path) -> Salvaged:
    """Write the documents with a correct digest to a new file, and return the others."""
    documents: dict[str, int] = {}
    damaged: list[DamagedDocument] = []
    lost = 0
    with file.translate_errors(str(scratch)), closing(file.open_to_read(str(scratch))) as db:
        collections: list[Any] = db.execute(SQL["salvaged_collections"]).fetchall()
        for collection, known_name, counted in collections:
            name, others = known_name or f"salvaged-{collection}", len(damaged)
            with closing(SqliteStore(to, name)) as store:
                for batch in split_into_batches(_list_whole(db, collection, name, damaged), BATCH):
                    store.write(batch, author=OWNER, model=None)
                documents[name] = store.statistics().documents
            lost += max(0, (counted or 0) - documents[name] - (len(damaged) - others))
    return Salvaged(documents, tuple(damaged), lost)


def _list_whole(
    db: apsw.Connection, collection: int, name: str, damaged: list[DamagedDocument]
) -> Iterator[IndexedDocument]:
    """Yield the documents of a collection with a correct digest, and add the others to `damaged`."""
    bound = {"collection": collection}
    damaged += [DamagedDocument(name, id_.hex(), "") for (id_,) in db.execute(SQL["salvaged_orphans"], bound)]
    for *row, digest in db.execute(SQL["salvaged_documents"], bound):
        try:
            found = _drop_vectors(fetch.read_document(db, row))
        except (ValueError, TypeError, LookupError):  # a part of a pack is missing
            found = None
        if found and found.digest == digest.hex():
            yield found
        else:
            damaged.append(DamagedDocument(name, row[1].hex(), row[3]))


def _drop_vectors(indexed: IndexedDocument) -> IndexedDocument:
    """Return a document without the vectors of its facts, which were not salvaged."""
    facts, pairs = (tuple(replace(fact, vector=None) for fact in facts) for facts in (indexed.facts, indexed.pairs))
    return replace(indexed, facts=facts, pairs=pairs)
