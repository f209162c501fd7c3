"""Start a real PgBouncer in front of a PostgreSQL server, in transaction mode, for tests and benchmarks."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.postgres.builds import Build, MissingRequirement, find_textsearch_build
from tools.postgres.server import HOST, TIMEOUT_SECONDS, Server, ServerFailed, find_free_port

CONFIGURATION = """\
[databases]
* = host={host} port={server}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
logfile = {folder}/log
"""


def find_debian_pgbouncer() -> Build:
    """Return the PgBouncer of the machine's Debian release."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
    if found is None:
        raise MissingRequirement("PgBouncer is not installed; run `apt-get install pgbouncer`")
    return Build(Path(found).parent)


def find_new_pgbouncer() -> Build:
    """Return the newer PgBouncer that is installed beside pg_textsearch."""
    root = find_textsearch_build().root
    if root is None or not (root / "usr/sbin/pgbouncer").exists():
        raise MissingRequirement(
            "the newer PgBouncer is missing; remove the folder and run tools/postgres/textsearch.sh"
        )
    return Build(Path("/usr/sbin"), root)


@contextmanager
def start_pgbouncer(build: Build, server: Server, users: Sequence[str]) -> Iterator[int]:
    """Start PgBouncer for these users, who need no password, and yield its port."""
    port = find_free_port()
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users))
        text = CONFIGURATION.format(host=HOST, server=server.port, port=port, folder=folder)
        (folder / "configuration").write_text(text)
        with subprocess.Popen(build.build_command("pgbouncer", "-q", str(folder / "configuration"))) as process:
            try:
                _wait(process, port, folder / "log")
                yield port
            finally:
                process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"PgBouncer did not start: {log.read_text() if log.exists() else error}") from error
            time.sleep(0.02)
        else:
            return
