"""A load on a Ray cluster of three nodes gives what adding with one process gives, also if a node dies.

These tests take minutes and need Ray, 600 MB, so that CI leaves them out: `pip install 'waylore[ray]'`. Without Ray
they fail.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tools.waiting import wait_until

from databases import create_database
from loading.loads import add, export, write_corpus
from surfaces.commands import COMMAND, environment
from waylore.cells.admin import add_cell
from waylore.cells.open import create_catalogue
from waylore.store.urls import open_store

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.timeout(3_600), pytest.mark.usefixtures("postgres")]
TESTS = Path(__file__).parents[1]
LONG = 1_500  # seconds for a load on a cluster whose nodes share two processors with others
PATIENT = {  # Ray gives up on a busy machine otherwise
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "600",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_worker_register_timeout_seconds": "600",
}


class RunningCluster:
    """A cluster in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._to: IO[str] = process.stdin
        self._from: IO[str] = process.stdout
        self.address = self._read()

    def kill_node(self) -> int:
        """Kill one of the nodes, and return the number of its actors that prepare."""
        self._to.write("kill\n")
        self._to.flush()
        return int(self._read().removeprefix("killed "))

    def stop(self) -> None:
        """End the input, which stops the cluster."""
        self._to.close()

    def _read(self) -> str:
        """Return the next line that the cluster says; Ray prints others."""
        for line in self._from:
            if line.startswith(("127.", "10.", "172.", "192.", "killed")):
                return line.strip()
        raise AssertionError("the cluster did not start: pip install 'waylore[ray]'")


@pytest.fixture
def cluster() -> Iterator[RunningCluster]:
    paths = os.pathsep.join(map(str, [TESTS, TESTS.parent, TESTS.parent / "src"]))
    with subprocess.Popen(
        [sys.executable, "-m", "loading.cluster"],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": paths, **PATIENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        running = RunningCluster(process)
        yield running
        running.stop()


def test_node_dies_in_mid_load(cluster: RunningCluster, tmp_path: Path) -> None:
    corpus, url = make_corpus(tmp_path), create_database()
    driver = start_load(cluster, corpus, url, "default", tmp_path)
    try:
        wait_until(lambda: count_documents(url, "default") > 0, LONG)
        assert cluster.kill_node() > 0
        stored = count_documents(url, "default")
        assert driver.wait(LONG) == 0
    finally:
        kill(driver)
    add(corpus, str(tmp_path / "added.waylore"))
    expected = export(str(tmp_path / "added.waylore"))
    assert stored < len(expected) - 1, "the node died in mid-load"
    assert export(url) == expected


def test_killed_driver_resumes_in_cells(cluster: RunningCluster, tmp_path: Path) -> None:
    corpus, names = make_corpus(tmp_path), ("docs-0", "docs-1")
    databases = [create_database(), create_database()]
    catalogue = f"sqlite:///{tmp_path / 'catalogue.waylore'}"
    with closing(create_catalogue(catalogue)) as made:
        for number, database in enumerate(databases):
            add_cell(made, f"cell-{number}", database)
    url = f"cells+{catalogue}"
    driver = start_load(cluster, corpus, url, ",".join(names), tmp_path)
    try:
        most = [1, 1]

        def is_begun() -> bool:
            most[:] = [max(pair) for pair in zip(most, map(count_writers, databases), strict=True)]
            return all(count_documents(url, name) > 0 for name in names)

        wait_until(is_begun, LONG)
        assert max(most) <= 2
    finally:
        kill(driver)
    stored = sum(count_documents(url, name) for name in names)
    again = start_load(cluster, corpus, url, ",".join(names), tmp_path)
    assert again.wait(LONG) == 0
    add(corpus, str(tmp_path / "added.waylore"))
    expected = export(str(tmp_path / "added.waylore"))
    assert 0 < stored < len(expected) - 1
    assert export(url, names) == expected


def make_corpus(folder: Path) -> Path:
    """Write notes that are prepared in units of 64, and a few rows."""
    return write_corpus(folder / "corpus", notes=1_200)


def start_load(
    cluster: RunningCluster, corpus: Path, url: str, collection: str, folder: Path
) -> subprocess.Popen[bytes]:
    """Start `waylore load` on the cluster."""
    options = ["--root", str(corpus), "--store", url, "-c", collection, "--cluster", cluster.address, "--writers", "2"]
    settings = environment(WAYLORE_EMBEDDING_PROVIDER="hashing", **PATIENT)
    return subprocess.Popen([*COMMAND, "load", str(corpus), *options], cwd=folder, env=settings)


def kill(driver: subprocess.Popen[bytes]) -> None:
    if driver.poll() is None:
        os.kill(driver.pid, signal.SIGKILL)
    driver.wait()


def count_documents(url: str, collection: str) -> int:
    with closing(open_store(url, collection)) as store:
        return store.statistics().documents


def count_writers(url: str) -> int:
    """Return the number of transactions that have written something and are not committed yet."""
    with psycopg.connect(url) as db:
        found = db.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()"
        ).fetchone()
    return int(found[0]) if found else 0
