"""Start real PostgreSQL servers for tests and benchmarks, each in a folder of its own, in about a second.

A server listens on loopback and requires no password. It can be stopped, killed and started again on the same
data. `tools.postgres.builds` finds the programs.
"""

import atexit
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Protocol

import psutil
import psycopg
from psycopg import sql
from tools.postgres.builds import Build

TIMEOUT_SECONDS = 60.0  # for a server to start, recovery included, or to stop
HOST = "127.0.0.1"
# Outgoing connections get higher ports. If one of them had the port of a stopped server, it could not restart.
PORTS = range(20_000, 32_000)
MAX_TRIED_PORTS = 100
# Waits until its stdin is closed, which also happens if this process is killed. Then it ends the servers and
# removes their folder. The number in a postmaster.pid may belong to another program by then, so it checks the
# name of the process.
GUARD_SCRIPT = """
cat
for file in "$1"/*/data/postmaster.pid; do
  pid=$(head -n 1 "$file") && [ "$(cat "/proc/$pid/comm")" = postgres ] && kill -QUIT "$pid"
done 2>/dev/null
rm -rf "$1"
"""

Settings = Mapping[str, str | int]
DURABLE_SETTINGS: Settings = {}  # PostgreSQL's defaults: an acknowledged write is on disk
FAST_SETTINGS: Settings = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

_database_numbers = count(1)
_random = Random()
_cleanup = ExitStack()
atexit.register(_cleanup.close)


class ServerFailed(Exception):
    """A server did not start or does not work; the message has the end of its log."""


class StartedServer(Protocol):
    """A server whose process was started."""

    @property
    def is_running(self) -> bool:
        """Whether its process is running."""
        ...

    def read_log_tail(self) -> str:
        """Return the end of its log."""
        ...


def wait_for_start(server: StartedServer, name: str, connect: Callable[[], object]) -> None:
    """Call `connect` until it raises no error; raise ServerFailed if the server ended, or takes too long."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            connect()
        except (psycopg.OperationalError, OSError) as error:
            if not server.is_running or time.monotonic() > deadline:
                raise ServerFailed(f"{name} did not start: {error}\n{server.read_log_tail()}") from error
            time.sleep(0.02)
        else:
            return


@dataclass(eq=False, slots=True)
class Server:
    """A server. After it was stopped or killed it can be started again on the same data and port."""

    build: Build
    folder: Path
    port: int
    settings: Settings = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the database `postgres`, as superuser."""
        return self.build_url("postgres")

    def build_url(self, database: str, *, user: str = "postgres") -> str:
        """Return the address of a database for a user; no user needs a password."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    @property
    def log(self) -> Path:
        """The log file, which contains all starts of the server."""
        return self.folder / "log"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the server without waiting."""
        settings = {
            "listen_addresses": HOST,
            "port": self.port,
            "unix_socket_directories": "",
            **self.settings,
        }
        if self.build.preload:
            settings["shared_preload_libraries"] = self.build.preload
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = self.build.build_command("postgres", "-D", str(self.folder / "data"), *options)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until the server accepts connections; raise ServerFailed if it ended."""
        wait_for_start(self, "PostgreSQL", lambda: psycopg.connect(self.url, connect_timeout=2).close())

    @property
    def pid(self) -> int:
        """The process number of the postmaster; all other processes are its children."""
        if self._process is None:
            raise ServerFailed("the server was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True if the postmaster is running."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Shut the server down; do nothing if it is not running."""
        if self._process and self.is_running:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(TIMEOUT_SECONDS)

    def kill(self) -> None:
        """Kill all processes of the server with SIGKILL."""
        if self._process and self.is_running:
            postmaster = psutil.Process(self._process.pid)
            postmaster.suspend()  # so that it starts no more processes
            processes = [postmaster, *postmaster.children(recursive=True)]
            for process in processes:
                process.kill()
            self._process.wait(TIMEOUT_SECONDS)
            while any(map(_is_alive, processes)):
                time.sleep(0.002)

    def read_log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    @contextmanager
    def create_database(self, *, template: str = "template1") -> Iterator[str]:
        """Create a database from `template` and yield its address; drop it at the end, even if it is in use."""
        name = sql.Identifier(f"database_{next(_database_numbers)}")
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(create)
        try:
            yield self.build_url(name.as_string().strip('"'))
        finally:
            if self.is_running:
                with psycopg.connect(self.url, autocommit=True) as connection:
                    connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@contextmanager
