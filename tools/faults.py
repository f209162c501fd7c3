"""What happens to servers, done on purpose: a network that fails, a disk that is full, a backend that goes.

`proxy` stands between a client and a server on loopback and delays, hangs, cuts or refuses for as long as a
block lasts. `small_disk` is a file system that can really be full. `terminating` ends connections at random.
`is_done_before_killed` kills a process at its work, `tools/postgres.py` the servers themselves. Each fault that
lasts is undone when its block ends.
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
from tools.postgres import HOST, NotHere, free_port

PIECE = 1 << 16
PATIENCE = 10.0  # seconds in which a proxy must do what it is told
# What a client may ask for before it starts: to speak under TLS, or under GSSAPI.
ENCRYPTED = ((80877103).to_bytes(4, "big"), (80877104).to_bytes(4, "big"))
# One connection to this database, any but ours.
TERMINATE = """
    SELECT pid FROM (
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        ORDER BY random() LIMIT 1
    ) AS chosen WHERE pg_terminate_backend(pid)
"""


@dataclass(slots=True)
class Questions:
    """Reads what a client of PostgreSQL sends, to tell when it wants an answer: Sync, Flush and Query."""

    unread: bytes = b""
    last: bytes = b""
    has_begun: bool = False

    def asked(self, piece: bytes) -> int:
        """How often it asked for an answer, once this piece has come, since the last one had."""
        self.unread += piece
        count = 0
        while message := self._next():
            is_one_more = message in b"SQ" or (message == b"H" and self.last != b"S")  # libpq may send both
            self.last, count = message, count + is_one_more
        return count

    def _next(self) -> bytes:
        """The kind of the next message that is there whole; the first ones have none."""
        at = 1 if self.has_begun else 0
        length = at + int.from_bytes(self.unread[at : at + 4], "big") if len(self.unread) >= at + 4 else 0
        if not length or len(self.unread) < length:
            return b""
        kind = self.unread[:1] if self.has_begun else b"-"
        self.has_begun = self.has_begun or self.unread[4:8] not in ENCRYPTED
        self.unread = self.unread[length:]
        return kind


@dataclass(eq=False, slots=True)
class Proxy:
    """A port on loopback that leads to another one, more or less.

    A fault holds for connections that are open and for those that come, until its block ends.
    """

    target: int
    port: int = field(default_factory=free_port)
    connections: int = 0  # taken so far
    turns: int = 0  # how often a client asked for an answer, so far: the round trips
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _listener: asyncio.Server | None = None
    _open: set[StreamWriter] = field(default_factory=set)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _delay: float = 0.0
    _share: float = 1.0  # of the pieces that are delayed
    _left: int | None = None  # bytes of answers until everything is cut

    def url(self, url: str) -> str:
        """The same database, over this proxy."""
        parts = urlsplit(url)
        return parts._replace(netloc=f"{parts.username}@{HOST}:{self.port}").geturl()

    @contextmanager
    def delaying(self, seconds: float, *, share: float = 1.0) -> Iterator[None]:
        """Every piece of an answer comes that much later, or a share of them, at random."""
        self._share, self._delay = share, seconds
        try:
            yield
        finally:
            self._delay = 0.0

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Connections are taken, but nothing goes through; what was held back arrives when the block ends."""
        self._loop.call_soon_threadsafe(self._flowing.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._flowing.set)

    @contextmanager
    def cutting(self, *, after: int) -> Iterator[None]:
        """Once so many bytes of answers went through, all connections are cut, and all that come."""
        self._left = after
        try:
            yield
        finally:
            self._left = None

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Connections are cut and new ones refused, as by a machine on which nothing listens."""
        self._do(self._closed())
        try:
            yield
        finally:
            self._do(self._listening())

    def cut(self) -> None:
        """Cut every connection, once."""
        self._loop.call_soon_threadsafe(self._cut)

    @contextmanager
    def _running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}")
        thread.start()
        self._flowing.set()
        try:
            self._do(self._listening())
            yield
            self._do(self._closed())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _listening(self) -> None:
        self._listener = await asyncio.start_server(self._taken, HOST, self.port)

    async def _closed(self) -> None:
        if self._listener:
            self._listener.close()
        while self._open:
            self._cut()
            await asyncio.sleep(0.001)

    async def _taken(self, reader: StreamReader, writer: StreamWriter) -> None:
        """A connection, as long as both of its ends are there."""
        self.connections += 1
        self._open.add(writer)
        with suppress(OSError):
            from_server, to_server = await asyncio.open_connection(HOST, self.target)
            self._open.add(to_server)
            await asyncio.gather(self._asking(reader, to_server), self._answering(from_server, writer))
            self._open.discard(to_server)
        writer.transport.abort()
        self._open.discard(writer)

    async def _asking(self, reader: StreamReader, writer: StreamWriter) -> None:
        questions = Questions()
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                self.turns += questions.asked(piece)
                await self._flowing.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def _answering(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._flowing.wait()
                await asyncio.sleep(self._delay if random() < self._share else 0.0)
                writer.write(piece[: self._left])
                await writer.drain()
                if self._left is not None:
                    self._left = max(self._left - len(piece), 0)
                    if not self._left:
                        self._cut()
        writer.close()


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """A proxy before a port on loopback."""
    made = Proxy(target)
    with made._running():
        yield made


@dataclass(frozen=True, slots=True)
class Disk:
    """A folder that is a file system of its own."""

    folder: Path

    def fill(self) -> None:
        """Take what room is left, to the last byte."""
        with (self.folder / "ballast").open("ab", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(4096))

    def clear(self) -> None:
        """Give back what `fill` took."""
        (self.folder / "ballast").unlink(missing_ok=True)


@contextmanager
def small_disk(size: int) -> Iterator[Disk]:
    """A file system of so many bytes, in memory; `tools.postgres.server(folder=…)` keeps its data on it."""
    with TemporaryDirectory(prefix="waylore-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotHere("a small disk is a tmpfs, and only root may mount one: run this as root") from error
        try:
            yield Disk(Path(folder))
        finally:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def terminating(url: str, *, every: float) -> Iterator[list[int]]:
    """End a connection to this database every so many seconds, whichever; the list tells which went."""
    gone: list[int] = []
    over = threading.Event()

    def work() -> None:
        while not over.wait(every):
            with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
                while not over.wait(every):
                    gone.extend(pid for (pid,) in connection.execute(TERMINATE))

    thread = threading.Thread(target=work, name="terminating")
    thread.start()
    try:
        yield gone
    finally:
        over.set()
        thread.join()


def is_done_before_killed(command: Sequence[str], folder: Path, seconds: float) -> bool:
    """Kill a process so long after it says that it has begun; whether it said before that it is done."""
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout
    assert started.stdout.readline() == "begun\n"
    time.sleep(seconds)
    os.killpg(started.pid, signal.SIGKILL)
    told, _ = started.communicate()
    return told == "done\n"
