"""Read files in separate processes, with limits for each file: this module starts and stops the processes.

A process is started when the first file needs one, and reads one file after another. It is killed when the reading
stops before the end of a file, as on Ctrl-C or when a job is cancelled, and when it exceeds a limit; the next file
gets another one. It sends JSON, not pickles, because it may have read a hostile file. `multiprocessing` would
run the main module of the caller again; `concurrent.futures` cannot kill the process of one task. The program of the
process is `files.worker`.
"""

import atexit
import json
import os
import signal
import subprocess  # nosec B404 (for its constants)
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Block, BlockKind, Limits, Mark, ReadError, Reading, Skipped, Source
from waylore.system import call_in_forks, start_child

MAX_IDLE = 2  # processes that wait for the next file
WAIT_SECONDS = 0.5  # interval of calls of `wait` while a process reads
PATIENCE = 10  # a process that uses no processor time is killed after this multiple of the limit, by the clock
MAX_MESSAGE_BYTES = 2**28
OUT_OF_MEMORY = 77  # exit status of a process that exceeded its memory
END = b"null"
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from waylore.indexing.files.worker import main; main()"
# Our own environment is not passed on, because it has secrets. Threads of OpenBLAS and Arrow's own heap would take
# address space.
_ENVIRONMENT = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def read_in_process(source: Source, wait: Callable[[], object]) -> Iterator[Reading | Skipped]:
    """Yield the documents of a file that a process reads; `wait` is called meanwhile and may raise to stop it."""
    try:
        process = _take_idle() or ReaderProcess()
    except OSError as error:
        yield Skipped(source.uri, f"the process that reads files cannot be started: {error}")
        return
    is_read = False
    try:
        yield from process.read(source, wait)
        is_read = True
    except ReadError as error:
        yield Skipped(source.uri, str(error))
    finally:
        if is_read and len(_idle) < MAX_IDLE:
            _idle.append(process)
        else:
            process.kill()


class ReaderProcess:
    """A process that reads files, one after another."""

    def __init__(self) -> None:
        self._connection, self._process = start_child(
            lambda number: [sys.executable, "-I", "-c", _PROGRAM, number, *sys.path],
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def is_running(self) -> bool:
        """Whether the process can read another file."""
        return self._process.poll() is None

    @property
    def id(self) -> int:
        """The id of the process."""
        return self._process.pid

    def read(self, source: Source, wait: Callable[[], object]) -> Iterator[Reading | Skipped]:
        """Send a file to the process and yield the items that it sends back. Raise ReadError if the process ends."""
        self._send(encode_source(source), source.limits)
        while (message := self._receive(source.limits, wait)) != END:
            yield decode_item(message)

    def kill(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _send(self, message: bytes, limits: Limits) -> None:
        try:
            self._connection.send_bytes(message)
        except OSError as error:
            raise ReadError(_describe_end(self._process.wait(), limits)) from error

    def _receive(self, limits: Limits, wait: Callable[[], object]) -> bytes:
        began = time.monotonic()
        while not self._connection.poll(WAIT_SECONDS):
            wait()
            if time.monotonic() - began > PATIENCE * limits.seconds:
                raise ReadError(_describe_time(limits))
        try:
            return self._connection.recv_bytes(MAX_MESSAGE_BYTES)
        except (EOFError, OSError) as error:
            raise ReadError(_describe_end(self._process.wait(), limits)) from error


# -- processes that wait for a file --------------------------------------------------------------------

_idle: deque[ReaderProcess] = deque()


def _take_idle() -> ReaderProcess | None:
    while _idle:
        try:
            process = _idle.pop()
        except IndexError:  # another thread took the process
            break
        if process.is_running:
            return process
        process.kill()
    return None


def kill_idle() -> None:
    """End the processes that wait for a file."""
    while _idle:
        _idle.pop().kill()


atexit.register(kill_idle)
call_in_forks(_idle.clear)  # the processes belong to the parent


def _describe_end(status: int, limits: Limits) -> str:
    if status == -signal.SIGXCPU:
        return _describe_time(limits)
    if status == OUT_OF_MEMORY:
        return f"reading it takes more than {limits.memory:,} bytes of memory: split it, or raise the limit `memory`"
    reason = signal.Signals(-status).name if status < 0 else f"status {status}"
    return f"it cannot be read: the process that read it ended with {reason}"


def _describe_time(limits: Limits) -> str:
    return (
        f"reading it takes more than {limits.seconds} seconds of processor time: split it, or raise the setting "
        f"files.seconds or the limit `seconds`"
    )


# -- messages ------------------------------------------------------------------------------------------


def encode_source(source: Source) -> bytes:
    """Return a file to read as a message, with the folders for imports."""
    return _encode([str(source.path.absolute()), source.uri, asdict(source.limits), source.first_row, sys.path])


def decode_source(message: bytes) -> tuple[Source, list[str]]:
    """Return the file of a message, and the folders for imports."""
    path, uri, limits, first_row, folders = _decode(message)
    return Source(Path(path), uri, Limits(**limits), first_row=first_row), folders


def encode_item(item: Reading | Skipped) -> bytes:
    """Return an item of a reader as a message; headings that many blocks share are sent once."""
    if isinstance(item, Skipped):
        return _encode([item.uri, item.reason])
    headings = {each: number for number, each in enumerate(dict.fromkeys(block.headings for block in item.blocks))}
    blocks = [_encode_block(block, headings[block.headings]) for block in item.blocks]
    place = (item.start, item.bytes_read)
    return _encode([item.uri, item.title, item.text, blocks, list(headings), dict(item.metadata), place])


def decode_item(message: bytes) -> Reading | Skipped:
    """Return the item of a message."""
    uri, *fields = _decode(message)
    if len(fields) == 1:
        return Skipped(uri, *fields)
    title, text, blocks, headings, metadata, place = fields
    paths = [tuple(each) for each in headings]
    found = tuple(_decode_block(paths, *block) for block in blocks)
    return Reading(uri, title, text, found, metadata, *place)


def _encode_block(block: Block, headings: int) -> list[Any]:
    """Return a block as a list. It ends after the offsets if the block has no key, cells, marks and entry, as usual."""
    place = [headings, block.kind, block.start, block.end]
    marks = [(mark.kind, mark.start, mark.end, mark.target) for mark in block.marks]
    more = [block.key, block.cells, marks, block.about]
    return [*place, *more] if any(more) else place


def _decode_block(
    paths: list[tuple[str, ...]],
    headings: int,
    kind: BlockKind,
    start: int,
    end: int,
    key: str = "",
    cells: Iterable[tuple[str, str]] = (),
    marks: Iterable[Any] = (),
    about: str = "",
) -> Block:
    pairs = tuple((column, cell) for column, cell in cells)
    return Block(kind, start, end, paths[headings], key, pairs, tuple(Mark(*mark) for mark in marks), about)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decode(message: bytes) -> Any:
    return json.loads(message.decode("utf-8", "surrogatepass"))
