"""A process that moves a collection until it is killed: `python -m federation.mover FOLDER COLLECTION CELL`."""

import sys
from pathlib import Path

from cells.cells import BRISK
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move


def main(folder: str, collection: str, cell: str) -> None:
    """Say when it begins, move, and say when it is done."""
    catalogue = SqliteCatalogue(Path(folder) / "catalogue.waylore")
    print("begun", flush=True)
    move(catalogue, collection, cell, config=BRISK)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
