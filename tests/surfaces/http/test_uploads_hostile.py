"""Test hostile and broken clients against a real service: it still serves others and keeps no files or memory.

The limits are small so that the tests are quick.
"""

import re
import select
import signal
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from tools.postgres.server import HOST, Server
from tools.serving import RunningService, start_service, wait_for_job
from tools.waiting import HANG_SECONDS, wait_until

from databases import create_database

STALL = 1.0
LARGEST = 5_000_000
PLACES = 4
UPLOAD = "/v1/collections/default/uploads/harm.md"
opened: list[socket.socket] = []
READERS = 5
MAX_GROWTH = 60_000_000  # bytes of memory that Python may keep after a test


@pytest.fixture(scope="module")
def store(postgres: Server) -> str:
    return create_database()


@pytest.fixture(scope="module")
def service(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("service")
    limits: dict[str, Any] = {
        "idle_timeout": STALL,
        "min_upload_rate": 5_000,
        "max_upload_bytes": LARGEST,
        "max_body_bytes": 100_000,
        "max_concurrent_uploads": PLACES,
    }
    with start_service(store, folder, **limits) as served:
        warm_up(served)
        yield served


def warm_up(service: RunningService) -> None:
    """Use the service normally first: add large documents, and let several clients read all of them at once."""
    rows = b"".join(b'{"text": "Note %d.", "blob": "%s"}\n' % (n, b"x" * 9_000) for n in range(500))
    with service.open_client() as client, ThreadPoolExecutor(READERS) as readers:
        assert wait_for_job(client, client.put("/uploads/blobs.jsonl", content=rows).json()["id"])["state"] == "done"
        for _ in range(2):
            list(readers.map(lambda _: client.get("/export").raise_for_status(), range(READERS)))


@pytest.fixture(autouse=True)
def unharmed(service: RunningService) -> Iterator[None]:
    """Check after each test that other clients are served and that no files, jobs or memory are left."""
    before = service.resident_bytes
    with service.open_client() as client:
        jobs = len(client.get("/jobs").json()["jobs"])
    yield
    while opened:
        opened.pop().close()
    assert_others_are_served(service)
    wait_until(lambda: not service.list_spooled())
    with service.open_client() as client:
        listed = client.get("/jobs").json()["jobs"]
        assert len(listed) == jobs or {job["state"] for job in listed} == {"done"}
    assert service.resident_bytes < before + MAX_GROWTH


def assert_others_are_served(service: RunningService) -> None:
    with service.open_client() as client:
        for _ in range(5):
            assert client.get("/stats").status_code == 200
        job = wait_until(lambda: _upload(client))
        assert wait_for_job(client, job)["state"] == "done"


def _upload(client: httpx.Client) -> str:
    """Return the job of an upload, or an empty string while all upload slots are in use."""
    answer = client.put("/uploads/good.md", content=b"Kofi owns the search.")
    assert answer.status_code in (202, 503), answer.text
    return str(answer.json()["id"]) if answer.status_code == 202 else ""


def connect(service: RunningService, said: bytes = b"", *, receives: int = 0) -> socket.socket:
    made = socket.socket()
    opened.append(made)
    if receives:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    made.settimeout(HANG_SECONDS)
    made.connect((HOST, service.port))
    made.sendall(said)
    return made


def put(*headers: str) -> bytes:
    return "\r\n".join([f"PUT {UPLOAD} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def read_response(made: socket.socket) -> bytes:
    """Return all bytes until the service closes the connection."""
    came = b""
    try:
        while few := made.recv(65_536):
            came += few
    except ConnectionResetError:
        pass
    finally:
        made.close()
    return came


def get_status(came: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", came)
    return int(found[1]) if found else 0


def count_connections(service: RunningService) -> int:
    held = psutil.Process(service.process.pid).net_connections(kind="tcp")
    return sum(1 for one in held if one.status == "ESTABLISHED" and one.laddr.port == service.port)


def count_idle_transactions(store: str) -> int:
    """Count the connections to the database that are idle in a transaction."""
    with psycopg.connect(store) as db:
        [(held,)] = db.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        ).fetchall()
    return int(held)


@pytest.mark.parametrize("how", ["closes", "resets", "ends"])
def test_client_that_disconnects_during_upload(service: RunningService, how: str) -> None:
    made = connect(service, put("Content-Length: 1000000") + b"x" * 300_000)
    wait_until(lambda: [name for name in service.list_spooled() if name.endswith(".part")])
    if how == "resets":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "ends":
        made.shutdown(socket.SHUT_WR)
        read_response(made)
    made.close()


def test_clients_that_send_a_byte_per_second(service: RunningService) -> None:
    said = put("Content-Length: 1000000")
    slow = [connect(service, said) for _ in range(3 * PLACES)]

    def are_all_closed() -> bool:
        slow[:] = [one for one in slow if send_byte(one)]
        with service.open_client() as client:
            assert client.get("/stats").status_code == 200
        time.sleep(STALL / 3)
        return not slow

    wait_until(are_all_closed)
    wait_until(lambda: count_connections(service) <= 1)


def send_byte(made: socket.socket) -> bool:
    """Send a byte. If the service has closed the connection, close it, too, and return False."""
    try:
        made.sendall(b"a")
    except OSError:
        made.close()
        return False
    return True


def test_client_that_stops_sending(service: RunningService) -> None:
    began = time.monotonic()
    came = read_response(connect(service, put("Content-Length: 1000000") + b"x" * 100_000))
    assert get_status(came) == 408
    assert b"no data for 1 seconds" in came
    assert time.monotonic() - began > STALL * 0.9


def test_too_many_uploads_get_retry_after(service: RunningService) -> None:
    for _ in range(PLACES):
        connect(service, put("Content-Length: 1000000") + b"x" * 60_000)
    wait_until(lambda: len(service.list_spooled()) == PLACES)
    came = read_response(connect(service, put("Content-Length: 10")))
    assert get_status(came) == 503
    assert b"retry-after: 1" in came.lower()


def test_declared_two_gigabytes_are_refused_at_once(service: RunningService) -> None:
    came = read_response(connect(service, put("Content-Length: 2000000000")))
    assert get_status(came) == 413
    assert b"connection: close" in came.lower()
    assert b"http.max_upload_bytes" in came


def test_large_upload_to_missing_collection_is_refused(service: RunningService) -> None:
    said = put("Content-Length: 2000000000").replace(b"default", b"nowhere")
    assert get_status(read_response(connect(service, said))) == 404  # 408 if it waited for the body


@pytest.mark.parametrize("path", [UPLOAD, "/v1/collections/default/search"])
def test_undeclared_two_gigabytes_are_refused_at_limit(service: RunningService, path: str) -> None:
    said = put("Transfer-Encoding: chunked", "Content-Type: application/json").replace(UPLOAD.encode(), path.encode())
    if path != UPLOAD:
        said = said.replace(b"PUT", b"POST", 1)
    made = connect(service, said)
    sent, chunk = 0, b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    try:
        while sent < 2_000_000_000:
            made.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    assert get_status(read_response(made)) in (0, 413)  # a reset may discard the response
    assert sent < LARGEST + 16_000_000  # the buffers of the sockets on both sides


def test_client_that_sends_more_than_declared(service: RunningService) -> None:
    made = connect(service, put("Content-Length: 20") + b"Mara owns the login." + b"and more\r\n\r\n" * 1_000)
    came = read_response(made)
    assert get_status(came) == 202
    assert b" 400 " in came


def test_half_open_connections_are_closed(service: RunningService) -> None:
    begun = [
        b"",
        b"GET /healthz HT",
        put("Content-Length: 5")[:-2],
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    for n in range(40):
        connect(service, begun[n % 4])
    wait_until(lambda: count_connections(service) >= 30)
    wait_until(lambda: count_connections(service) == 0)


def drip(made: socket.socket) -> None:
    """Send a byte at a time until the service closes the connection."""

    def is_closed() -> bool:
        time.sleep(STALL / 4)
        return not send_byte(made)

    wait_until(is_closed)


def test_slow_headers_close_the_connection(service: RunningService) -> None:
    drip(connect(service, b"GET /healthz HTTP/1.1\r\nX-A: "))


def test_slow_unwanted_body_closes_the_connection(service: RunningService) -> None:
    said = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    drip(connect(service, said))


def test_huge_headers_are_refused(service: RunningService) -> None:
    for bomb in (b"X-A: " + b"a" * 10_000_000, b"X-A: a\r\n" * 1_000_000):
        made = connect(service)
        with suppress(OSError):
            made.sendall(b"GET /healthz HTTP/1.1\r\n" + bomb)
        assert get_status(read_response(made)) in (0, 400, 431)


def test_garbage_after_pipelined_requests(service: RunningService) -> None:
    good = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    came = read_response(connect(service, good * 3 + b"\x00\xff nonsense\r\n\r\n" + good))
    assert came.count(b" 200 OK") == 3
    assert b" 400 Bad Request" in came
    assert get_status(read_response(connect(service, bytes(range(256)) * 400))) in (0, 400)


def test_clients_that_do_not_read_an_export(service: RunningService, store: str) -> None:
    asked = b"GET /v1/collections/default/export HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(2):
        for _ in range(READERS):
            connect(service, asked, receives=4_096)
        wait_until(lambda: count_connections(service) >= READERS)
        assert_others_are_served(service)
        wait_until(lambda: count_connections(service) <= 1)
        wait_until(lambda: not count_idle_transactions(store))


def test_followers_do_not_prevent_shutdown(postgres: Server, tmp_path: Path) -> None:
    """Follow a job that no worker runs: the followers stay until the service ends and do not delay its end."""
    with start_service(
        create_database(), tmp_path, others={"WAYLORE_JOBS_CONCURRENCY": "0"}, idle_timeout=STALL
    ) as service:
        with service.open_client() as client:
            job = client.put("/uploads/a.md", content=b"Mara owns the login.").json()["id"]
            held = [
                connect(
                    service,
                    f"GET /v1/collections/default/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
                )
                for _ in range(50)
            ]
            for one in held:
                assert select.select([one], [], [], HANG_SECONDS)[0]
            assert client.get("/stats").status_code == 200
            assert client.get(f"/jobs/{job}").json()["state"] == "waiting"
        service.process.terminate()
        assert service.process.wait(HANG_SECONDS) in (0, -signal.SIGTERM)
        assert "graceful shutdown exceeded" not in service.log.read_text()  # what uvicorn says if it had to cancel
