"""Read files in a separate process: this is the program that `files.processes` starts.

The limits of processor time, memory and open files are set again for each file. The process has no network if the
system allows that. It ends when its parent ends, and a signal ends it at the limit of processor time.
"""

import ctypes
import math
import mmap
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from waylore.indexing.blocks import Limits, Reading, Skipped, Source, catch_read_errors
from waylore.indexing.files.formats import choose_reader
from waylore.indexing.files.processes import END, OUT_OF_MEMORY, decode_source, encode_item

MAX_OPEN_FILES = 64
_NEW_NETWORK, _NEW_USER = 0x4000_0000, 0x1000_0000  # flags of unshare(2)


def main() -> None:
    """Read the files that arrive on the connection whose number is the first argument."""
    leave_network()  # before any thread starts, because a process with several threads cannot leave its user namespace
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    Thread(target=_end_with_parent, args=[connection.fileno()], daemon=True).start()
    while True:
        try:
            source, sys.path[:] = decode_source(connection.recv_bytes())
        except EOFError:
            return
        set_limits(source.limits)
        for message in read(source):
            connection.send_bytes(message)
        connection.send_bytes(END)


def read(source: Source) -> Iterator[bytes]:
    """Yield the documents of a file as messages."""
    items = catch_read_errors(source.uri, lambda: _exit_out_of_memory(lambda: choose_reader(source)(source)))
    return map(encode_item, items)


def _exit_out_of_memory(read: Callable[[], Iterator[Reading | Skipped]]) -> Iterator[Reading | Skipped]:
    """Yield the items of a reader, and end the process if it runs out of memory, because a new process starts clean."""
    try:
        yield from read()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def leave_network() -> bool:
    """Move the process into its own network namespace without an address. Return whether that is allowed."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)  # os.unshare came with Python 3.12
    # If possible without a new user namespace, because root could not read the files of others in it.
    return unshare is not None and any(unshare(flags) == 0 for flags in (_NEW_NETWORK, _NEW_NETWORK | _NEW_USER))


def set_limits(limits: Limits) -> None:
    """Set the limits for the next file, in addition to the time that the process has used so far."""
    import resource  # noqa: PLC0415 (only POSIX has it, and only there this process is started)

    used = resource.getrusage(resource.RUSAGE_SELF)
    values = {
        resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime) + limits.seconds,
        resource.RLIMIT_AS: _measure_address_space() + limits.memory,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,  # else the signal at the time limit would write the memory to disk
    }
    for kind, value in values.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _measure_address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * mmap.PAGESIZE
    except OSError:  # a system without /proc
        return 0


def _end_with_parent(connection: int) -> None:
    """Wait until the other end of the connection is closed, then end the process, even while it reads a file."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    poll.poll()
    os._exit(0)
