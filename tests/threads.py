"""Find threads that a test leaves behind. A pool of database connections has threads, too."""

import threading
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager

from tools.waiting import HANG_SECONDS

from waylore.cells.members import Federation

LASTING_THREADS = (
    "tqdm_monitor",  # the first progress bar starts it, and it lasts as long as the process
    "waylore-deadlines",  # the first deadline that someone watches starts it; it lasts as long as the process
    "waylore-embed",  # of a local model, which a module keeps; they end when the model is collected
)
_shared: set[Federation] = set()


@contextmanager
def share_federation(federation: Federation) -> Iterator[Federation]:
    """Let several tests use a federation, which starts threads when it needs them. Close it at the end."""
    _shared.add(federation)
    try:
        yield federation
    finally:
        _shared.remove(federation)
        federation.close()


def find_left_threads(before: Set[threading.Thread]) -> list[str]:
    """Wait until the threads that are not in `before` have ended; return the names of those that have not."""
    deadline = time.monotonic() + HANG_SECONDS
    lasting = before | {thread for federation in _shared for thread in _list_threads(federation)}
    new = [t for t in threading.enumerate() if t not in lasting and not t.name.startswith(LASTING_THREADS)]
    for thread in new:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return sorted(thread.name for thread in new if thread.is_alive())


def _list_threads(federation: Federation) -> Iterable[threading.Thread]:
    channels = (*federation._channels.values(), federation.catalogue_channel)
    return (thread for channel in channels for thread in channel._workers.threads)
