"""Write until killed: `python -m faults.crash_writer FILE LOG SEED DOCUMENTS`.

The process imports everything and prints a line, waits for a line, opens the file, prints another line, and
runs its steps. It acknowledges a step after the call returned, by one write to the log, which survives the
process. It never ends by itself.
"""

import os
import sys
from pathlib import Path

from faults.documents import EMBEDDER, WORDS, make_steps, open_file, run_step, to_line


def main(path: str, acknowledged: str, seed: str, documents: str) -> None:
    """Write the documents of a seed."""
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    EMBEDDER.embed_passages(WORDS)  # with warm caches more kills happen in the store
    _print_line("ready")
    sys.stdin.readline()
    waylore = open_file(Path(path))
    _print_line("open")
    for step in make_steps(int(seed), range(int(documents))):
        run_step(waylore, step)
        os.write(log, to_line(step).encode())


def _print_line(word: str) -> None:
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
