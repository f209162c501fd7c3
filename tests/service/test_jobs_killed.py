"""A worker is killed during a job: another worker resumes it, and the result is the same."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from tools.postgres.server import Server
from tools.serving import RunningService, start_service, wait_for_job
from tools.waiting import wait_until

from databases import create_database
from waylore.engine.waylore import Waylore

NOTES = 800
FAST_TAKEOVER = {"WAYLORE_JOBS_HEARTBEAT_TIMEOUT": "10"}  # a live process on a busy machine reports within this
ROWS = b"".join(
    json.dumps({"text": f"Note {n}: Mara {n % 40} owns Service {n % 70}. It needs Sessions."}).encode() + b"\n"
    for n in range(NOTES)
)


def export_lines(store: str, to: Path) -> list[dict[str, object]]:
    """Return the export of a store without authors and the times of recording."""
    with Waylore.open(store) as waylore:
        waylore.export(to)
    lines = [json.loads(line) for line in to.read_text().splitlines()[1:]]
    for line in lines:
        line["document"].pop("recorded_at")
        line["document"].pop("author")
        for fact in (*line["facts"], *line["pairs"]):
            fact.pop("recorded_at", None)
    return lines


def kill_during_job(service: RunningService, victim: RunningService, job: str) -> int:
    """Kill a process with SIGKILL when it has written a part of a job. Return the passages written."""

    def count_written() -> int:
        with service.open_client() as client:
            found = client.get(f"/jobs/{job}").json()
        assert not found["ended_at"], found
        return int(found["progress"]["passages"])

    written = wait_until(count_written)
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    assert written < NOTES
    return int(written)


@pytest.mark.full  # the service is killed in the same way in the next test
@pytest.mark.timeout(240)
def test_job_of_killed_worker_is_resumed(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    no_jobs = {**FAST_TAKEOVER, "WAYLORE_JOBS_CONCURRENCY": "0"}
    start_worker = partial(start_service, store, tmp_path, command=("worker",), others=FAST_TAKEOVER)
    with start_service(store, tmp_path, others=no_jobs) as service, service.open_client() as client:
        with start_worker() as first:
            job = client.put("/uploads/notes.jsonl", content=ROWS).raise_for_status().json()["id"]
            kill_during_job(service, first, job)
        assert client.get(f"/jobs/{job}").json()["state"] == "running"
        assert len(list((tmp_path / "spool").glob(f"{job}-*"))) == 1
        with start_worker():
            done = wait_for_job(client, job, 120.0)
        assert (done["state"], done["runs"]) == ("done", 2)
        assert not list((tmp_path / "spool").glob(f"{job}-*"))
    quiet = create_database()
    path = tmp_path / "notes.jsonl"
    path.write_bytes(ROWS)
    with Waylore.open(quiet) as waylore:
        waylore.add_files(path, uri="notes.jsonl")
    assert export_lines(store, tmp_path / "a.export") == export_lines(quiet, tmp_path / "b.export")


@pytest.mark.timeout(240)
def test_killed_service_resumes_its_job_after_restart(postgres: Server, tmp_path: Path) -> None:
    store = create_database()
    with start_service(store, tmp_path, others=FAST_TAKEOVER) as first, first.open_client() as client:
        job = client.put("/uploads/notes.jsonl", content=ROWS).raise_for_status().json()["id"]
        kill_during_job(first, first, job)
    with start_service(store, tmp_path, others=FAST_TAKEOVER) as second, second.open_client() as client:
        done = wait_for_job(client, job, 120.0)
        assert (done["state"], done["runs"]) == ("done", 2)
        assert second.list_spooled() == []
    with Waylore.open(store) as waylore:
        assert waylore.stats().documents == NOTES
