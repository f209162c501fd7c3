"""Start real Qdrant servers for tests and benchmarks: one, or the peers of a cluster.

A server listens on loopback, without an API key. It can be stopped, killed and started again on the same data.
`python -m tools.qdrant` downloads the program.
"""

import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.postgres.builds import Build, MissingRequirement
from tools.postgres.server import HOST, TIMEOUT_SECONDS, ServerFailed, find_free_port, wait_for_start
from tools.qdrant.program import PROGRAM

END_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]
CONFIGURATION = """\
log_level: WARN
telemetry_disabled: true
service: {{host: {host}, http_port: {http}, enable_static_content: false}}
cluster: {{enabled: {is_cluster}, p2p: {{port: {p2p}}}}}
storage:
  storage_path: {folder}/storage
  snapshots_path: {folder}/snapshots
  temp_path: {folder}/temporary
  wal: {{wal_capacity_mb: 4}}
"""


def find_qdrant() -> Build:
    """Return the Qdrant program."""
    if not PROGRAM.exists():
        raise MissingRequirement("Qdrant is not installed; run `python -m tools.qdrant`")
    return Build(PROGRAM.parent)


@dataclass(eq=False, slots=True)
class QdrantServer:
    """A server, or a peer of a cluster. After it was killed it can be started again on the same data and ports."""

    build: Build
    folder: Path
    first: "QdrantServer | None" = None  # the first peer of the cluster, if it is another one
    is_cluster: bool = False
    port: int = field(default_factory=find_free_port)
    peer_port: int = field(default_factory=find_free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://{HOST}:{self.port}"

    @property
    def peer_url(self) -> str:
        """The address for other peers."""
        return f"http://{HOST}:{self.peer_port}"

    @property
    def storage(self) -> Path:
        """The folder of its files."""
        return self.folder / "storage"

    @property
    def log(self) -> Path:
        """The log file, which contains all starts of the server."""
        return self.folder / "log"

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the server without waiting."""
        self.folder.mkdir(exist_ok=True)
        configuration = CONFIGURATION.format(
            host=HOST,
            http=self.port,
            p2p=self.peer_port,
            folder=self.folder,
            is_cluster="true" if self.is_cluster else "false",
        )
        (self.folder / "configuration.yaml").write_text(configuration)
        options = ["--config-path", str(self.folder / "configuration.yaml"), "--disable-telemetry"]
        if self.is_cluster:
            options += ["--uri", self.peer_url]
        if self.first:
            options += ["--bootstrap", self.first.peer_url]
        [*as_user, program] = self.build.build_command("qdrant")
        command = [*as_user, *END_WITH_PARENT, program, *options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until the server is ready; raise ServerFailed if it ended."""
        wait_for_start(self, "Qdrant", lambda: urllib.request.urlopen(f"{self.url}/readyz", timeout=2).close())

    @property
    def pid(self) -> int:
        """The number of its process."""
        if self._process is None:
            raise ServerFailed("the server was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server is running."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Shut the server down; do nothing if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Let the server hang until it is resumed."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a suspended server go on."""
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def read_log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    def _end(self, how: signal.Signals) -> None:
        if self._process and self.is_running:
            self._process.send_signal(how)
            try:
                self._process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(TIMEOUT_SECONDS)


@contextmanager
def start_qdrant() -> Iterator[QdrantServer]:
    """Start one server; stop and remove it at the end."""
    with TemporaryDirectory(prefix="waylore-qdrant-", ignore_cleanup_errors=True) as folder:
        server = QdrantServer(find_qdrant(), Path(folder) / "one")
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def start_cluster(peers: int = 3) -> Iterator[list[QdrantServer]]:
    """Start the peers of a cluster; stop and remove them at the end."""
    build = find_qdrant()
    with TemporaryDirectory(prefix="waylore-qdrant-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        first = QdrantServer(build, Path(name) / "0", is_cluster=True)
        others = [QdrantServer(build, Path(name) / str(i), first=first, is_cluster=True) for i in range(1, peers)]
        servers = [first, *others]
        for server in servers:
            stack.callback(server.kill)
            server.start()
        _wait_for_peers(first, peers)
        yield servers


def _wait_for_peers(server: QdrantServer, peers: int) -> None:
    """Wait until a server knows all peers of its cluster."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        with urllib.request.urlopen(f"{server.url}/cluster", timeout=5) as answer:
            if answer.read().count(b'"uri"') >= peers:
                return
        if time.monotonic() > deadline:
            raise ServerFailed(f"the cluster has not {peers} peers\n{server.read_log_tail()}")
        time.sleep(0.1)
