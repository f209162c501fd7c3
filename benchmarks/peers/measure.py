"""Run a phase of a peer as a process of its own, and measure time, processor, memory and bytes of its whole tree."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.peers.adapters.frame import STORE
from benchmarks.peers.environments import PEERS, ROOT, find_environment, find_python
from benchmarks.peers.server import ModelServer

INTERVAL = 0.25
KILL_SECONDS = 10.0
COSTS, LOG = "costs.jsonl", "log.txt"
Phase = str  # index, ask or delete


class PeerFailed(Exception):
    """A peer did not finish a phase; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class PhaseCosts:
    """What a phase took, with everything that its processes did. `wall` includes `embedding`, the time of the server."""

    phase: Phase
    wall: float
    processor: float
    memory: int
    disk: int
    embedding: float = 0.0
    texts: int = 0
    calls: int = 0
    tokens: int = 0


@dataclass(slots=True)
class ProcessTree:
    """A process and all its descendants, seen at intervals."""

    process: psutil.Process
    seconds: dict[int, float]
    memory: int = 0

    def sample(self) -> None:
        """Add up the memory of the tree, shared pages counted once, and note the processor time of each process."""
        total = 0
        for each in self.list_processes():
            with suppress(psutil.Error):
                times = each.cpu_times()
                self.seconds[each.pid] = times.user + times.system
                total += each.memory_full_info().pss
        self.memory = max(self.memory, total)

    def list_processes(self) -> list[psutil.Process]:
        """Return the process and its descendants."""
        with suppress(psutil.NoSuchProcess):
            return [self.process, *self.process.children(recursive=True)]
        return []

    def kill(self) -> None:
        """Kill every process at once, and wait until all are gone."""
        processes = self.list_processes()
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
        psutil.wait_procs(processes[1:], timeout=KILL_SECONDS)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a peer works: the folder of all, the name of the set and of the peer.

    `python` is its interpreter; without one, its environment is made. `batch` is how many passages it indexes at a time,
    if not as many as its script says.
    """

    folder: Path
    set: str
    peer: str
    python: str = ""
    batch: int = 0

    @property
    def set_folder(self) -> Path:
        """The folder of the set."""
        return self.folder / "sets" / self.set

    @property
    def work(self) -> Path:
        """The folder of the peer's store and results."""
        return self.folder / "runs" / self.set / self.peer


def run_phase(
    place: Place, phase: Phase, server: ModelServer, *more: str, is_over: Callable[[], bool] = lambda: False
) -> PhaseCosts:
    """Run a phase and write what it took. If `is_over` becomes true, the whole tree is killed."""
    place.work.mkdir(parents=True, exist_ok=True)
    before = asdict(server.counts)
    start = time.perf_counter()
    with (place.work / LOG).open("ab") as log:
        process = subprocess.Popen(
            _build_command(place, phase, server.url, *more),
            cwd=ROOT,
            env=_build_variables(place, server.url),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        tree = ProcessTree(psutil.Process(process.pid), {})
        try:
            while process.poll() is None:
                tree.sample()
                if is_over():
                    tree.kill()
                time.sleep(INTERVAL)
        finally:
            tree.kill()
            process.wait()
    wall = time.perf_counter() - start
    if process.returncode and not is_over():
        raise PeerFailed(f"{place.peer} did not {phase} {place.set}:\n{read_tail(place.work / LOG)}")
    costs = _make_costs(phase, wall, tree, place, before, asdict(server.counts))
    with (place.work / COSTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(costs)) + "\n")
    return costs


def _make_costs(
    phase: Phase,
    wall: float,
    tree: ProcessTree,
    place: Place,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> PhaseCosts:
    gained = {name: after[name] - before[name] for name in after}
    return PhaseCosts(
        phase,
        wall,
        sum(tree.seconds.values()),
        tree.memory,
        measure_folder(place.work / STORE),
        gained["seconds"],
        int(gained["texts"]),
        int(gained["calls"]),
        int(gained["prompt_tokens"] + gained["completion_tokens"]),
    )


def _build_command(place: Place, phase: Phase, url: str, *more: str) -> list[str]:
    python = place.python or find_python(place.peer, place.folder / "environments")
    script = f"benchmarks.peers.adapters.{PEERS[place.peer].script}"
    return [str(python), "-m", script, phase, str(place.set_folder), str(place.work), url, *more]


def _build_variables(place: Place, url: str) -> dict[str, str]:
    """Return the environment of a peer: no keys, no telemetry, and a home below its store."""
    home = place.work / STORE / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "WAYLORE_MODELS", "PYTHONPATH") if name in os.environ}
    ours = {"HOME": str(home), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url, "DO_NOT_TRACK": "1"}
    spec = PEERS[place.peer]
    if not place.python:
        kept.pop("PYTHONPATH", None)
    if place.batch:
        ours["PEER_BATCH"] = str(place.batch)
    if spec.program:
        packed = find_environment(place.peer, place.folder / "environments") / "package"
        ours["PEER_PROGRAM"] = str(packed / spec.program.path)
    return {**kept, **ours, **spec.variables}


def measure_folder(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_dir())


def read_tail(file: Path, lines: int = 25) -> str:
    """Return the last lines of a log."""
    return "\n".join(file.read_text("utf-8", "replace").splitlines()[-lines:]) if file.exists() else ""
