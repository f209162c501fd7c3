"""Start a PostgreSQL server with a replica that has every acknowledged write, and let the replica take over.

`promote` does what Patroni or a managed service does in production. An old primary must not be started again by
itself: it would not know that another server has taken over.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from tools.postgres.builds import Build
from tools.postgres.server import HOST, Server, ServerFailed, Settings, find_free_port, start_server
from tools.waiting import wait_until

REPLICA = "replica"
RETRY = {"wal_retrieve_retry_interval": "100ms"}  # the default of 5 s would delay a promotion by up to 5 s


@dataclass(frozen=True, slots=True)
class ServerPair:
    """A primary and its replica."""

    primary: Server
    replica: Server

    def build_url(self, *, user: str = "postgres") -> str:
        """Return the address of whichever of the two can be written."""
        ports = f"{HOST}:{self.primary.port},{HOST}:{self.replica.port}"
        return f"postgresql://{user}@{ports}/postgres?target_session_attrs=read-write"

    def promote(self) -> None:
        """Make the replica the primary. It must not wait for a replica of its own, as the old primary did."""
        with psycopg.connect(self.replica.url, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            db.execute("SELECT pg_reload_conf()")
            db.execute("SELECT pg_promote(true, 60)")


@contextmanager
def start_pair(build: Build, *, settings: Settings) -> Iterator[ServerPair]:
    """Start a primary, and a replica without which it acknowledges nothing."""
    with start_server(build, settings=settings) as primary:
        replica = _copy_server(primary)
        try:
            replica.start()
            _require_replica(primary)
            yield ServerPair(primary, replica)
        finally:
            replica.stop()


def _copy_server(primary: Server) -> Server:
    """Copy the data of a running primary, in a folder beside that of the primary."""
    replica = Server(primary.build, primary.folder.parent / REPLICA, find_free_port(), {**primary.settings, **RETRY})
    replica.folder.mkdir()
    source = f"host={HOST} port={primary.port} user=postgres application_name={REPLICA}"
    options = [
        "--write-recovery-conf",
        "--wal-method=stream",
        "--checkpoint=fast",
        "--create-slot",
        f"--slot={REPLICA}",
    ]
    command = ["--pgdata", str(replica.folder / "data"), f"--dbname={source}", *options]
    run = subprocess.run(
        primary.build.build_command("pg_basebackup", *command), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise ServerFailed(f"pg_basebackup failed: {run.stderr.strip()}")
    return replica


def _require_replica(primary: Server) -> None:
    """Let the primary wait for its replica with every commit."""
    with psycopg.connect(primary.url, autocommit=True) as db:
        db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{REPLICA}'".encode())
        db.execute("SELECT pg_reload_conf()")
        wait_until(lambda: db.execute("SELECT sync_state FROM pg_stat_replication").fetchall() == [("sync",)])
