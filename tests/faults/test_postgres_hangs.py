"""All processes of a PostgreSQL server are stopped under load: every request ends by its deadline, with 503."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager

import psutil
import pytest
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server
from tools.waiting import HANG_SECONDS

from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore.deadline import Deadline
from waylore.errors import DeadlineExceeded, StoreUnavailable
from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER

NOTES = "/v1/collections/default"
TIMEOUT = 6.0  # a busy machine takes seconds until a request waits for the server
CALLERS = 8  # before the server stops, and as many after: a caller may have 16 requests waiting


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(find_plain_build()) as started:
        yield started


@contextmanager
def stop_server(server: Server) -> Iterator[None]:
    """Stop every process of a server while the block runs."""
    postmaster = psutil.Process(server.pid)
    os.kill(postmaster.pid, signal.SIGSTOP)  # first, because it may start further processes
    stopped = [*postmaster.children(recursive=True), postmaster]
    for process in stopped:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)


async def test_requests_end_by_their_deadline_while_the_server_hangs(server: Server) -> None:
    of = make_settings(server.url, http={"request_timeout": TIMEOUT})
    async with start_app(of) as app, create_client(app, create_token(of.store)) as asked:

        async def add(n: int) -> int:
            return (await asked.post(f"{NOTES}/documents", json={"text": f"Note {n} says what Mara does."})).status_code

        for n in range(20):
            await repeat_until_answered(add, n)

        async def ask(n: int) -> int:
            verb, body = ("documents", {"text": f"New {n}."}) if n % 3 == 0 else ("search", {"query": f"Mara {n}"})
            headers = {"Idempotency-Key": f"{n}"} if n % 6 == 0 else {}
            done = await asked.post(f"{NOTES}/{verb}", json=body, headers=headers, timeout=60)
            return done.status_code

        load = [asyncio.create_task(ask(n)) for n in range(CALLERS)]
        await asyncio.sleep(0.05)
        with stop_server(server):
            during = await asyncio.gather(*(ask(n) for n in range(100, 100 + CALLERS)))
            await asyncio.gather(*load)
        assert set(during) == {503}  # before the server went on
        await asyncio.gather(*(repeat_until_answered(ask, n) for n in range(200, 200 + CALLERS)))


async def repeat_until_answered(ask: Callable[[int], Awaitable[int]], n: int) -> None:
    """Ask again after 503 and 504, as a caller does. On a busy machine a request may take longer than TIMEOUT."""
    until = time.monotonic() + HANG_SECONDS
    while (status := await ask(n)) in {503, 504}:
        assert time.monotonic() < until
        await asyncio.sleep(0.1)
    assert status in {200, 201}


def test_hanging_server_ends_a_read_and_leaves_no_thread(server: Server) -> None:
    with closing(PostgresStore(server.url, "hangs")) as store:
        store.version()
        with stop_server(server), Deadline(1.0).activate(), pytest.raises(StoreUnavailable):
            store.version()  # ends before the server goes on
        assert store.version() == 0


def test_long_statement_is_cancelled_by_the_server(server: Server) -> None:
    """Another connection has the lock of the collection, so that the write waits for it."""
    with closing(PostgresStore(server.url, "locked")) as store, closing(PostgresStore(server.url, "locked")) as other:
        with other._transaction(), Deadline(1.0).activate(), pytest.raises(DeadlineExceeded):
            store.forget(["0" * 32], author=OWNER)
        assert store.forget(["0" * 32], author=OWNER).documents == ()
