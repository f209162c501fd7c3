"""A process that moves a collection until it is killed: `python -m benchmarks.faults.mover FILE COLLECTION CELL`."""

import sys

from benchmarks.faults.moving import CONFIG
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move


def main(catalogue: str, collection: str, cell: str) -> None:
    """Say when it begins, move, and say when it is done."""
    opened = SqliteCatalogue(catalogue)
    print("begun", flush=True)
    move(opened, collection, cell, config=CONFIG)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
