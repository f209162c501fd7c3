"""Move a collection to another cell while it is read and written. A killed move can be started again.

The mover copies the collection until the two cells are equal. Then it stops writers for a moment, copies the last
changes and changes the catalogue. Writers continue after readers had time to notice, and the old cell is emptied last.
So the cell that the catalogue names has the whole collection at every moment.

There are two ways to copy. Between two PostgreSQL servers the new cell follows the old one by logical replication
(`replication`), which moves everything but the audit log. If one of the cells is a file, or a server does not allow
replication, documents are compared and copied (`sync`). That takes longer. It does not copy uses that are counted
during the move, use counts of passages (only `enrich` reads them) and vectors staged for another model (`reembed` makes
them again).
"""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from waylore.cells.catalogue.protocol import Catalogue, CollectionPlacement, PlacementState
from waylore.cells.members import OpenCell
from waylore.cells.open import open_cell
from waylore.cells.placement import get_placement, resume_writers
from waylore.cells.sync import DocumentCopy, delete_all
from waylore.config import CellsConfig
from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.protocol import Store
from waylore.store.urls import parse_url

MAX_SWITCH_ATTEMPTS = 20  # a move stops writers at most this many times before it fails
log = logging.getLogger(__name__)


class Transfer(Protocol):
    """A way to make the new cell equal to the old one while the old one is written."""

    def copy(self) -> None:
        """Copy until the new cell lacks only a few changes, or continue an interrupted copy."""
        ...

    def finish(self, until: float) -> bool:
        """Copy the last changes while writers wait. Return False if this cannot be done until `until`."""
        ...

    def read_version(self) -> int:
        """Return the version of the collection in the old cell."""
        ...


@dataclass(frozen=True, slots=True)
class _Move:
    """A move in progress."""

    catalogue: Catalogue
    collection: str
    open_cell: OpenCell
    config: CellsConfig

    def get_placement(self) -> CollectionPlacement:
        """Return the current placement of the collection."""
        return get_placement(self.catalogue, self.collection)

    def get_url(self, cell: str) -> str:
        """Return the URL of a cell."""
        return self.catalogue.get_cells()[cell].url

    def open_store(self, cell: str) -> Store:
        """Open the collection in a cell, whose schema is brought up to date."""
        return self.open_cell(self.get_url(cell), self.collection)

    def are_servers(self, *cells: str) -> bool:
        """Return whether all of these cells are PostgreSQL servers."""
        return all(parse_url(self.get_url(cell)).is_server for cell in cells)

    def set_state(
        self, placement: CollectionPlacement, state: PlacementState, *, until: float = 0.0
    ) -> CollectionPlacement | None:
        """Set the state and return the new placement. Return None if another process changed it first."""
        return self.catalogue.change(placement, replace(placement, state=state, until=until))


def move_collection(
    catalogue: Catalogue,
    collection: str,
    to: str,
    *,
    open_cell: OpenCell = open_cell,
    config: CellsConfig = CellsConfig(),  # noqa: B008
) -> None:
    """Move a collection to a cell, or resume an interrupted move. Only one process of a catalogue can move.

    Moving a collection to the cell where it already is cancels a move that was started.
    """
    with catalogue.lock_moves():
        copy_collection(catalogue, collection, to, open_cell=open_cell, config=config)
        empty_old_cell(catalogue, collection, open_cell=open_cell, config=config)


def copy_collection(
    catalogue: Catalogue, collection: str, to: str, *, open_cell: OpenCell, config: CellsConfig
) -> None:
    """Do the first part of a move: copy the collection and switch to the new cell. Needs the lock of moves."""
    cells = catalogue.get_cells()
    if to not in cells:
        raise ConfigError(f"no cell {to!r}; the cells are {', '.join(cells)}")
    moving = _Move(catalogue, collection, open_cell, config)
    _finish(moving)
    _cancel_other(moving, to)
    if moving.get_placement().cell == to:
        return
    if cells[to].state != "active":
        raise ConfigError(f"cell {to} is being drained; choose another")
    _copy_and_switch(moving, to)
    _open_writers(moving)


def empty_old_cell(catalogue: Catalogue, collection: str, *, open_cell: OpenCell, config: CellsConfig) -> None:
    """Do the second part of a move: empty the old cell after earlier reads have ended."""
    _finish(_Move(catalogue, collection, open_cell, config))


