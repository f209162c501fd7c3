"""A process that adds a folder until it is killed: `python -m faults.crash_adder FILE FOLDER`.

It imports all it needs and says so, waits for a line, adds, says that it is done, and waits to be killed.
"""

import os
import sys
from pathlib import Path

from faults.folders import EMBEDDER, NAMES, opened
from waylore.indexing.files import add as ingesting


def main(path: str, folder: str) -> None:
    """Add what is in the folder."""
    ingesting.PARTS = 64  # many small transactions, so that kills land between and inside of them
    EMBEDDER.embed_passages(NAMES)
    _say("ready")
    sys.stdin.readline()
    with opened(Path(path)) as waylore:
        waylore.add_files(folder, root=folder, prune=True)
    _say("done")
    sys.stdin.readline()


def _say(word: str) -> None:
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
