"""Move a collection in a process of its own: `python -m benchmarks.faults.mover FILE COLLECTION CELL`."""

import sys

from benchmarks.faults.moving import CONFIG
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move_collection


def main(catalogue: str, collection: str, cell: str) -> None:
    """Print "begun", move the collection, and print "done"."""
    opened = SqliteCatalogue(catalogue)
    print("begun", flush=True)
    move_collection(opened, collection, cell, config=CONFIG)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