def start_servers(
    build: Build, number: int = 1, *, settings: Settings = FAST_SETTINGS, folder: Path | None = None
) -> Iterator[tuple[Server, ...]]:
    """Start servers at the same time; stop and remove them at the end.

    Use `settings=DURABLE_SETTINGS` to test what is stored after a crash. `folder` is the parent of their data
    folders, for example a small disk. It must be below the folder of temporary files.
    """
    with ExitStack() as stack:
        parent = stack.enter_context(_create_guarded_folder(folder))
        servers = tuple(_create_server(build, parent / str(i), settings) for i in range(number))
        for server in servers:
            stack.callback(server.stop)
            server.launch()
        for server in servers:
            server.wait()
        yield servers


@contextmanager
def start_server(build: Build, *, settings: Settings = FAST_SETTINGS, folder: Path | None = None) -> Iterator[Server]:
    """Start one server; stop and remove it at the end."""
    with start_servers(build, settings=settings, folder=folder) as (server,):
        yield server


@contextmanager
def start_persistent_server(build: Build, folder: Path, *, settings: Settings = DURABLE_SETTINGS) -> Iterator[Server]:
    """Start a server whose data stay in `folder` for the next run; stop it at the end.

    A server that a killed process has left running there is stopped first.
    """
    _stop_left_server(folder / "data")
    if not (folder / "data").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_create_template(build), folder / "unready")
        (folder / "unready").chmod(0o700)
        (folder / "unready").rename(folder / "data")
    server = Server(build, folder.resolve(), find_free_port(), settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _stop_left_server(data: Path) -> None:
    """Stop the server that runs on a data folder, if there is one."""
    file = data / "postmaster.pid"
    try:
        process = psutil.Process(int(file.read_text().split()[0]))
        if process.name() == "postgres" and Path(process.cwd()) == data.resolve():
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT_SECONDS)
    except (FileNotFoundError, psutil.NoSuchProcess):
        return


def find_free_port() -> int:
    """Return a port on loopback that no program listens on."""
    for port in _random.sample(PORTS, MAX_TRIED_PORTS):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
            return port
    raise ServerFailed(
        f"{MAX_TRIED_PORTS} ports between {PORTS.start} and {PORTS.stop} are in use; stop other programs"
    )


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process still runs; psutil's own check also counts zombies."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def _create_guarded_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder. It and its servers are removed when the block or this process ends."""
    folder = mkdtemp(prefix="waylore-servers-", dir=parent)
    command = ["sh", "-c", GUARD_SCRIPT, "sh", folder]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield Path(folder)
    finally:
        guard.communicate()


def _create_server(build: Build, folder: Path, settings: Settings) -> Server:
    folder.mkdir()
    shutil.copytree(_create_template(build), folder / "data")
    (folder / "data").chmod(0o700)
    return Server(build, folder, find_free_port(), settings)


@cache
def _create_template(build: Build) -> Path:
    """Run `initdb` once per process and return its data folder; small log segments suit small disks."""
    data = str(_cleanup.enter_context(_create_guarded_folder(None)) / "data")
    options = [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
    ]
    command = build.build_command("initdb", "--pgdata", data, *options, "--no-sync", "--wal-segsize=1")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise ServerFailed(f"initdb failed: {run.stderr.strip()}")
    return Path(data)
