"""What an operator does with cells: add one, list them, drain one. Moving a collection is in `moving`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from waylore.cells.catalogue.protocol import Catalogue, Cell
from waylore.cells.members import OpenCell
from waylore.cells.move import carry, leave
from waylore.cells.open import open_cell
from waylore.config import Cells
from waylore.errors import ConfigError, NotFound
from waylore.store.urls import open_store, parse_url


@dataclass(frozen=True, slots=True)
class CellInfo:
    """A cell and the collections that live in it, or are on their way into or out of it."""

    cell: Cell
    collections: tuple[str, ...]


def add(catalogue: Catalogue, name: str, url: str) -> Cell:
    """Add a cell, or one that was drained again, once it can be opened; a file is made if it is not there."""
    known = catalogue.cells()
    parsed = parse_url(url)
    cell = Cell(name, f"sqlite:///{parsed.path.resolve()}" if parsed.is_file else url)
    others = [other.name for other in known.values() if other.url == cell.url and other.name != name]
    if others or (name in known and known[name].url != cell.url):
        raise ConfigError(f"{name} or its address is in use: the cells are {', '.join(known)}")
    open_store(cell.url).close()
    catalogue.set_cell(cell)
    return cell


def listed(catalogue: Catalogue) -> tuple[CellInfo, ...]:
    """All cells by name, with what lives in them."""
    return tuple(CellInfo(cell, catalogue.names(cell.name)) for cell in catalogue.cells().values())


def drain(
    catalogue: Catalogue,
    name: str,
    *,
    opening: OpenCell = open_cell,
    config: Cells = Cells(),  # noqa: B008
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:
    """Move all collections away and put no new ones here; return which. Run again, it goes on."""
    cells = catalogue.cells()
    if name not in cells:
        raise NotFound(f"there is no cell {name!r}: there are {', '.join(cells)}")
    catalogue.set_cell(replace(cells[name], state="draining"))
    collections = catalogue.names(name)
    for collection in collections:
        to = _lightest(catalogue, collection, name)
        progress(f"{collection} → {to}")
        carry(catalogue, collection, to, opening=opening, config=config)
    for collection in collections:  # by now reads of all but the last are over
        leave(catalogue, collection, opening=opening, config=config)
    return collections


def _lightest(catalogue: Catalogue, collection: str, leaving: str) -> str:
    """Where a collection goes: where it is going or has gone already, or to the active cell with the fewest."""
    placed = catalogue.placed([collection])[collection]
    if placed.cell != leaving:
        return placed.cell
    active = [cell.name for cell in catalogue.cells().values() if cell.state == "active"]
    if placed.other in active:
        return placed.other
    if not active:
        raise ConfigError("there is no other active cell to move to: add one with waylore.store.cells.add")
    return min(active, key=lambda cell: (len(catalogue.names(cell)), cell))
