"""Find the cells of collections: readers use a cached answer of the catalogue, writers query it each time.

While the catalogue is unavailable no collection can move, so readers continue with the cached placements. They query
the catalogue in the background until it answers, without waiting for it. If only some processes can reach the
catalogue, the others may read the old cell of a moved collection. So do not move collections until all processes can
reach the catalogue.

A writer reads the placement before and after each write. If it is the same, and writers were not stopped in
between, the mover has seen the write. Otherwise the writer repeats the write in the new cell. So no write is
lost and no writer holds a lock. If the process that moves a collection dies, writers continue after
`stop_seconds`.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from waylore.cells.catalogue.protocol import Catalogue, Cell, CollectionPlacement
from waylore.cells.channels import Channel, PendingRead, settle
from waylore.errors import NotFound, StoreUnavailable
from waylore.store.protocol import QUARANTINE

POLL_SECONDS = 0.01  # interval between checks whether a move lets writers continue
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogueSnapshot:
    """An answer of the catalogue, valid until a monotonic time. Version -1 means that it was never read."""

    until: float = 0.0
    version: int = -1
    placements: Mapping[str, CollectionPlacement] = field(default_factory=dict)
    cells: Mapping[str, Cell] = field(default_factory=dict)


class CollectionPlaces:
    """The placements of some collections, or of all if `collections` is None."""

    def __init__(self, catalogue: Catalogue, collections: Sequence[str] | None, channel: Channel) -> None:
        self._catalogue = catalogue
        self._collections = collections
        self._channel = channel
        self._lock = threading.Lock()
        self._snapshot = CatalogueSnapshot()
        self._background_read: PendingRead[CatalogueSnapshot] | None = None
        self._background_started = 0.0

    def get_placements(self) -> Mapping[str, CollectionPlacement]:
        """Return placements at most `place_seconds` old. They are older while the catalogue is unavailable."""
        with self._lock:
            while time.monotonic() >= self._snapshot.until and not self._is_reading_in_background():
                read = self._channel.start_read(self._read_catalogue)
                settle([read])
                self._take_snapshot(read)
            return self._snapshot.placements

    def get_url(self, cell: str) -> str:
        """Return the URL of a cell."""
        cached = self._snapshot.cells
        return (cached if cell in cached else self._catalogue.get_cells())[cell].url

    def wait_until_writable(self, collection: str) -> CollectionPlacement:
        """Return the current placement of a collection. Wait while a move stops writers."""
        deadline = time.monotonic() + self._channel.config.wait_seconds
        while not (placement := get_placement(self._catalogue, collection)).is_writable:
            if time.time() > placement.until:  # the mover has died or is too slow
                self._catalogue.change(placement, resume_writers(placement))
            elif time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"collection {collection} is being moved to cell {placement.other}; try again in a moment"
                )
            else:
                time.sleep(POLL_SECONDS)
        return placement

    def _read_catalogue(self) -> CatalogueSnapshot:
        # The time and the version are read first, so the snapshot is never older than its version.
        until, version = time.monotonic() + self._channel.config.place_seconds, self._catalogue.version()
        if version == self._snapshot.version:
            return replace(self._snapshot, until=until)
        names = self._collections
        if names is None:  # without documents in quarantine
            names = [name for name in self._catalogue.list_collections() if not name.endswith(QUARANTINE)]
        placements = self._catalogue.find_placements(names)
        in_order = {name: placements[name] for name in names if name in placements}
        return CatalogueSnapshot(until, version, in_order, self._catalogue.get_cells())

    def _take_snapshot(self, read: PendingRead[CatalogueSnapshot]) -> None:
        """Store the answer of the catalogue. If it is unavailable, keep the last snapshot if there is one."""
        if not isinstance(read.error, StoreUnavailable):
            self._snapshot = read.answer
        elif self._snapshot.version < 0:
            raise read.error.__cause__ or read.error
        else:
            log.warning("the catalogue is unavailable, using the last known placements: %s", read.error)
            self._read_in_background()

    def _read_in_background(self) -> None:
        self._background_read = self._channel.start_read(self._read_catalogue, attempts=1)
        self._background_started = time.monotonic()

    def _is_reading_in_background(self) -> bool:
        """Return whether the catalogue failed recently and is being read without waiting for it.

        If the last background read started longer than `read_seconds` ago, the caller waits again: the
        catalogue may have come back in the meantime, and all collections may have moved.
        """
        if self._background_read is None:
            return False
        if not self._background_read.is_settled:
            self._background_read.poll()
        is_long_ago = time.monotonic() - self._background_started > self._channel.config.read_seconds
        if is_long_ago or (self._background_read.is_settled and self._background_read.error is None):
            self._background_read = None
        elif self._background_read.is_settled:
            self._read_in_background()
        return self._background_read is not None


def get_placement(catalogue: Catalogue, collection: str) -> CollectionPlacement:
    """Return the current placement of a collection, from the catalogue."""
    placements = catalogue.find_placements([collection])
    if collection not in placements:
        raise NotFound(f"no collection {collection!r} in the catalogue; open it alone to create it")
    return placements[collection]


def resume_writers(placement: CollectionPlacement) -> CollectionPlacement:
    """Return the placement in the state that lets writers continue during a move."""
    return replace(placement, state="copying" if placement.state == "stopped" else "leaving")


def is_same_place(before: CollectionPlacement, after: CollectionPlacement) -> bool:
    """Return whether a collection did not move. `base` grows with every move, so a move and its return are noticed."""
    return (before.cell, before.base) == (after.cell, after.base)
