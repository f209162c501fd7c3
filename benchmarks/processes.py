"""Read figures of processes, some of which end while they are read, as the workers of a server do."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import psutil

T = TypeVar("T")


def list_trees(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return processes with all that they have started."""
    return [each for root in roots for each in (root, *root.children(recursive=True))]


def read_living(read: Callable[[psutil.Process], T], processes: Iterable[psutil.Process]) -> Iterator[T]:
    """Yield what is read of each process that still runs."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            yield read(process)


def count_seconds(processes: Iterable[psutil.Process]) -> float:
    """Return the processor seconds of the processes that still run."""
    return float(sum(t.user + t.system for t in read_living(psutil.Process.cpu_times, processes)))
