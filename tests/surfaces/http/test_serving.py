"""Test `waylore serve` and `waylore keys` as processes: output, exit codes, and shutdown."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from tools.postgres.server import Server
from tools.waiting import HANG_SECONDS, wait_until

from databases import create_database
from surfaces.serving import WAYLORE, read_json, start_service
from waylore.surfaces.cli.serve import STARTUP_SECONDS

SLOW_START = """
import os, sys, time
if "--multiprocessing-fork" in sys.orig_argv:
    with open("started", "a") as file:
        print(os.getpid(), file=file)
    time.sleep(7)
"""
NOTES = "/v1/collections/default"


def waylore(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("WAYLORE_HTTP")}
    return subprocess.run(
        [*WAYLORE, *arguments], cwd=folder, env=plain, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )


def shown(folder: Path, *arguments: str) -> Any:
    done = waylore(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_keys_can_be_created_rotated_and_revoked(tmp_path: Path) -> None:
    made = waylore(tmp_path, "keys", "create", "the assistant", "--collection", "default", "--label", "red")
    token = made.stdout.strip()
    assert token.startswith("waylore_")
    assert token not in made.stderr
    [key] = shown(tmp_path, "keys", "list")
    assert (key["name"], key["scope"], key["collections"], key["labels"]) == (
        "the assistant",
        "read",
        ["default"],
        ["red"],
    )
    with (
        start_service("memory.waylore", tmp_path) as service,
        httpx.Client(base_url=service.url, trust_env=False, timeout=HANG_SECONDS) as asked,
    ):

        def status(shown: str) -> int:
            return asked.get("/v1/collections", headers={"X-API-Key": shown}).status_code

        assert status(token) == 200
        newer = shown_token(tmp_path, "rotate", key["id"], "--grace", "600")
        assert (status(token), status(newer)) == (200, 200)
        shown(tmp_path, "keys", "revoke", key["id"])
        wait_until(lambda: status(newer) == 401)
        assert status(token) == 401
    table = waylore(tmp_path, "keys", "list").stdout
    assert key["id"] in table
    assert "revoked" in table
    assert all(each.split("_", 2)[2] not in table for each in (token, newer))


def shown_token(folder: Path, *arguments: str) -> str:
    return str(shown(folder, "keys", *arguments)["token"])


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        (("serve", "--no-auth", "--host", "0.0.0.0"), 2, "listen on 127.0.0.1"),
        (("serve", "--workers", "2"), 2, "a file can be served by one process only"),
        (("serve", "--store", "/nowhere/memory.waylore"), 4, "check that its folder exists"),
        (("serve", "--port", "99999"), 2, "http.port"),
        (("serve", "--store", "postgresql://nobody@127.0.0.1:1/x"), 4, "cannot be reached"),
        (("keys", "rotate", "unknown"), 3, "waylore keys list"),
        (("keys", "create", "x", "--label", "a\nb"), 2, "must be text of one line"),
        (("keys", "create", "x", "--scope", "all"), 2, "use read, write, admin"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(tmp_path: Path, asked: tuple[str, ...], code: int, says: str) -> None:
    done = waylore(tmp_path, *asked)
    assert done.returncode == code, done.stderr
    assert says in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


def test_missing_model_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "openai")
    done = waylore(tmp_path, "serve")
    assert done.returncode == 2
    assert done.stderr.startswith("waylore: embedding.model is empty")
    hidden = "import sys; sys.modules['jwt'] = None; from waylore.surfaces.cli.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "serve"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "pip install 'waylore[http]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_first_start_explains_how_to_create_a_key(tmp_path: Path) -> None:
    with subprocess.Popen([*WAYLORE, "serve", "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as one:
        assert one.stderr is not None
        assert one.stderr.readline() == (
            "no API key exists yet; create one with `waylore keys create NAME --scope admin`\n"
        )
        listening = one.stderr.readline()
        assert listening.startswith("listening on http://127.0.0.1:")
        assert "explorer at /" in listening
        assert "telemetry.log_level = info logs each request" in listening
        one.terminate()


def test_each_request_is_logged_if_the_settings_say_so(tmp_path: Path) -> None:
    shown = {}
    for level in ("info", "warning"):
        folder = tmp_path / level
        folder.mkdir()
        variables = {"WAYLORE_TELEMETRY_LOG_LEVEL": level}
        with start_service(folder / "a.waylore", folder, **variables) as service, service.client() as asked:
            assert asked.get("/healthz").status_code == 200
        shown[level] = "/healthz" in (folder / "serve.log").read_text()
    assert shown == {"info": True, "warning": False}


@pytest.mark.full
def test_responses_are_not_delayed_by_nagle(tmp_path: Path) -> None:
    """Check that Nagle's algorithm is off: it delays nearly all responses by a delayed acknowledgement, 40 ms on Linux.

    Linux acknowledges the first packets of a connection at once. So responses on new connections are never delayed, and
    the quicker ones on a used connection are compared with those.
    """
    with start_service(tmp_path / "memory.waylore", tmp_path) as service, service.client() as asked:
        on_used, on_new = list[float](), list[float]()
        for _ in range(60):
            on_used.append(_measure_seconds(asked))
            with service.client() as new:
                on_new.append(_measure_seconds(new))
        assert sorted(on_used)[20] < 3 * sorted(on_new)[20]


def _measure_seconds(asked: httpx.Client) -> float:
    began = time.perf_counter()
    read_json(asked.get("/healthz"))
    return time.perf_counter() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_finishes_running_requests(tmp_path: Path, postgres: Server, number: int) -> None:
    url = create_database()
    with start_service(url, tmp_path) as service, service.client() as asked, ThreadPoolExecutor(1) as thread:
        read_json(asked.post(f"{NOTES}/documents", json={"text": "First."}))
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE waylore.documents IN ACCESS EXCLUSIVE MODE")
            late = thread.submit(asked.post, f"{NOTES}/documents", json={"text": "Second."})
            wait_until(lambda: _has_lock_waiter(url))
            service.process.send_signal(number)
            wait_until(lambda: _is_refused(service.url))
            assert not late.done()
            holder.rollback()
        assert late.result(HANG_SECONDS).status_code == 201
        service.process.wait(HANG_SECONDS)
        assert "Traceback" not in service.log.read_text()


def test_several_processes_serve_one_database(tmp_path: Path, postgres: Server) -> None:
    with start_service(create_database(), tmp_path, "--workers", "2") as service, service.client() as asked:
        children = psutil.Process(service.process.pid).children(recursive=True)
        assert len([child for child in children if _is_worker(child)]) >= 2
        for number in range(10):
            read_json(asked.post(f"{NOTES}/documents", json={"text": f"Note {number}.", "uri": f"{number}"}))
        shown: list[str] = []
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:  # each process reads the other's cursors
            after = {"cursor": page["next"]} if page["next"] else {}
            with service.client() as anew:
                page = read_json(anew.get(f"{NOTES}/documents", params={"limit": 1, **after}))
            shown += [document["uri"] for document in page["documents"]]
        assert shown == [f"{number}" for number in range(10)]
        service.process.terminate()
        service.process.wait(HANG_SECONDS)
        assert psutil.wait_procs(children, timeout=HANG_SECONDS)[1] == []


@pytest.mark.timeout(300)
def test_dead_worker_is_logged_and_replaced(tmp_path: Path, postgres: Server) -> None:
    with start_service(create_database(), tmp_path, "--workers", "2") as service, service.client() as asked:
        workers = [child for child in psutil.Process(service.process.pid).children() if _is_worker(child)]
        workers[0].kill()
        line = f"Child process [{workers[0].pid}] died"  # after STARTUP_SECONDS if it died while uvicorn pinged it
        wait_until(lambda: line in service.log.read_text(), STARTUP_SECONDS + HANG_SECONDS)
        assert read_json(asked.get(f"{NOTES}/documents"))["documents"] == []


@pytest.mark.full
@pytest.mark.slow
def test_processes_that_start_slowly_come_up(tmp_path: Path, postgres: Server) -> None:
    """Check that processes may take longer than the five seconds after which uvicorn kills them by default."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with start_service(create_database(), tmp_path, "--workers", "2", PYTHONPATH=path) as service:
        started = (tmp_path / "started").read_text().split()
        assert len(started) == 2  # none was killed and started again
        assert set(started) <= {str(child.pid) for child in psutil.Process(service.process.pid).children()}


def _is_worker(child: psutil.Process) -> bool:
    return "multiprocessing.spawn" in " ".join(child.cmdline())


def _has_lock_waiter(url: str) -> bool:
    with psycopg.connect(url) as db:
        [(count,)] = db.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchall()
        return bool(count)


def _is_refused(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", trust_env=False, timeout=HANG_SECONDS)
    except httpx.TransportError:
        return True
    return False
