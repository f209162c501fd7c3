"""Test a real browser: a page of a listed origin can use the service, any other page cannot (finding H4)."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import httpx
import pytest
from tools.postgres.builds import MissingRequirement
from tools.serving import RunningService, start_service, wait_for_job

WAIT_SECONDS = 120.0  # for a browser on a busy machine
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
)
# The page tries everything and reports the status of each answer to its own server, or the error that it got.
PAGE = """<!doctype html><title>A page</title><iframe name=frame></iframe>
<form id=form method=post enctype=text/plain target=frame>
<input name='{"subject":"a","predicate":"is","object":"planted","text":"' value='"}'></form><script>
const notes = SERVICE + '/v1/collections/default', row = '{"subject":"a","predicate":"is","object":"planted"}';
const send = (path, method, type, body, mode) => fetch(path.startsWith('/') ? notes + path : SERVICE + '/' + path,
    {method, mode, body, headers: type ? {'Content-Type': type} : {}});
const attempts = {
  add: () => send('/documents', 'POST', 'application/json', '{"text": "Planted by a page."}'),
  search: () => send('/search', 'POST', 'application/json', '{"query": "canteen"}'),
  list: () => send('/documents', 'GET'),
  upload: () => send('/uploads/bytes.jsonl', 'POST', 'application/octet-stream', row),
  put: () => send('/uploads/put.md', 'PUT', '', 'Put by a page.'),
  text: () => send('/uploads/text.jsonl', 'POST', 'text/plain', row, 'no-cors'),
  untyped: () => send('/uploads/untyped.jsonl', 'POST', '', new Blob([row]), 'no-cors'),
  beacon: async () => ({status: navigator.sendBeacon(notes + '/uploads/beacon.jsonl', row) ? 'sent' : 'not sent'}),
  form: async () => {
    form.action = notes + '/uploads/form.jsonl';
    const loaded = new Promise(done => document.querySelector('iframe').addEventListener('load', done, {once: true}));
    form.submit();
    await loaded;
    return {status: 'sent'};
  },
};
(async () => {
  const results = {};
  for (const [name, attempt] of Object.entries(attempts))
    try { const answer = await attempt(); results[name] = answer.status; } catch (error) { results[name] = error.name; }
  await fetch('/result', {method: 'POST', body: JSON.stringify(results)});
})();
</script>"""


@contextmanager
def serve_page(service: str = "") -> Iterator[tuple[str, list[str], Queue[dict[str, Any]]]]:
    """Serve the page on another port; yield its origin, the address of the service to fill in, and its results."""
    results: Queue[dict[str, Any]] = Queue()
    target = [service]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(PAGE.replace("SERVICE", json.dumps(target[0])).encode())

        def do_POST(self) -> None:
            results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", target, results
    finally:
        server.shutdown()
        server.server_close()


def open_page(address: str, folder: Path, results: "Queue[dict[str, Any]]") -> dict[str, Any]:
    """Open a page in a new browser, wait for its results, and close the browser."""
    browser = shutil.which("chromium")
    if browser is None:
        raise MissingRequirement("this test needs Chromium: apt-get install chromium")
    command = [browser, *OPTIONS, f"--user-data-dir={folder}", address]
    with (
        (folder.parent / "browser.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            return results.get(timeout=WAIT_SECONDS)
        finally:
            process.terminate()
            process.wait(WAIT_SECONDS)


def list_addresses(client: httpx.Client) -> set[str]:
    """Return the addresses of all documents, after all jobs have ended."""
    for job in client.get("/jobs").raise_for_status().json()["jobs"]:
        wait_for_job(client, job["id"])
    documents = client.get("/documents").raise_for_status().json()["documents"]
    return {document["uri"] or document["id"] for document in documents}


@pytest.fixture
def listed_page() -> Iterator[tuple[str, list[str], "Queue[dict[str, Any]]"]]:
    with serve_page() as page:
        yield page


@pytest.fixture
def service(tmp_path: Path, listed_page: tuple[str, Any, Any]) -> Iterator[RunningService]:
    store = str(tmp_path / "memory.waylore")
    with start_service(store, tmp_path / "service", cors_origins=listed_page[0]) as running:
        listed_page[1][0] = running.url
        with running.open_client() as client:
            client.post("/documents", json={"text": "The canteen serves soup.", "uri": "menu"}).raise_for_status()
        yield running


@pytest.mark.timeout(600)
def test_page_of_a_listed_origin_can_use_the_service(
    service: RunningService, listed_page: tuple[str, Any, "Queue[dict[str, Any]]"], tmp_path: Path
) -> None:
    results = open_page(listed_page[0], tmp_path / "browser", listed_page[2])
    assert {name: results[name] for name in ("add", "search", "list", "upload", "put")} == {
        "add": 201,
        "search": 200,
        "list": 200,
        "upload": 202,
        "put": 202,
    }
    with service.open_client() as client:
        addresses = list_addresses(client)
        jobs = client.get("/jobs").json()["jobs"]
    assert {job["uri"] for job in jobs} == {"bytes.jsonl", "put.md"}  # a form is refused from any page
    assert {"menu", "put.md"} < addresses


@pytest.mark.timeout(600)
def test_page_of_another_origin_changes_and_reads_nothing(service: RunningService, tmp_path: Path) -> None:
    with serve_page(service.url) as (origin, _, queue):
        results = open_page(origin, tmp_path / "browser", queue)
    readable = {name: status for name, status in results.items() if isinstance(status, int) and status}
    assert readable == {}, results
    assert (results["add"], results["text"], results["form"]) == ("TypeError", 0, "sent")
    with service.open_client() as client:
        assert list_addresses(client) == {"menu"}
        assert client.get("/jobs").json()["jobs"] == []
