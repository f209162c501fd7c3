"""The catalogue of a federation, as a protocol: which cells there are, and which collection lives in which.

It is small, read often and changed seldom, so whoever reads it may remember what it said for a moment. Its
version grows with every change; a change of a place is made only if nobody else made one since it was
read, and that is all that keeps two movers, or a mover and a writer, from harming each other. What is in the
cells it does not know.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from waylore.errors import ConfigError

RESERVED = ",*+"  # what separates and marks names where several collections are opened
CellState = Literal["active", "draining"]
State = Literal["active", "copying", "stopped", "opening", "leaving"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A database that holds collections. A draining one takes no new ones. Its address may have a password."""

    name: str
    url: str = field(repr=False)
    state: CellState = "active"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a collection lives, and how far its move is, if it moves.

    active → copying (to `other`, writers write) → stopped (writers wait, the last changes are copied) → opening
    (it lives in the new cell now, writers wait until all readers know) → leaving (`other`, the old cell, is
    being emptied) → active. It is readable in `cell`, all of it, in every state. Its version is `base` and
    what its store says. `until` is when writers wait no longer, or since when it lives here, if it is leaving.
    """

    collection: str
    cell: str
    state: State = "active"
    other: str = ""
    base: int = 0
    until: float = 0.0
    version: int = 0

    @property
    def is_writable(self) -> bool:
        """Whether a writer may go ahead."""
        return self.state not in ("stopped", "opening")


def changed(before: Placed, after: Placed) -> dict[str, str | int | float]:
    """What a change is bound to: the place as it is to be, and the version that it must still have."""
    return {
        "name": before.collection,
        "version": before.version,
        "cell": after.cell,
        "state": after.state,
        "other": after.other,
        "base": after.base,
        "until": after.until,
    }


def checked_name(collection: str) -> str:
    """The name of a collection to be placed, if it can have one."""
    if not collection or any(sign in collection for sign in RESERVED):
        raise ConfigError(f"a collection in cells cannot be called {collection!r}: leave out {RESERVED}")
    return collection


def no_active_cell(catalogue: str, collection: str) -> ConfigError:
    """What to say where a collection has nowhere to go."""
    return ConfigError(
        f"{catalogue} has no active cell for {collection!r}: add one with waylore.store.cells.add"
    )


class Catalogue(Protocol):
    """Cells and places. Every verb may be called from any thread."""

    def version(self) -> int:
        """A number that grows with every change."""
        ...

    def cells(self) -> Mapping[str, Cell]:
        """All cells by name."""
        ...

    def set_cell(self, cell: Cell) -> None:
        """Add a cell, or change its state."""
        ...

    def names(self, cell: str = "") -> tuple[str, ...]:
        """All collections, or those that live in a cell or are on their way into or out of it."""
        ...

    def placed(self, collections: Sequence[str]) -> Mapping[str, Placed]:
        """Where collections live; those that have no place yet are left out."""
        ...

    def place(self, collection: str) -> Placed:
        """Where a collection lives; a new one comes to the active cell that has the fewest."""
        ...

    def change(self, before: Placed, after: Placed) -> Placed | None:
        """Change a place, unless somebody did since `before` was read: then None, and nothing changes."""
        ...

    def moving(self) -> AbstractContextManager[None]:
        """Held by one mover at a time, and let go when his process ends, however it ends."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...
