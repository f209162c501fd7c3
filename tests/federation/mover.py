"""A process that moves a collection until it is killed: `python -m federation.mover FOLDER COLLECTION CELL`."""

import sys
from pathlib import Path

from federation.cells import BRISK
from waylore.store.catalogue_sqlite import SqliteCatalogue
from waylore.store.moving import move


def main(folder: str, collection: str, cell: str) -> None:
    """Say when it begins, move, and say when it is done."""
    catalogue = SqliteCatalogue(Path(folder) / "catalogue.waylore")
    print("begun", flush=True)
    move(catalogue, collection, cell, config=BRISK)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
