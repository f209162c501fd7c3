"""Operate cells: add one, list them, drain one. Moving a single collection is in `move`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from waylore.cells.catalogue.protocol import Catalogue, Cell
from waylore.cells.members import OpenCell
from waylore.cells.move import copy_collection, empty_old_cell
from waylore.cells.open import open_cell
from waylore.config import CellsConfig
from waylore.errors import ConfigError, NotFound
from waylore.store.urls import open_store, parse_url


@dataclass(frozen=True, slots=True)
class CellInfo:
    """A cell and the collections that are in it, or move into or out of it."""

    cell: Cell
    collections: tuple[str, ...]


def add_cell(catalogue: Catalogue, name: str, url: str) -> Cell:
    """Add a cell, or activate a drained one again, after opening it. A missing file is created."""
    cells = catalogue.get_cells()
    parsed = parse_url(url)
    cell = Cell(name, f"sqlite:///{parsed.path.resolve()}" if parsed.is_file else url)
    others = [other.name for other in cells.values() if other.url == cell.url and other.name != name]
    if others or (name in cells and cells[name].url != cell.url):
        raise ConfigError(f"cell name {name} or its URL is in use; the cells are {', '.join(cells)}")
    open_store(cell.url).close()
    catalogue.set_cell(cell)
    return cell


def list_cells(catalogue: Catalogue) -> tuple[CellInfo, ...]:
    """Return all cells by name, with their collections."""
    return tuple(CellInfo(cell, catalogue.list_collections(cell.name)) for cell in catalogue.get_cells().values())


def drain_cell(
    catalogue: Catalogue,
    name: str,
    *,
    open_cell: OpenCell = open_cell,
    config: CellsConfig = CellsConfig(),  # noqa: B008
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:
    """Move all collections out of a cell and place no new ones in it. Return the moved collections.

    Run it again to resume an interrupted drain.
    """
    cells = catalogue.get_cells()
    if name not in cells:
        raise NotFound(f"no cell {name!r}; the cells are {', '.join(cells)}")
    catalogue.set_cell(replace(cells[name], state="draining"))
    collections = catalogue.list_collections(name)
    for collection in collections:
        to = _choose_target(catalogue, collection, name)
        progress(f"{collection} → {to}")
        copy_collection(catalogue, collection, to, open_cell=open_cell, config=config)
    for collection in collections:  # by now reads of all but the last collection have ended: no need to wait
        empty_old_cell(catalogue, collection, open_cell=open_cell, config=config)
    return collections


def _choose_target(catalogue: Catalogue, collection: str, leaving: str) -> str:
    """Return the target of a move that was started, or the active cell with the fewest collections."""
    placement = catalogue.find_placements([collection])[collection]
    if placement.cell != leaving:
        return placement.cell
    active = [cell.name for cell in catalogue.get_cells().values() if cell.state == "active"]
    if placement.other in active:
        return placement.other
    if not active:
        raise ConfigError("no other active cell to move to; add one with waylore cells add")
    return min(active, key=lambda cell: (len(catalogue.list_collections(cell)), cell))
