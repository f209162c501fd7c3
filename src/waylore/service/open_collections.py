"""Open collections of a running process: as many as were used lately, each opened once and closed when let go.

A collection that is in use is never closed. What it is called and who may use it is decided elsewhere.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from waylore.engine.waylore import Waylore


@dataclass(slots=True)
class _Opened:
    """A collection, how many use it now, and a lock for whoever opens it."""

    users: int = 0
    waylore: Waylore | None = None
    opening: Lock = field(default_factory=Lock)


class OpenCollections:
    """At most `most` collections that nobody uses, and all that somebody does."""

    def __init__(self, open_one: Callable[[str], Waylore], *, most: int) -> None:
        self._open_one = open_one
        self._most = most
        self._known: OrderedDict[str, _Opened] = OrderedDict()
        self._changing = Lock()

    @contextmanager
    def lent(self, name: str) -> Iterator[Waylore]:
        """A collection, open while it is used."""
        opened = self._taken(name)
        try:
            with opened.opening:
                if opened.waylore is None:
                    opened.waylore = self._open_one(name)
            yield opened.waylore
        finally:
            self._given_back(opened)

    def close(self) -> None:
        """Close all of them, once nobody uses any."""
        with self._changing:
            opened = [one.waylore for one in self._known.values() if one.waylore]
            self._known.clear()
        for waylore in opened:
            waylore.close()

    def __len__(self) -> int:
        with self._changing:
            return len(self._known)

    def _taken(self, name: str) -> _Opened:
        with self._changing:
            opened = self._known.setdefault(name, _Opened())
            self._known.move_to_end(name)
            opened.users += 1
            return opened

    def _given_back(self, opened: _Opened) -> None:
        with self._changing:
            opened.users -= 1
            idle = [name for name, one in self._known.items() if not one.users]
            gone = [self._known.pop(name) for name in idle[: max(0, len(self._known) - self._most)]]
        for one in gone:
            if one.waylore:
                one.waylore.close()
