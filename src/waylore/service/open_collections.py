"""Cache of open collections: recently used collections stay open, the least recently used are closed.

A collection is opened once for all its users, and never closed while it is in use. Each user gets a view of it that
acts as an author. This module does not decide who may use a collection.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from waylore.deadline import Deadline
from waylore.engine.waylore import Waylore
from waylore.types.author import Author

OPEN_SECONDS = 300.0  # time limit for opening a collection, which may have to be migrated


@dataclass(slots=True)
class _OpenCollection:
    """A collection, the number of its users, and a lock that is held while it is opened."""

    users: int = 0
    waylore: Waylore | None = None
    lock: Lock = field(default_factory=Lock)


class OpenCollections:
    """All collections in use, and idle ones while at most `max_idle` are open in total."""

    def __init__(self, open_collection: Callable[[str], Waylore], *, max_idle: int) -> None:
        self._open_collection = open_collection
        self._max_idle = max_idle
        self._entries: OrderedDict[str, _OpenCollection] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def borrow(self, name: str, author: Author) -> Iterator[Waylore]:
        """Borrow an open collection, or open it, while the block runs. Calls act as `author`."""
        entry = self._acquire(name)
        try:
            with entry.lock:
                if entry.waylore is None:
                    with Deadline(OPEN_SECONDS).activate():
                        entry.waylore = self._open_collection(name)
            yield entry.waylore.as_author(author)
        finally:
            self._release(entry)

    def close(self) -> None:
        """Close all collections. None of them may be in use."""
        with self._lock:
            opened = [entry.waylore for entry in self._entries.values() if entry.waylore]
            self._entries.clear()
        for waylore in opened:
            waylore.close()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def _acquire(self, name: str) -> _OpenCollection:
        with self._lock:
            entry = self._entries.setdefault(name, _OpenCollection())
            self._entries.move_to_end(name)
            entry.users += 1
            return entry

    def _release(self, entry: _OpenCollection) -> None:
        """End a use, and close the least recently used idle collections if too many are open."""
        with self._lock:
            entry.users -= 1
            idle = [name for name, other in self._entries.items() if not other.users]
            surplus = max(0, len(self._entries) - self._max_idle)
            removed = [self._entries.pop(name) for name in idle[:surplus]]
        for other in removed:
            if other.waylore:
                other.waylore.close()
