"""A process that moves a collection until it is killed: `python -m cells.mover FOLDER COLLECTION CELL`."""

import sys
from pathlib import Path

from cells.cells import BRISK
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move_collection


def main(folder: str, collection: str, cell: str) -> None:
    """Move a collection. Print a line before and after."""
    catalogue = SqliteCatalogue(Path(folder) / "catalogue.waylore")
    print("begun", flush=True)
    move_collection(catalogue, collection, cell, config=BRISK)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
