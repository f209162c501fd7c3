"""Add a folder until killed: `python -m faults.crash_adder FILE FOLDER`.

The process imports everything and prints a line, waits for a line, adds, prints another line, and waits for the
kill.
"""

import os
import sys
from pathlib import Path

from faults.folders import EMBEDDER, NAMES, open_file
from waylore.indexing.files import add


def main(path: str, folder: str) -> None:
    """Add the folder."""
    add.BATCH_ROWS = 64  # many small transactions, so that kills land between and inside of them
    EMBEDDER.embed_passages(NAMES)
    _print_line("ready")
    sys.stdin.readline()
    with open_file(Path(path)) as waylore:
        waylore.add_files(folder, root=folder, prune=True)
    _print_line("done")
    sys.stdin.readline()


def _print_line(word: str) -> None:
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
