"""Run a load on the processors of one machine: processes prepare, threads of this process write.

A process waits while its pipe is full of prepared batches. Batches that wait for a writer are limited too, so the
memory of a load does not depend on its length. A process that ends, for example without memory, is replaced, and its
unit is prepared again.
"""

import subprocess  # nosec B404 (it starts our own program only)
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from typing import Any, TypeVar

from waylore.errors import WayloreError
from waylore.indexing.files.compare import KnownFile
from waylore.indexing.loading.job import (
    LoadJob,
    Outcome,
    PreparedBatch,
    Unit,
    UnitDone,
    UnitId,
    WrittenBatch,
    get_unit_id,
)
from waylore.indexing.loading.pieces import split_files
from waylore.indexing.loading.steps import write_prepared
from waylore.store.protocol import Store
from waylore.system import start_child

MAX_ATTEMPTS = 3  # attempts to prepare a unit whose process ends
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from waylore.indexing.loading.worker import main; main()"
T = TypeVar("T")


class LoadProcess:
    """A process that prepares units, one after another. `multiprocessing` would run the main module again."""

    def __init__(self, job: LoadJob) -> None:
        self.unit: Unit = ()
        self.connection, self._process = start_child(
            lambda number: [sys.executable, "-c", _PROGRAM, number, *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self._send(job)

    def prepare(self, unit: Unit) -> None:
        """Send a unit."""
        self.unit = unit
        self._send(unit)

    def _send(self, message: object) -> None:
        with suppress(OSError):  # `receive` reports that the process has ended
            self.connection.send(message)

    def receive(self) -> PreparedBatch | UnitDone:
        """Return the next message. Raise the error of the process, or EOFError if it has ended."""
        message = self.connection.recv()
        if isinstance(message, Exception):
            raise message
        found: PreparedBatch | UnitDone = message
        return found

    def kill(self) -> None:
        """End the process."""
        self.connection.close()
        self._process.kill()
        self._process.wait()


class MachineRunner:
    """Prepares units in processes and writes in threads, at most `writers` for each cell."""

    can_write = True

    def __init__(self, job: LoadJob, stores: Sequence[Store], *, workers: int, writers: int) -> None:
        self._job = job
        self._stores = stores
        self._workers = workers
        self._max_waiting = 2 * writers * len(set(job.cells))
        self._processes: dict[Connection[Any, Any], LoadProcess] = {}
        self._threads = {cell: ThreadPoolExecutor(writers, "waylore-writing") for cell in set(job.cells)}
        self._attempts: Counter[UnitId] = Counter()

    def run(self, groups: Iterator[Sequence[KnownFile]]) -> Iterator[Outcome]:
        """Yield the outcomes."""
        waiting: set[Future[WrittenBatch]] = set()
        for message in self._prepare(unit for group in groups for unit in split_files(group, self._job)):
            if isinstance(message, UnitDone):
                yield message
                continue
            waiting.add(self._submit(message.collection, self._make_write(message)))
            while len(waiting) > self._max_waiting:
                wait(waiting, return_when=FIRST_COMPLETED)
                yield from _take_done(waiting)
            yield from _take_done(waiting)
        wait(waiting)
        yield from _take_done(waiting)

    def write(self, collection: int, call: Callable[[], T]) -> T:
        """Run a write in one of the threads that write to the collection's cell."""
        return self._submit(collection, call).result()

    def close(self) -> None:
        """End processes and threads."""
        for process in self._processes.values():
            process.kill()
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _submit(self, collection: int, call: Callable[[], T]) -> Future[T]:
        return self._threads[self._job.cells[collection]].submit(call)

    def _make_write(self, prepared: PreparedBatch) -> Callable[[], WrittenBatch]:
        return lambda: write_prepared(self._stores[prepared.collection], prepared, self._job.task.author)

    def _prepare(self, units: Iterator[Unit]) -> Iterator[PreparedBatch | UnitDone]:
        """Yield the messages of the processes."""
        for _, unit in zip(range(self._workers), units, strict=False):
            self._start(unit)
        while self._processes:
            for connection in wait_for_any(list(self._processes)):
                process = self._processes[connection]  # type: ignore[index]
                try:
                    message = process.receive()
                except (EOFError, OSError):
                    self._replace(process)
                    continue
                yield message
                if isinstance(message, UnitDone):
                    self._continue(process, next(units, None))

    def _start(self, unit: Unit) -> None:
        process = LoadProcess(self._job)
        self._processes[process.connection] = process
        process.prepare(unit)

    def _continue(self, process: LoadProcess, unit: Unit | None) -> None:
        """Give a process its next unit, or end it."""
        if unit is not None:
            process.prepare(unit)
        else:
            self._processes.pop(process.connection).kill()

    def _replace(self, process: LoadProcess) -> None:
        """Give the unit of an ended process to a new process."""
        self._processes.pop(process.connection).kill()
        id_ = get_unit_id(process.unit)
        self._attempts[id_] += 1
        if self._attempts[id_] == MAX_ATTEMPTS:
            raise WayloreError(
                f"the process that prepares {id_[0]} has ended {MAX_ATTEMPTS} times; use fewer --workers if memory is "
                "short, and run the same command again to continue"
            )
        self._start(process.unit)


def _take_done(waiting: set[Future[WrittenBatch]]) -> list[WrittenBatch]:
    """Remove the writes that are done, and return their results."""
    done = [future for future in waiting if future.done()]
    waiting.difference_update(done)
    return [future.result() for future in done]
