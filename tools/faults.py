"""Cause faults on purpose: a failing network, a full disk, a terminated database connection, a killed process.

`start_proxy` runs a proxy between a client and a server on loopback. The proxy delays, hangs, cuts or refuses
connections while a block lasts. `mount_small_disk` mounts a file system that can really be full.
`terminate_connections` ends database connections at random. `start_and_kill` kills a process while it works.
`tools/postgres/server.py` kills whole servers. A fault ends with its block.
"""

import asyncio
import os
import signal
import subprocess
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import random
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import psycopg
from tools.postgres.builds import MissingRequirement
from tools.postgres.server import HOST, find_free_port
from tools.waiting import HANG_SECONDS

READ_BYTES = 1 << 16
# A client may first request encryption by TLS or by GSSAPI.
ENCRYPTION_REQUESTS = ((80877103).to_bytes(4, "big"), (80877104).to_bytes(4, "big"))
# Terminates one connection to this database at random, but not our own.
TERMINATE_ONE = """
    SELECT pid FROM (
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        ORDER BY random() LIMIT 1
    ) AS chosen WHERE pg_terminate_backend(pid)
"""


@dataclass(slots=True)
class RequestCounter:
    """Counts the messages of a PostgreSQL client that request an answer: Sync, Flush and Query."""

    unread: bytes = b""
    last: bytes = b""
    has_begun: bool = False

    def count_requests(self, piece: bytes) -> int:
        """Add bytes that the client sent; return how many requests became complete with them."""
        self.unread += piece
        count = 0
        while message := self._read_message():
            is_request = message in b"SQ" or (message == b"H" and self.last != b"S")  # libpq may send both
            self.last, count = message, count + is_request
        return count

    def _read_message(self) -> bytes:
        """Return the type of the next complete message, b"-" for start-up messages, b"" if there is none."""
        at = 1 if self.has_begun else 0
        length = at + int.from_bytes(self.unread[at : at + 4], "big") if len(self.unread) >= at + 4 else 0
        if not length or len(self.unread) < length:
            return b""
        kind = self.unread[:1] if self.has_begun else b"-"
        self.has_begun = self.has_begun or self.unread[4:8] not in ENCRYPTION_REQUESTS
        self.unread = self.unread[length:]
        return kind