# -- before and after copying --------------------------------------------------------------------------


def _open_writers(moving: _Move) -> None:
    """Let writers use the new cell, after all readers had time to notice it."""
    while (placement := moving.get_placement()).state == "opening":
        time.sleep(moving.config.place_seconds)
        moving.set_state(placement, "leaving", until=time.time())


def _finish(moving: _Move) -> None:
    """Empty the old cell, if the collection has left one."""
    _open_writers(moving)
    placement = moving.get_placement()
    if placement.state == "leaving":
        time.sleep(max(placement.until + moving.config.read_seconds - time.time(), 0.0))
        _empty_other(moving, placement)


def _cancel_other(moving: _Move, to: str) -> None:
    """Cancel an unfinished move to another cell than `to`."""
    while (placement := moving.get_placement()).state == "stopped":
        moving.catalogue.change(placement, resume_writers(placement))
    if placement.state == "copying" and placement.other != to:
        _empty_other(moving, placement)


def _empty_other(moving: _Move, placement: CollectionPlacement) -> None:
    """Delete the collection from its other cell, and end the move."""
    if moving.are_servers(placement.cell, placement.other):
        from waylore.cells.replication.copy import remove_link  # noqa: PLC0415 (optional driver)

        is_behind = placement.state == "leaving"
        old, new = (placement.other, placement.cell) if is_behind else (placement.cell, placement.other)
        remove_link(moving.get_url(old), moving.get_url(new), moving.collection)
    with closing(moving.open_store(placement.other)) as store:
        if moving.are_servers(placement.other):
            from waylore.cells.replication.rows import delete_rows  # noqa: PLC0415 (optional driver)

            delete_rows(moving.get_url(placement.other), moving.collection)
        else:
            delete_all(store, moving.config.batch)
    moving.catalogue.change(placement, replace(placement, state="active", other=""))


# -- copying -------------------------------------------------------------------------------------------


def _copy_and_switch(moving: _Move, to: str) -> None:
    """Copy the collection, and switch to the new cell when the two are equal."""
    placement = moving.get_placement()
    if placement.state == "active":
        moving.catalogue.change(placement, replace(placement, state="copying", other=to))
    with _open_transfer(moving, placement.cell, to) as transfer:
        for _ in range(MAX_SWITCH_ATTEMPTS):
            transfer.copy()
            if _switch(moving, transfer):
                return
    raise StoreUnavailable(
        f"collection {moving.collection} is written faster than it can be compared in "
        f"{moving.config.stop_seconds:g} s; run the move again at a quieter time, or raise stop_seconds"
    )


@contextmanager
def _open_transfer(moving: _Move, cell: str, to: str) -> Iterator[Transfer]:
    """Open the fastest transfer between two cells: replication if both are servers that allow it."""
    with closing(moving.open_store(cell)) as source, closing(moving.open_store(to)) as target:
        if moving.are_servers(cell, to):
            from waylore.cells.replication.copy import open_replicated_copy  # noqa: PLC0415 (optional driver)

            with open_replicated_copy(moving.get_url(cell), moving.get_url(to), moving.collection) as replicated:
                obstacle = replicated.find_obstacle()
                if not obstacle:
                    yield replicated
                    return
            log.warning("%s is copied document by document, which takes longer: %s", moving.collection, obstacle)
        yield DocumentCopy(source, target, moving.config)


def _switch(moving: _Move, transfer: Transfer) -> bool:
    """Stop writers, copy the last changes and switch to the new cell. Return False to try again."""
    stopped = moving.set_state(moving.get_placement(), "stopped", until=time.time() + moving.config.stop_seconds)
    if stopped is None:
        return False
    try:
        if not transfer.finish(stopped.until):
            return False
        base = stopped.base + transfer.read_version() + 1
        after = replace(stopped, cell=stopped.other, other=stopped.cell, state="opening", base=base)
        until = time.time() + 2 * moving.config.place_seconds + 1.0
        opening = moving.catalogue.change(stopped, replace(after, until=until))
    finally:
        if moving.get_placement().version == stopped.version:
            moving.catalogue.change(stopped, resume_writers(stopped))
    return opening is not None
