"""Create files that only their owner may read. A file that exists keeps its mode."""

import os
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600


def open_private(path: str, flags: int) -> int:
    """Open a file for the builtin `open`, as its `opener`: a new file is private."""
    return os.open(path, flags, PRIVATE)


def create_private(path: str | Path) -> None:
    """Create an empty private file if it does not exist; SQLite gives its mode to the log beside it.

    An error is ignored: opening the file afterwards reports a missing or read-only folder.
    """
    with suppress(OSError):
        os.close(open_private(str(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
