"""A real service as a target: send requests and files to it, and measure its processor time."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from tools.serving import RunningService, start_service, wait_for_job

TIMEOUT_SECONDS = 300.0
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class Target:
    """A running service with clients for its collection and for MCP."""

    service: RunningService
    client: httpx.Client

    def post(self, path: str, body: bytes) -> str:
        """Send a request and return the status of its answer."""
        return str(self.client.post(path, content=body, headers=JSON).status_code)

    def post_mcp(self, body: bytes) -> str:
        """Send a request to MCP. Return whether it was answered or refused."""
        answer = httpx.post(f"{self.service.url}/mcp", content=body, headers=JSON, timeout=TIMEOUT_SECONDS)
        result = answer.json().get("result") if answer.status_code == 200 else None
        return "answered" if result and not result.get("isError") else "refused"

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool. Return whether it was answered or refused."""
        call = {"name": name, "arguments": arguments}
        return self.post_mcp(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode())

    def upload(self, path: str, content: bytes) -> str:
        """Upload a file and wait for its job. Return "read", or the reason why it was skipped."""
        job = wait_for_job(self.client, self._submit(path, content), TIMEOUT_SECONDS)
        if job["state"] != "done":
            return f"{job['state']}: {job['problem']}"
        skipped = job["result"]["skipped"]
        return "read" if job["result"]["documents"] else f"skipped: {skipped[0]['reason'] if skipped else 'nothing'}"

    def upload_and_cancel(self, path: str, content: bytes) -> str:
        """Upload a file, cancel its job once a process reads the file, and return the job's state."""
        id_ = self._submit(path, content)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._is_reading() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.client.post(f"/jobs/{id_}/cancel").raise_for_status()
        return str(wait_for_job(self.client, id_, TIMEOUT_SECONDS)["state"])

    def measure_seconds(self) -> float:
        """Return the processor time of the service and its children so far, also of those that ended."""
        first = psutil.Process(self.service.process.pid)
        seconds = sum(first.cpu_times()[:4])
        for child in first.children(recursive=True):
            try:
                seconds += sum(child.cpu_times()[:4])
            except psutil.NoSuchProcess:  # it ended meanwhile
                return self.measure_seconds()
        return float(seconds)

    def _submit(self, path: str, content: bytes) -> str:
        answer = self.client.put(
            f"/uploads/{path}", content=content, headers={"content-type": "application/octet-stream"}
        )
        return str(answer.raise_for_status().json()["id"])

    def _is_reading(self) -> bool:
        children = psutil.Process(self.service.process.pid).children()
        return any(child.status() == psutil.STATUS_RUNNING and sum(child.cpu_times()[:2]) > 1 for child in children)


@contextmanager
def open_target(folder: Path) -> Iterator[Target]:
    """Start a service on a new file and stop it at the end."""
    with (
        start_service(str(folder / "memory.waylore"), folder, request_timeout=TIMEOUT_SECONDS) as service,
        service.open_client() as client,
    ):
        client.timeout = httpx.Timeout(TIMEOUT_SECONDS)
        target = Target(service, client)
        target.post("/documents", b'{"text": "Mara Lind owns the login."}')
        target.post("/search", b'{"query": "Who owns the login?"}')
        yield target
