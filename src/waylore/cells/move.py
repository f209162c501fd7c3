"""Move a collection to another cell while it is read and written. A killed move can be started again.

The mover copies the collection until the two cells are equal, and compares every copied row with what the new
cell returns. Then it stops writers for a moment, copies the last changes and changes the catalogue. Writers
continue after readers had time to notice, and the old cell is emptied last. So at every moment the cell that
the catalogue names has the whole collection. Use counts of facts move too, except for uses that are counted
during the move. Use counts of passages (which nothing reads) and vectors staged for another model (which
`reembed` makes again) do not move.
"""

import time
from dataclasses import dataclass, replace

from waylore.cells.catalogue.protocol import Catalogue, CollectionPlacement, PlacementState
from waylore.cells.members import OpenCell
from waylore.cells.open import open_cell
from waylore.cells.placement import get_placement, resume_writers
from waylore.cells.sync import delete_all, is_equal, sync_stores
from waylore.config import CellsConfig
from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.protocol import Store

MAX_SWITCH_ATTEMPTS = 20  # times that a move stops writers before it fails


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

    def open_store(self, cell: str) -> Store:
        """Open the collection in a cell."""
        cells = self.catalogue.get_cells()
        return self.open_cell(cells[cell].url, self.collection)

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
    """Move a collection to a cell, or resume an interrupted move. A catalogue allows one move at a time.

    Moving a collection to the cell where it already is cancels a move that was started.
    """
    copy_collection(catalogue, collection, to, open_cell=open_cell, config=config)
    empty_old_cell(catalogue, collection, open_cell=open_cell, config=config)


def copy_collection(
    catalogue: Catalogue, collection: str, to: str, *, open_cell: OpenCell, config: CellsConfig
) -> None:
    """Do the first part of a move: copy the collection and make the new cell its place."""
    cells = catalogue.get_cells()
    if to not in cells:
        raise ConfigError(f"no cell {to!r}; the cells are {', '.join(cells)}")
    moving = _Move(catalogue, collection, open_cell, config)
    with catalogue.lock_moves():
        _finish(moving)
        _cancel_other(moving, to)
        if moving.get_placement().cell == to:
            return
        if cells[to].state != "active":
            raise ConfigError(f"cell {to} is being drained; choose another")
        _copy_and_switch(moving, to)
        _open_writers(moving)


def empty_old_cell(catalogue: Catalogue, collection: str, *, open_cell: OpenCell, config: CellsConfig) -> None:
    """Do the second part of a move: empty the old cell, after the reads that started before have ended."""
    with catalogue.lock_moves():
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
    """Delete the collection from the cell that is not its place, and end the move."""
    store = moving.open_store(placement.other)
    try:
        delete_all(store, moving.config.batch)
    finally:
        store.close()
    moving.catalogue.change(placement, replace(placement, state="active", other=""))


# -- copying -------------------------------------------------------------------------------------------


def _copy_and_switch(moving: _Move, to: str) -> None:
    """Copy the collection, and switch to the new cell when the two are equal."""
    placement = moving.get_placement()
    if placement.state == "active":
        moving.catalogue.change(placement, replace(placement, state="copying", other=to))
    source, target = moving.open_store(placement.cell), moving.open_store(to)
    try:
        sync_stores(source, target, moving.config.batch, compare_rows=True)
        for _ in range(MAX_SWITCH_ATTEMPTS):
            equal_at = _catch_up(source, target, moving.config)
            if _switch(moving, source, target, equal_at):
                return
    finally:
        source.close()
        target.close()
    raise StoreUnavailable(
        f"collection {moving.collection} is written faster than it can be compared in "
        f"{moving.config.stop_seconds:g} s; run the move again at a quieter time, or raise stop_seconds"
    )


def _catch_up(source: Store, target: Store, config: CellsConfig) -> int | None:
    """Copy changes until few are left. Return the version of the source at which both were equal, if any."""
    for _ in range(config.sweeps):
        version = source.version()
        changed = sync_stores(source, target, config.batch)
        if changed < max(config.batch // 8, 1):
            return None if changed else version
    return None


def _switch(moving: _Move, source: Store, target: Store, equal_at: int | None) -> bool:
    """Stop writers, copy the last changes and make the new cell the place. Return False to try again.

    If nothing was written since version `equal_at`, nothing has to be compared and the stop is short.
    """
    stopped = moving.set_state(moving.get_placement(), "stopped", until=time.time() + moving.config.stop_seconds)
    if stopped is None:
        return False
    try:
        while source.version() != equal_at and _copy_changes(source, target, moving.config):
            if time.time() > stopped.until:
                return False
        base = stopped.base + source.version() + 1
        after = replace(stopped, cell=stopped.other, other=stopped.cell, state="opening", base=base)
        until = time.time() + 2 * moving.config.place_seconds + 1.0
        opening = moving.catalogue.change(stopped, replace(after, until=until))
    finally:
        if moving.get_placement().version == stopped.version:
            moving.catalogue.change(stopped, resume_writers(stopped))
    return opening is not None


def _copy_changes(source: Store, target: Store, config: CellsConfig) -> bool:
    """Copy differences while writers wait. Return whether there were any, or the counts still differ."""
    return bool(sync_stores(source, target, config.batch)) or not is_equal(source, target)
