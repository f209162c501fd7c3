"""A process that moves a collection until it is killed: `python -m cells.mover FOLDER COLLECTION CELL`.

`python -m cells.mover FILE` forks a mover for each line of its input, so that Python is loaded only once.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from benchmarks.faults.mover import Places

from cells.cells import BRISK
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.move import move_collection

TESTS = Path(__file__).parents[1]


class MoverProcess:
    """A process that forks movers."""

    def __init__(self, catalogue: Path) -> None:
        command = [sys.executable, "-m", "cells.mover", str(catalogue)]
        self._process = subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "MoverProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def move(self, collection: str, cell: str, place: int = 0) -> int:
        """Move a collection. Return how many places the move had, or less than 0 if it was killed at `place`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{collection}\t{cell}\t{place}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def serve(catalogue: str) -> None:
    """Fork a mover for each line, and print its number of places, or -9 if it was killed."""
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            collection, cell, place = line.rstrip("\n").split("\t")
            os.write(writing, str(_move(catalogue, collection, cell, int(place))).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as answer:
            places = answer.read()
        print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else places or 0, flush=True)


def _move(catalogue: str, collection: str, cell: str, place: int) -> int:
    places = Places(place)
    sys.setprofile(places.watch)
    move_collection(SqliteCatalogue(catalogue), collection, cell, config=BRISK)
    sys.setprofile(None)
    return places.count


def main(folder: str, collection: str, cell: str) -> None:
    """Move a collection. Print a line before and after."""
    catalogue = SqliteCatalogue(Path(folder) / "catalogue.waylore")
    print("begun", flush=True)
    move_collection(catalogue, collection, cell, config=BRISK)
    print("done", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(*sys.argv[1:])
    else:
        serve(sys.argv[1])
