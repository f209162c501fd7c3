"""Cache the output of models in a SQLite file, so that no call is repeated or paid twice.

The cache maps keys to bytes and writes each entry at once, so entries survive the process. Threads and
processes may share a file. Entries never expire, because keys are hashes of the model and the input. The file
can be deleted at any time.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from waylore.errors import StoreUnavailable
from waylore.system import create_private

BUSY_MILLISECONDS = 30_000
DURABILITY = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the cache and its SQL."""

    name: str
    create: str
    read: str
    write: str


VECTORS = Table(
    "vectors",
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) STRICT",
    "SELECT key, vector FROM vectors WHERE key IN carray(?)",
    "INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)",
)
ANSWERS = Table(
    "answers",
    "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB NOT NULL) STRICT",
    "SELECT key, answer FROM answers WHERE key IN carray(?)",
    "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)",
)


class DiskCache:
    """One table in its own file in `directory`. Without a directory, the cache lasts as long as the process."""

    def __init__(self, table: Table, directory: Path | None) -> None:
        self._table = table
        self._lock = threading.Lock()
        self.file = directory / f"{table.name}.sqlite" if directory else None
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
        if self.file:
            create_private(self.file)
        with self._wrap_errors():
            self._database = apsw.Connection(str(self.file or ":memory:"))
            self._database.set_busy_timeout(BUSY_MILLISECONDS)
            self._database.execute(DURABILITY).fetchall()
            self._database.execute(table.create).fetchall()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the entries that exist under these keys."""
        with self._lock, self._wrap_errors():
            return dict(self._database.execute(self._table.read, (apsw.carray(tuple(keys)),)))

    def write(self, entries: Mapping[bytes, bytes]) -> None:
        """Add entries. Existing entries are not changed."""
        with self._lock, self._wrap_errors(), self._database:
            self._database.executemany(self._table.write, entries.items())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise StoreUnavailable(
                f"the cache of {self._table.name} in {self.file} cannot be used: {error}; free the disk or the "
                "lock, or delete the file, which can always be rebuilt"
            ) from error
