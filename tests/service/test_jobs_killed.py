"""A worker is killed in the middle of a job: another takes it up, and the result is as if it never was."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tools.postgres import Server
from tools.serving import Served, over, serving, until

from databases import database
from waylore.engine.waylore import Waylore

NOTES = 1_500
ROWS = b"".join(
    json.dumps({"text": f"Note {n}: Mara {n % 40} owns Service {n % 70}. It needs Sessions."}).encode() + b"\n"
    for n in range(NOTES)
)


def exported(store: str, to: Path) -> list[dict[str, object]]:
    """Everything but when it was recorded."""
    with Waylore.open(store) as waylore:
        waylore.export(to)
    lines = [json.loads(line) for line in to.read_text().splitlines()[1:]]
    for line in lines:
        line["document"].pop("recorded_at")
        for fact in line["facts"]:
            fact.pop("recorded_at", None)
    return lines


def killed_in_the_middle(service: Served, victim: Served, job: str) -> int:
    """Kill a process with SIGKILL once it has written something of a job, but not all; what it had written."""

    def some() -> int:
        with service.client() as client:
            told = client.get(f"/jobs/{job}").json()
        assert not told["ended_at"], told
        return int(told["progress"]["passages"])

    written = until(some)
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    assert written < NOTES
    return int(written)


@pytest.mark.timeout(240)
def test_a_job_of_a_killed_worker_is_taken_up_again(postgres: Server, tmp_path: Path) -> None:
    store = database()
    options: dict[str, Any] = {"takeover": 1.5, "spool": str(tmp_path / "spool")}
    with serving(store, tmp_path, jobs=0, **options) as service, service.client() as client:
        with serving(store, tmp_path, command=("worker",), **options) as first:
            job = client.put("/uploads/notes.jsonl", content=ROWS).raise_for_status().json()["id"]
            killed_in_the_middle(service, first, job)
        assert client.get(f"/jobs/{job}").json()["state"] == "running"
        assert len(list((tmp_path / "spool").glob(f"{job}-*"))) == 1
        with serving(store, tmp_path, command=("worker",), **options):
            done = over(client, job, 120.0)
        assert (done["state"], done["runs"]) == ("done", 2)
        assert not list((tmp_path / "spool").glob(f"{job}-*"))
    quiet = database()
    path = tmp_path / "notes.jsonl"
    path.write_bytes(ROWS)
    with Waylore.open(quiet) as waylore:
        waylore.add_files(path, uri="notes.jsonl")
    assert exported(store, tmp_path / "a.export") == exported(quiet, tmp_path / "b.export")


@pytest.mark.timeout(240)
def test_a_service_that_was_killed_goes_on_when_it_comes_back(postgres: Server, tmp_path: Path) -> None:
    store = database()
    with serving(store, tmp_path, takeover=1.5) as first, first.client() as client:
        job = client.put("/uploads/notes.jsonl", content=ROWS).raise_for_status().json()["id"]
        killed_in_the_middle(first, first, job)
    with serving(store, tmp_path, takeover=1.5) as second, second.client() as client:
        done = over(client, job, 120.0)
        assert (done["state"], done["runs"]) == ("done", 2)
        assert second.spooled() == []
    with Waylore.open(store) as waylore:
        assert waylore.stats().documents == NOTES
