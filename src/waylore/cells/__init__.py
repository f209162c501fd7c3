"""Many databases as one store. This package is loaded only if a store URL begins with `cells+`."""

from waylore.cells.admin import CellInfo, add_cell, drain_cell, list_cells
from waylore.cells.catalogue.protocol import Catalogue, Cell, CollectionPlacement
from waylore.cells.members import Federation
from waylore.cells.move import move_collection
from waylore.cells.open import create_catalogue, open_catalogue, open_cell
from waylore.cells.store import FederatedStore, open_federated

__all__ = [
    "Catalogue",
    "Cell",
    "CellInfo",
    "CollectionPlacement",
    "FederatedStore",
    "Federation",
    "add_cell",
    "create_catalogue",
    "drain_cell",
    "list_cells",
    "move_collection",
    "open_catalogue",
    "open_cell",
    "open_federated",
]
