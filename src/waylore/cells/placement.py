"""Where the collections of a federated store live: remembered for a moment by readers, asked for by writers.

While the catalogue is down nothing can move, so readers go on with what they remember, and do not wait for it
any more until it is heard of again. Who cannot reach a catalogue that others can reach may read where a
collection no longer is: move none until that is mended.

A writer asks before and after he writes. If the collection did not move in between, nor stood still to be
moved, whoever moves it will see what he wrote; otherwise he writes again where it lives now. So no write is
lost, and no writer holds a lock. Nobody waits for a mover that died: its stop ends by itself.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from waylore.cells.catalogue.protocol import Catalogue, Cell, Placed
from waylore.cells.channels import Asked, Line, settle
from waylore.errors import NotFound, StoreUnavailable

PAUSE = 0.01  # seconds between two looks at a move
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """What the catalogue said, and until when that may be relied on."""

    until: float = 0.0
    version: int = -1
    placed: Mapping[str, Placed] = field(default_factory=dict)
    cells: Mapping[str, Cell] = field(default_factory=dict)


class Places:
    """Where some collections live, or all of them."""

    def __init__(self, catalogue: Catalogue, collections: Sequence[str] | None, line: Line) -> None:
        self._catalogue = catalogue
        self._collections = collections
        self._line = line
        self._lock = threading.Lock()
        self._known = Look()
        self._unheard: Asked[Look] | None = None  # a look that is not waited for
        self._asked_at = 0.0

    def now(self) -> Mapping[str, Placed]:
        """Where they live, as it was at most a moment ago, or when the catalogue was last heard of."""
        with self._lock:
            while time.monotonic() >= self._known.until and not self._is_unheard():
                asked = self._line.ask(self._look)
                settle([asked])
                self._hear(asked)
            return self._known.placed

    def url(self, cell: str) -> str:
        """The address of a cell."""
        known = self._known.cells
        return (known if cell in known else self._catalogue.cells())[cell].url

    def writable(self, collection: str) -> Placed:
        """Where a collection lives at this moment; waits while a move keeps writers from it."""
        deadline = time.monotonic() + self._line.config.wait_seconds
        while not (placed := found(self._catalogue, collection)).is_writable:
            if time.time() > placed.until:
                self._catalogue.change(placed, resumed(placed))
            elif time.monotonic() > deadline:
                raise StoreUnavailable(f"{collection} is being moved to {placed.other}: try again in a moment")
            else:
                time.sleep(PAUSE)
        return placed

    def _look(self) -> Look:
        until, version = time.monotonic() + self._line.config.place_seconds, self._catalogue.version()
        if version == self._known.version:
            return replace(self._known, until=until)
        names = self._catalogue.names() if self._collections is None else self._collections
        placed = self._catalogue.placed(names)
        there = {name: placed[name] for name in names if name in placed}
        return Look(until, version, there, self._catalogue.cells())

    def _hear(self, asked: Asked[Look]) -> None:
        """Remember what the catalogue said; if it says nothing, go on with what it said before, if it did."""
        if not isinstance(asked.error, StoreUnavailable):
            self._known = asked.answer
        elif self._known.version < 0:
            raise asked.error.__cause__ or asked.error
        else:
            log.warning("reading where collections were last known to be: %s", asked.error)
            self._ask_aside()

    def _ask_aside(self) -> None:
        self._unheard, self._asked_at = self._line.ask(self._look, tries=1), time.monotonic()

    def _is_unheard(self) -> bool:
        """Whether the catalogue was just asked in vain, and is asked again without being waited for.

        Who has not asked for a while does wait: the catalogue may have come back meanwhile, and all have moved.
        """
        if self._unheard is None:
            return False
        if not self._unheard.is_settled:
            self._unheard.look()
        is_long_ago = time.monotonic() - self._asked_at > self._line.config.read_seconds
        if is_long_ago or (self._unheard.is_settled and self._unheard.error is None):
            self._unheard = None
        elif self._unheard.is_settled:
            self._ask_aside()
        return self._unheard is not None


def found(catalogue: Catalogue, collection: str) -> Placed:
    """Where a collection lives at this moment."""
    placed = catalogue.placed([collection])
    if collection not in placed:
        raise NotFound(f"there is no collection {collection!r} in the catalogue; open it alone to make it")
    return placed[collection]


def resumed(placed: Placed) -> Placed:
    """A move that let writers wait, and lets them write again."""
    return replace(placed, state="copying" if placed.state == "stopped" else "leaving")


def is_same_place(one: Placed, other: Placed) -> bool:
    """Whether a collection did not move meanwhile, not even there and back: `base` grows with every move."""
    return (one.cell, one.base) == (other.cell, other.base)