@dataclass(eq=False, slots=True)
class Proxy:
    """A port on loopback that forwards to another port.

    Until its block ends, a fault affects the open connections and new ones.
    """

    target: int
    port: int = field(default_factory=find_free_port)
    connections: int = 0  # accepted so far
    round_trips: int = 0  # requests of clients so far
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _listener: asyncio.Server | None = None
    _open: set[StreamWriter] = field(default_factory=set)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _delay: float = 0.0
    _delayed_share: float = 1.0  # of the pieces of answers
    _bytes_left: int | None = None  # of answers, until all connections are cut

    def build_url(self, url: str) -> str:
        """Return the address of a database through this proxy."""
        parts = urlsplit(url)
        return parts._replace(netloc=f"{parts.username}@{HOST}:{self.port}").geturl()

    @contextmanager
    def delay(self, seconds: float, *, share: float = 1.0) -> Iterator[None]:
        """Delay all pieces of answers, or a random share of them."""
        self._delayed_share, self._delay = share, seconds
        try:
            yield
        finally:
            self._delay = 0.0

    @contextmanager
    def hang(self) -> Iterator[None]:
        """Accept connections but forward nothing; forward the held data when the block ends."""
        self._loop.call_soon_threadsafe(self._flowing.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._flowing.set)

    @contextmanager
    def cut_answers(self, *, after: int) -> Iterator[None]:
        """Cut all connections, also new ones, after this number of bytes of answers."""
        self._bytes_left = after
        try:
            yield
        finally:
            self._bytes_left = None

    @contextmanager
    def refuse(self) -> Iterator[None]:
        """Cut connections and refuse new ones, like a machine on which nothing listens."""
        self._run(self._close())
        try:
            yield
        finally:
            self._run(self._listen())

    def cut(self) -> None:
        """Cut every connection, once."""
        self._loop.call_soon_threadsafe(self._cut)

    @contextmanager
    def _run_thread(self) -> Iterator[None]:
        thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}")
        thread.start()
        self._flowing.set()
        try:
            self._run(self._listen())
            yield
            self._run(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(HANG_SECONDS)

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, HOST, self.port)

    async def _close(self) -> None:
        if self._listener:
            self._listener.close()
        while self._open:
            self._cut()
            await asyncio.sleep(0.001)

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Forward a connection until one of its ends closes it."""
        self.connections += 1
        self._open.add(writer)
        with suppress(OSError):
            from_server, to_server = await asyncio.open_connection(HOST, self.target)
            self._open.add(to_server)
            forward = self._forward_requests(reader, to_server), self._forward_answers(from_server, writer)
            await asyncio.gather(*forward)
            self._open.discard(to_server)
        writer.transport.abort()
        self._open.discard(writer)

    async def _forward_requests(self, reader: StreamReader, writer: StreamWriter) -> None:
        counter = RequestCounter()
        with suppress(OSError):
            while piece := await reader.read(READ_BYTES):
                self.round_trips += counter.count_requests(piece)
                await self._flowing.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def _forward_answers(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(READ_BYTES):
                await self._flowing.wait()
                await asyncio.sleep(self._delay if random() < self._delayed_share else 0.0)
                writer.write(piece[: self._bytes_left])
                await writer.drain()
                if self._bytes_left is not None:
                    self._bytes_left = max(self._bytes_left - len(piece), 0)
                    if not self._bytes_left:
                        self._cut()
        writer.close()


@contextmanager
def start_proxy(target: int) -> Iterator[Proxy]:
    """Start a proxy for a port on loopback; stop it at the end."""
    proxy = Proxy(target)
    with proxy._run_thread():
        yield proxy


@dataclass(frozen=True, slots=True)
class Disk:
    """A folder with a file system of its own."""

    folder: Path

    def fill(self) -> None:
        """Fill the file system to the last byte."""
        with (self.folder / "ballast").open("ab", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(4096))

    def clear(self) -> None:
        """Free the space that `fill` used."""
        (self.folder / "ballast").unlink(missing_ok=True)


@contextmanager
def mount_small_disk(size: int) -> Iterator[Disk]:
    """Mount a file system in memory with `size` bytes; `start_server(folder=…)` stores its data on it."""
    with TemporaryDirectory(prefix="waylore-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingRequirement("mounting a tmpfs needs root; run this as root") from error
        try:
            yield Disk(Path(folder))
        finally:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def terminate_connections(url: str, *, every: float) -> Iterator[list[int]]:
    """Terminate a random connection to this database every `every` seconds; yield the list of their pids."""
    terminated: list[int] = []
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(every):
            with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
                while not ended.wait(every):
                    terminated.extend(pid for (pid,) in connection.execute(TERMINATE_ONE))

    thread = threading.Thread(target=work, name="terminate-connections")
    thread.start()
    try:
        yield terminated
    finally:
        ended.set()
        thread.join()


def measure_seconds(command: list[str]) -> float:
    """Return how long a process takes from the line "begun" to its end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        assert started.stdout.readline() == "begun\n"
        start = time.monotonic()
        assert started.stdout.read() == "done\n"
    return time.monotonic() - start


def start_and_kill(command: Sequence[str], folder: Path, seconds: float) -> bool:
    """Start a process that prints "begun" and later "done", and kill it `seconds` after "begun".

    Return whether it printed "done" before it was killed.
    """
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout
    assert started.stdout.readline() == "begun\n"
    time.sleep(seconds)
    os.killpg(started.pid, signal.SIGKILL)
    output, _ = started.communicate()
    return output == "done\n"
