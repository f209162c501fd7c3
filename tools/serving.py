"""Run a real `waylore serve` as a process on loopback. Only tests and benchmarks use this module."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from tools.postgres.server import HOST, find_free_port
from tools.waiting import HANG_SECONDS, wait_until

COMMAND = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]


@dataclass(frozen=True, slots=True)
class RunningService:
    """A running service: its port, its process, the folder of its uploads and its log."""

    port: int
    process: subprocess.Popen[bytes]
    spool: Path
    log: Path

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://{HOST}:{self.port}"

    def open_client(self, **options: Any) -> httpx.Client:
        """Return a client for the collection `default`."""
        return httpx.Client(base_url=f"{self.url}/v1/collections/default", timeout=HANG_SECONDS, **options)

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process and its children."""
        first = psutil.Process(self.process.pid)
        return sum(p.memory_info().rss for p in [first, *first.children(recursive=True)])

    def list_spooled(self) -> list[str]:
        """Return the names of the files in the upload folder."""
        return sorted(path.name for path in self.spool.iterdir() if path.name != ".name")


@contextmanager
def start_service(
    store: str,
    folder: Path,
    *,
    port: int = 0,
    command: tuple[str, ...] = ("serve",),
    others: Mapping[str, str] = {},
    **settings: str | float,
) -> Iterator[RunningService]:
    """Start a service on a store and stop it at the end.

    settings: settings of the section `http`.
    others: other environment variables.
    """
    folder.mkdir(exist_ok=True)
    port = port or find_free_port()
    spool = folder / "spool"
    env = _build_environment(
        store,
        folder,
        {"port": port, "auth": "false", "rate_limit": 0, "upload_dir": str(spool), **settings},
    )
    log = folder / f"{command[0]}-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*COMMAND, *command], cwd=folder, env={**env, **others}, stdout=out, stderr=out)
    service = RunningService(port, process, spool, log)
    try:
        if command == ("serve",):
            _wait_until_healthy(service)
        yield service
    finally:
        process.terminate()
        try:
            process.wait(HANG_SECONDS)
        finally:
            process.kill()


def wait_for_job(client: httpx.Client, id_: str, seconds: float = HANG_SECONDS) -> dict[str, Any]:
    """Wait until a job has ended and return it."""

    def read_ended_job() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/jobs/{id_}").raise_for_status().json()
        return job if job["ended_at"] else None

    return wait_until(read_ended_job, seconds)


def _build_environment(store: str, folder: Path, http: Mapping[str, str | float]) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WAYLORE_")}
    env |= {f"WAYLORE_HTTP_{name.upper()}": str(value) for name, value in http.items()}
    return env | {"WAYLORE_STORE": store, "WAYLORE_TELEMETRY_LOG_LEVEL": "info", "XDG_CONFIG_HOME": str(folder)}


def _wait_until_healthy(service: RunningService) -> None:
    def is_healthy() -> bool:
        assert service.process.poll() is None, service.log.read_text()
        try:
            return httpx.get(f"{service.url}/healthz", timeout=HANG_SECONDS).is_success
        except httpx.TransportError:
            return False

    wait_until(is_healthy)
