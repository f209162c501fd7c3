"""The Catalogue protocol: the list of cells, and the cell of each collection.

The catalogue is small, read often and changed rarely, so readers may cache it for a moment. Its version grows with
every change. A placement is changed only if its row still has the version that the caller read. This compare-and-set is
enough to protect two movers, or a mover and a writer, from each other. The catalogue does not know the contents of
cells.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from waylore.errors import ConfigError

RESERVED_CHARACTERS = ",*+"  # these separate and mark names when several collections are opened together
CellState = Literal[
    "active",  # takes new collections
    "draining",  # takes no new collections; `drain_cell` moves its collections to other cells
]
PlacementState = Literal[
    "active",  # not moving. `other` is empty. Readers and writers use `cell`
    "copying",  # being copied to `other`. Readers and writers still use `cell`
    "stopped",  # writers wait until `until` while the last changes are copied to `other`. Readers use `cell`
    "opening",  # `cell` is the new cell, `other` the old one. Writers wait until all readers know the new cell
    "leaving",  # readers and writers use `cell`. `other`, the old cell, is emptied after running reads end
]


@dataclass(frozen=True, slots=True)
class Cell:
    """A database that holds collections. Its URL may contain a password."""

    name: str
    url: str = field(repr=False)
    state: CellState = "active"
    bytes: int = 0  # size at the last measurement
    measured_at: float = 0.0  # time of the measurement, seconds since 1970; 0 if never


@dataclass(frozen=True, slots=True)
class CollectionPlacement:
    """The cell of a collection, and the progress of its move.

    A move goes through the states active → copying → stopped → opening → leaving → active. In every state the
    whole collection can be read in `cell`.
    """

    collection: str
    cell: str
    state: PlacementState = "active"
    other: str = ""  # the target of the move (copying, stopped) or the old cell (opening, leaving)
    base: int = 0  # added to the version of the cell's store, so that versions grow across moves
    until: float = 0.0  # seconds since 1970: when writers stop waiting, or when the state became "leaving"
    version: int = 0  # the catalogue's version when this row last changed

    @property
    def is_writable(self) -> bool:
        """Whether a writer may write now."""
        return self.state not in ("stopped", "opening")


def bind_change(before: CollectionPlacement, after: CollectionPlacement) -> dict[str, str | int | float]:
    """Return the parameters of the SQL that changes `before` into `after` if it still has its version."""
    return {
        "name": before.collection,
        "version": before.version,
        "cell": after.cell,
        "state": after.state,
        "other": after.other,
        "base": after.base,
        "until": after.until,
    }


def check_name(collection: str) -> str:
    """Return the name of a new collection. Raise ConfigError if it is empty or has a reserved character."""
    if not collection or any(sign in collection for sign in RESERVED_CHARACTERS):
        raise ConfigError(f"collection name {collection!r} must not be empty or contain any of {RESERVED_CHARACTERS}")
    return collection


def make_no_cell_error(catalogue: str, collection: str) -> ConfigError:
    """Return the error for a new collection in a catalogue without an active cell."""
    return ConfigError(f"{catalogue} has no active cell for collection {collection!r}; add one with waylore cells add")


class Catalogue(Protocol):
    """Cells and placements of collections. Every method may be called from any thread."""

    def version(self) -> int:
        """Return a number that grows with every change."""
        ...

    def get_cells(self) -> Mapping[str, Cell]:
        """Return all cells by name."""
        ...

    def set_cell(self, cell: Cell) -> None:
        """Add a cell, or change its state. Its bytes are not changed."""
        ...

    def record_bytes(self, cell: str, bytes_: int) -> None:
        """Record the size of a cell. The version does not grow."""
        ...

    def choose_cell(self) -> str | None:
        """Return the active cell with the fewest bytes; None without an active cell."""
        ...

    def list_collections(self, cell: str = "") -> tuple[str, ...]:
        """Return the names of all collections, or of the collections that are in a cell or move into or out of it."""
        ...

    def find_placements(self, collections: Sequence[str]) -> Mapping[str, CollectionPlacement]:
        """Return the placements of collections by name. Unknown collections are left out."""
        ...

    def place(self, collection: str) -> CollectionPlacement:
        """Return the placement of a collection. Place a new one in the active cell with the fewest bytes."""
        ...

    def change(self, before: CollectionPlacement, after: CollectionPlacement) -> CollectionPlacement | None:
        """Change a placement and return it. Return None if it changed since `before` was read."""
        ...

    def lock_moves(self) -> AbstractContextManager[None]:
        """Let one process move collections at a time. The lock ends with the process, even if it is killed."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
