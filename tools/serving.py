"""A real `waylore serve`, a process of its own on loopback, for tests and benchmarks to treat as the world does.

The product knows nothing of this.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from tools.postgres import HOST, free_port

COMMAND = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs: where it answers, its process, and the folder of its uploads."""

    port: int
    process: subprocess.Popen[bytes]
    spool: Path
    log: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}"

    def client(self, **options: Any) -> httpx.Client:
        """Someone who asks its collection `default`."""
        return httpx.Client(base_url=f"{self.url}/v1/collections/default", timeout=30.0, **options)

    @property
    def resident(self) -> int:
        """Bytes of memory of the process and those that it started."""
        first = psutil.Process(self.process.pid)
        return sum(p.memory_info().rss for p in [first, *first.children(recursive=True)])

    def spooled(self) -> list[str]:
        """What lies in the folder of uploads."""
        return sorted(path.name for path in self.spool.iterdir() if path.name != ".name")


@contextmanager
def serving(
    store: str,
    folder: Path,
    *,
    port: int = 0,
    command: tuple[str, ...] = ("serve",),
    others: Mapping[str, str] = {},
    **settings: str | float,
) -> Iterator[Served]:
    """A service over a store, stopped in the end; settings are those of http, `others` variables."""
    folder.mkdir(exist_ok=True)
    port = port or free_port()
    spool = folder / "spool"
    told: Mapping[str, str | float] = {
        "port": port,
        "auth": "false",
        "rate": 0,
        "spool": str(spool),
        **settings,
    }
    env = {name: value for name, value in os.environ.items() if not name.startswith("WAYLORE_")}
    env |= {f"WAYLORE_HTTP_{name.upper()}": str(value) for name, value in told.items()}
    env |= {"WAYLORE_STORE": store, "WAYLORE_TELEMETRY_LEVEL": "info", "XDG_CONFIG_HOME": str(folder), **others}
    log = folder / f"{command[0]}-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*COMMAND, *command], cwd=folder, env=env, stdout=out, stderr=out)
    served = Served(port, process, spool, log)
    try:
        if command == ("serve",):
            _wait(served)
        yield served
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()


def until(holds: Any, seconds: float = PATIENCE) -> Any:
    """What a look gives, once it gives something."""
    latest = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < latest, "it did not happen in time"
        time.sleep(0.05)
    return found


def over(client: httpx.Client, id_: str, seconds: float = PATIENCE) -> dict[str, Any]:
    """A job, once it is over."""

    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/jobs/{id_}").raise_for_status().json()
        return job if job["ended_at"] else None

    found: dict[str, Any] = until(look, seconds)
    return found


def _wait(served: Served) -> None:
    latest = time.monotonic() + PATIENCE
    while True:
        try:
            httpx.get(f"{served.url}/healthz").raise_for_status()
        except httpx.HTTPError:
            assert served.process.poll() is None, served.log.read_text()
            assert time.monotonic() < latest, served.log.read_text()
            time.sleep(0.1)
        else:
            return
