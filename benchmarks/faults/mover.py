"""Move a collection in a process of its own: `python -m benchmarks.faults.mover FILE COLLECTION CELL SECONDS [PLACE]`.

With a place, the process kills itself with SIGKILL there. Places are counted: the first call and the first return
of each function that moves. At the end it prints to stderr how many there were. SECONDS is the limit of a read.
"""

import os
import signal
import sys
from dataclasses import replace
from types import FrameType
from typing import Any

from benchmarks.faults.moving import CONFIG
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move_collection

WATCHED = ("waylore.cells.move", "waylore.cells.replication", "waylore.cells.sync")


class Places:
    """Counts the places of a move, and kills the process at one of them."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._seen: set[tuple[str, str, int]] = set()

    @property
    def count(self) -> int:
        return len(self._seen)

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call or a return, as Python calls it for every function."""
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith(WATCHED):
            return
        self._seen.add((event, module, frame.f_code.co_firstlineno))
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def main(catalogue: str, collection: str, cell: str, seconds: str, place: str = "0") -> None:
    """Print "begun", move the collection, and print "done"."""
    opened = SqliteCatalogue(catalogue)
    print("begun", flush=True)
    places = Places(int(place))
    sys.setprofile(places.watch)
    move_collection(opened, collection, cell, config=replace(CONFIG, read_seconds=float(seconds)))
    sys.setprofile(None)
    print(places.count, file=sys.stderr)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
