"""Wrap calls that differ between operating systems: private files, users, forks, cores, and child processes.

On a system without a call, Waylore does without it. So importing Waylore, and adding and searching files that this
process reads, needs no call of POSIX. Files that another process must read are skipped there, with a reason.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess  # nosec B404 (it starts our own programs only)
    from multiprocessing.connection import Connection

PRIVATE = 0o600


def open_private(path: str, flags: int) -> int:
    """Open a file for the builtin `open`, as its `opener`: a new file is private."""
    return os.open(path, flags, PRIVATE)


def create_private(path: str | Path) -> None:
    """Create an empty file that only its owner may read, if it does not exist; SQLite gives its mode to the log.

    Errors are ignored: opening the file afterwards reports a missing or read-only folder.
    """
    with suppress(OSError):
        os.close(open_private(str(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the new name of a file survives a crash; some systems cannot open a folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def name_user() -> str:
    """Return the number of the user of this process, or the name on a system without numbers."""
    if hasattr(os, "getuid"):
        return str(os.getuid())
    from getpass import getuser  # noqa: PLC0415 (only where it is needed)

    return getuser()


def is_own(path: Path) -> bool:
    """Return whether a file belongs to the user of this process. Without numbers of users, its folder decides that."""
    return not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()


def call_in_forks(function: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_child(
    command: Callable[[str], Sequence[str]], **options: Any
) -> "tuple[Connection[Any, Any], subprocess.Popen[bytes]]":
    """Start a process with one end of a connection, and return the other end.

    `command` returns the command, with the number of the connection for `Connection(number)` in it.
    """
    import subprocess  # noqa: PLC0415 # nosec B404 (a search starts without them)
    from multiprocessing import Pipe  # noqa: PLC0415

    if not hasattr(os, "fork"):
        raise OSError("this system cannot pass a connection to a child process")
    ours, theirs = Pipe()
    number = theirs.fileno()
    try:
        process = subprocess.Popen(command(str(number)), pass_fds=[number], **options)  # noqa: S603 # nosec B603
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process
