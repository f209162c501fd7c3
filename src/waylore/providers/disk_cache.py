"""What a model gave, kept in a SQLite file, so that nobody waits or pays for it twice.

Bytes by key, written as soon as they are there: what was kept survives the process. Threads and processes may
share a file. It never forgets and knows no age: keys change when what they stand for does, and deleting the
file is always safe.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from waylore.errors import StoreUnavailable

BUSY_MILLISECONDS = 30_000
DURABILITY = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
"""


@dataclass(frozen=True, slots=True)
class Table:
    """What is kept, and the statements that keep it."""

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


class Kept:
    """One table in a file of its own in `directory`; without a directory it lasts as long as the process."""

    def __init__(self, table: Table, directory: Path | None) -> None:
        self._table = table
        self._lock = threading.Lock()
        self.file = directory / f"{table.name}.sqlite" if directory else None
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
        with self._errors_wrapped():
            self._database = apsw.Connection(str(self.file or ":memory:"))
            self._database.set_busy_timeout(BUSY_MILLISECONDS)
            self._database.execute(DURABILITY).fetchall()
            self._database.execute(table.create).fetchall()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept under these keys."""
        with self._lock, self._errors_wrapped():
            return dict(self._database.execute(self._table.read, (apsw.carray(tuple(keys)),)))

    def write(self, fresh: Mapping[bytes, bytes]) -> None:
        """Keep these; what is there under a key already stays."""
        with self._lock, self._errors_wrapped(), self._database:
            self._database.executemany(self._table.write, fresh.items())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _errors_wrapped(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise StoreUnavailable(
                f"the {self._table.name} kept in {self.file} cannot be used: {error}; free the disk or the "
                "lock, or delete the file, which holds nothing that cannot be made again"
            ) from error
