"""Clients that mean harm, or do it, against a real service: it goes on answering others, and keeps nothing.

Limits are scaled down so that the tests are quick; what they limit is the same.
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
from tools.postgres import HOST, Server
from tools.serving import Served, over, serving, until

from databases import database

STALL = 1.0
LARGEST = 5_000_000
PLACES = 4
UPLOAD = "/v1/collections/default/uploads/harm.md"
opened: list[socket.socket] = []
READERS = 5
MORE = 60_000_000  # bytes of memory that Python may keep of what came and went
PATIENCE = 30.0  # seconds in which others must be answered, however busy the machine is


@pytest.fixture(scope="module")
def store(postgres: Server) -> str:
    return database()


@pytest.fixture(scope="module")
def service(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    limits: dict[str, Any] = {
        "stall": STALL,
        "pace": 5_000,
        "max_upload": LARGEST,
        "max_body": 100_000,
        "uploads": PLACES,
    }
    with serving(store, folder, **limits) as served:
        used_well(served)
        yield served


def used_well(service: Served) -> None:
    """What a good day takes: one collection with large documents, and some who read all of it at once."""
    rows = b"".join(b'{"text": "Note %d.", "blob": "%s"}\n' % (n, b"x" * 9_000) for n in range(500))
    with service.client() as client, ThreadPoolExecutor(READERS) as readers:
        assert over(client, client.put("/uploads/blobs.jsonl", content=rows).json()["id"])["state"] == "done"
        for _ in range(2):
            list(readers.map(lambda _: client.get("/export").raise_for_status(), range(READERS)))


@pytest.fixture(autouse=True)
def unharmed(service: Served) -> Iterator[None]:
    """Whatever a test does: others are answered, and nothing of it is left."""
    before = service.resident
    with service.client() as client:
        jobs = len(client.get("/jobs").json()["jobs"])
    yield
    while opened:
        opened.pop().close()
    assert_others_are_served(service)
    until(lambda: not service.spooled())
    with service.client() as client:
        listed = client.get("/jobs").json()["jobs"]
        assert len(listed) == jobs or {job["state"] for job in listed} == {"done"}
    assert service.resident < before + MORE


def assert_others_are_served(service: Served) -> None:
    with service.client() as client:
        for _ in range(5):
            began = time.monotonic()
            assert client.get("/stats").status_code == 200
            assert time.monotonic() - began < 5.0
        job = until(lambda: _uploaded(client))
        assert over(client, job)["state"] == "done"


def _uploaded(client: httpx.Client) -> str:
    """The job of an upload; none while all places are taken."""
    answer = client.put("/uploads/good.md", content=b"Kofi owns the search.")
    assert answer.status_code in (202, 503), answer.text
    return str(answer.json()["id"]) if answer.status_code == 202 else ""


def connected(service: Served, said: bytes = b"", *, receives: int = 0) -> socket.socket:
    made = socket.socket()
    opened.append(made)
    if receives:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    made.settimeout(PATIENCE)
    made.connect((HOST, service.port))
    made.sendall(said)
    return made


def put(*headers: str) -> bytes:
    return "\r\n".join([f"PUT {UPLOAD} HTTP/1.1", "Host: waylore", *headers, "", ""]).encode()


def answered(made: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    came = b""
    try:
        while few := made.recv(65_536):
            came += few
    except ConnectionResetError:
        pass
    finally:
        made.close()
    return came


def status(came: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", came)
    return int(found[1]) if found else 0


def connections(service: Served) -> int:
    held = psutil.Process(service.process.pid).net_connections(kind="tcp")
    return sum(1 for one in held if one.status == "ESTABLISHED" and one.laddr.port == service.port)


def in_transactions(store: str) -> int:
    """Connections to the database that hold a transaction open and do nothing in it."""
    with psycopg.connect(store) as db:
        [(held,)] = db.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND state = 'idle in transaction'"
        ).fetchall()
    return int(held)


@pytest.mark.parametrize("how", ["closes", "resets", "ends"])
def test_one_that_goes_away_in_the_middle(service: Served, how: str) -> None:
    made = connected(service, put("Content-Length: 1000000") + b"x" * 300_000)
    until(lambda: [name for name in service.spooled() if name.endswith(".part")])
    if how == "resets":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "ends":
        made.shutdown(socket.SHUT_WR)
        answered(made)
    made.close()


def test_many_that_send_a_byte_a_second(service: Served) -> None:
    said = put("Content-Length: 1000000")
    slow = [connected(service, said) for _ in range(3 * PLACES)]
    began, gone = time.monotonic(), 0
    while slow and time.monotonic() - began < PATIENCE:
        for one in list(slow):
            try:
                one.send(b"x")
            except OSError:
                slow.remove(one)
                one.close()
                gone += 1
        with service.client() as client:
            assert client.get("/stats").status_code == 200
        time.sleep(STALL / 3)
    assert gone == 3 * PLACES
    until(lambda: connections(service) <= 1)


def test_one_that_stops_sending(service: Served) -> None:
    began = time.monotonic()
    came = answered(connected(service, put("Content-Length: 1000000") + b"x" * 100_000))
    assert status(came) == 408
    assert b"nothing came for 1 seconds" in came
    assert STALL * 0.9 < time.monotonic() - began < PATIENCE


def test_one_too_many_is_told_to_come_again(service: Served) -> None:
    for _ in range(PLACES):
        connected(service, put("Content-Length: 1000000") + b"x" * 60_000)
    until(lambda: len(service.spooled()) == PLACES)
    came = answered(connected(service, put("Content-Length: 10")))
    assert status(came) == 503
    assert b"retry-after: 1" in came.lower()


def test_two_gigabytes_that_are_announced_are_refused_before_a_byte(service: Served) -> None:
    came = answered(connected(service, put("Content-Length: 2000000000")))
    assert status(came) == 413
    assert b"connection: close" in came.lower()
    assert b"http.max_upload" in came


def test_nobody_sends_two_gigabytes_to_a_collection_that_is_not_there(service: Served) -> None:
    said = put("Content-Length: 2000000000").replace(b"default", b"nowhere")
    began = time.monotonic()
    assert status(answered(connected(service, said))) == 404
    assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize("path", [UPLOAD, "/v1/collections/default/search"])
def test_two_gigabytes_that_are_not_announced_are_refused_at_the_limit(service: Served, path: str) -> None:
    said = put("Transfer-Encoding: chunked", "Content-Type: application/json").replace(
        UPLOAD.encode(), path.encode()
    )
    if path != UPLOAD:
        said = said.replace(b"PUT", b"POST", 1)
    made = connected(service, said)
    sent, chunk = 0, b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    try:
        while sent < 2_000_000_000:
            made.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    assert status(answered(made)) in (0, 413)  # what came before the reset may be lost with it
    assert sent < LARGEST + 16_000_000  # what the sockets hold on both sides


def test_one_that_sends_more_than_it_announced(service: Served) -> None:
    made = connected(service, put("Content-Length: 20") + b"Mara owns the login." + b"and more\r\n\r\n" * 1_000)
    came = answered(made)
    assert status(came) == 202
    assert b" 400 " in came


def test_half_open_connections_are_cut_off(service: Served) -> None:
    begun = [
        b"",
        b"GET /healthz HT",
        put("Content-Length: 5")[:-2],
        b"GET /healthz HTTP/1.1\r\nHost: waylore\r\n\r\n",
    ]
    for n in range(40):
        connected(service, begun[n % 4])
    until(lambda: connections(service) >= 30)
    until(lambda: connections(service) == 0)


def drip(made: socket.socket) -> None:
    """Send a letter at a time, until the other side has had enough, which must be soon."""
    began = time.monotonic()
    try:
        while time.monotonic() - began < PATIENCE:
            made.sendall(b"a")
            time.sleep(STALL / 4)
    except OSError:
        pass
    assert time.monotonic() - began < PATIENCE / 2
    made.close()


def test_headers_a_letter_at_a_time_are_not_waited_for(service: Served) -> None:
    drip(connected(service, b"GET /healthz HTTP/1.1\r\nX-A: "))


def test_a_body_that_nobody_asked_for_does_not_hold_its_connection(service: Served) -> None:
    said = b"GET /healthz HTTP/1.1\r\nHost: waylore\r\nContent-Length: 1000000\r\n\r\n"
    drip(connected(service, said))


def test_a_bomb_of_headers(service: Served) -> None:
    for bomb in (b"X-A: " + b"a" * 10_000_000, b"X-A: a\r\n" * 1_000_000):
        made = connected(service)
        with suppress(OSError):
            made.sendall(b"GET /healthz HTTP/1.1\r\n" + bomb)
        assert status(answered(made)) in (0, 400, 431)


def test_garbage_in_a_pipeline(service: Served) -> None:
    good = b"GET /healthz HTTP/1.1\r\nHost: waylore\r\n\r\n"
    came = answered(connected(service, good * 3 + b"\x00\xff nonsense\r\n\r\n" + good))
    assert came.count(b" 200 OK") == 3
    assert b" 400 Bad Request" in came
    assert status(answered(connected(service, bytes(range(256)) * 400))) in (0, 400)


def test_one_that_does_not_read_an_export(service: Served, store: str) -> None:
    asked = b"GET /v1/collections/default/export HTTP/1.1\r\nHost: waylore\r\n\r\n"
    for _ in range(2):
        for _ in range(READERS):
            connected(service, asked, receives=4_096)
        until(lambda: connections(service) >= READERS)
        assert_others_are_served(service)
        until(lambda: connections(service) <= 1)
        until(lambda: not in_transactions(store))


def test_many_that_follow_a_job_and_do_not_read(postgres: Server, tmp_path: Path) -> None:
    """A job that nobody does: its followers stay until the service ends, and do not keep it from ending."""
    with serving(database(), tmp_path, jobs=0, stall=STALL) as service:
        with service.client() as client:
            job = client.put("/uploads/a.md", content=b"Mara owns the login.").json()["id"]
            held = [
                connected(
                    service,
                    f"GET /v1/collections/default/jobs/{job}/events HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
                )
                for _ in range(50)
            ]
            for one in held:
                assert select.select([one], [], [], PATIENCE)[0]
            assert client.get("/stats").status_code == 200
            assert client.get(f"/jobs/{job}").json()["state"] == "waiting"
        began = time.monotonic()
        service.process.terminate()
        assert service.process.wait(PATIENCE) in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 10
