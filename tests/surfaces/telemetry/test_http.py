"""Test telemetry of a real service on loopback: spans, metrics of one and several processes, logs."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tools.collector import Collector, read_attributes, start_collector
from tools.waiting import HANG_SECONDS, wait_until

SERVICE = Path(__file__).parents[1] / "small_service.py"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SEARCH = "/v1/collections/tenant-of-somebody/search"


class Service:
    """A running service and its output. Each request has its own connection."""

    def __init__(self, port: int, errors: Path) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._errors = errors

    def get(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        return httpx.request(method, self._address + path, headers=headers, timeout=HANG_SECONDS)

    @property
    def stderr(self) -> str:
        return self._errors.read_text()

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stderr.splitlines()]


@contextmanager
def start(folder: Path, *, workers: int = 1, **environment: str) -> Iterator[Service]:
    """Start the service, and stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    errors = folder / "stderr"
    with errors.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, str(SERVICE), str(port), str(workers)],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
        service = Service(port, errors)
        try:
            _wait(service, process)
            yield service
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(HANG_SECONDS)


def _wait(service: Service, process: subprocess.Popen[bytes]) -> None:
    def is_up() -> bool:
        assert process.poll() is None, service.stderr
        try:
            return service.get("/nothing/here").status_code == 404
        except httpx.TransportError:
            return False

    wait_until(is_up)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with start_collector() as started:
        yield started


def by_name(collector: Collector, name: str) -> Span:
    [span] = collector.find_spans(name)
    return span


def test_request_span_is_below_the_clients_span(tmp_path: Path, collector: Collector) -> None:
    with start(tmp_path, WAYLORE_TELEMETRY_OTLP_ENDPOINT=collector.address) as service:
        answer = service.get(f"{SEARCH}?q=secret", traceparent=f"00-{TRACE}-{PARENT}-01")
        assert answer.status_code == 200
        assert service.get("/fails").status_code == 500
        assert service.get("/mcp/zebra").text == "here"
    request = by_name(collector, "GET /v1/collections/{name}/search")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert request.kind == Span.SPAN_KIND_SERVER
    told = read_attributes(request)
    assert told["http.response.status_code"] == 200
    assert told["waylore.request.id"] == answer.headers["X-Request-ID"] == answer.json()["request"]
    search = by_name(collector, "retrieval")
    assert (search.trace_id, search.parent_span_id) == (request.trace_id, request.span_id)
    assert by_name(collector, "GET /fails").status.code == Status.STATUS_CODE_ERROR
    assert read_attributes(by_name(collector, "GET /mcp/{session}"))["http.route"] == "/mcp/{session}"
    everything = " ".join(str(span) for span in collector.spans)
    assert not [word for word in ("secret", "tenant", "hunter2", "zebra") if word in everything]


def test_metrics_have_route_and_status(tmp_path: Path) -> None:
    with start(tmp_path, WAYLORE_TELEMETRY_METRICS="true") as service:
        for path in (f"{SEARCH}?q=one", f"{SEARCH}?q=two", SEARCH, "/fails", "/mcp/x", "/v2/somebody"):
            service.get(path)
        service.get("/fails", "PROPFIND")
        told = service.get("/metrics")
    assert told.headers["Content-Type"].startswith("text/plain")
    counts = samples(told.text, "waylore_http_seconds_count")
    route = "/v1/collections/{name}/search"
    assert counts[f'method="GET",route="{route}",status="200"'] == 2
    assert counts[f'method="GET",route="{route}",status="422"'] == 1
    assert counts['method="GET",route="/fails",status="500"'] == 1
    assert counts['method="GET",route="/mcp/{session}",status="200"'] == 1
    assert counts['method="_OTHER",route="/fails",status="405"'] == 1
    assert {labels for labels in counts if "unmatched" in labels} == {'method="GET",route="unmatched",status="404"'}
    assert samples(told.text, "waylore_verb_seconds_count")['outcome="ok",verb="search"'] == 2
    assert "somebody" not in told.text


def samples(text: str, name: str) -> dict[str, float]:
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_processes_share_metrics(tmp_path: Path) -> None:
    with start(tmp_path, workers=2, WAYLORE_TELEMETRY_METRICS="true") as service:
        for number in range(12):
            service.get(f"{SEARCH}?q={number}")
        every = [samples(service.get("/metrics").text, "waylore_verb_seconds_count") for _ in range(3)]
        assert [each['outcome="ok",verb="search"'] for each in every] == [12, 12, 12]
        in_flight = samples(service.get("/metrics").text, "waylore_http_in_flight")
        assert in_flight == {"": 0}


def test_log_lines_have_request_id_and_no_content(tmp_path: Path, collector: Collector) -> None:
    with start(
        tmp_path,
        WAYLORE_TELEMETRY_LOG_FORMAT="json",
        WAYLORE_TELEMETRY_LOG_LEVEL="info",
        WAYLORE_TELEMETRY_OTLP_ENDPOINT=collector.address,
    ) as service:
        service.get(f"{SEARCH}?q=whisper", **{"X-Request-ID": "mine-1"})
        service.get(f"{SEARCH}?q=whisper", **{"X-Request-ID": "bad\tid" * 40})
        service.get("/fails")
    lines, stderr = service.lines, service.stderr
    [own] = [line for line in lines if line["event"] == "request" and line.get("request_id") == "mine-1"]
    assert (own["route"], own["status"], own["level"]) == ("/v1/collections/{name}/search", "200", "info")
    assert own["trace_id"] == by_request(collector, "mine-1").trace_id.hex()
    [said] = [line for line in lines if "searching" in str(line["event"]) and line["request_id"] == "mine-1"]
    assert said["trace_id"] == own["trace_id"]
    assert [line for line in lines if line["logger"] == "uvicorn.error" and "exception" in line]
    assert [line for line in lines if line["event"] == "request" and line["level"] == "error"]
    assert not [word for word in ("hunter2", "whisper", "bad\\tid") if word in stderr]


def by_request(collector: Collector, request_id: str) -> Span:
    [span] = [span for span in collector.spans if read_attributes(span).get("waylore.request.id") == request_id]
    return span


def test_request_has_id_without_telemetry(tmp_path: Path) -> None:
    with start(tmp_path) as service:
        assert service.get("/mcp/x", **{"X-Request-ID": "mine"}).headers["X-Request-ID"] == "mine"
        assert len(service.get("/mcp/x").headers["X-Request-ID"]) == 32
        assert service.get("/metrics").status_code == 404
