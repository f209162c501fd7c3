"""A process that writes until it is killed: `python -m faults.crash_writer FILE LOG SEED DOCUMENTS`.

It imports all it needs and says so, waits for a line, opens the file and says so, and takes its steps. A step
is acknowledged when its call has returned, by one write to the log, which outlives the process. It never ends
by itself.
"""

import os
import sys
from pathlib import Path

from faults.documents import EMBEDDER, WORDS, acknowledgement, opened, steps, take


def main(path: str, acknowledged: str, seed: str, documents: str) -> None:
    """Write what the seed says."""
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    EMBEDDER.embed_passages(WORDS)  # its caches warm, more kills land in the store
    _say("ready")
    sys.stdin.readline()
    waylore = opened(Path(path))
    _say("open")
    for step in steps(int(seed), range(int(documents))):
        take(waylore, step)
        os.write(log, acknowledgement(step).encode())


def _say(word: str) -> None:
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
