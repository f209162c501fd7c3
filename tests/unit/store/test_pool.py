"""The pool reconnects for waiting requests only, with growing pauses, and reports when it is exhausted."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, ClassVar

import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from waylore.store.postgres import connections
from waylore.store.postgres.connections import PoolExhausted, ReconnectingPool


class FakeTimer:
    """A timer that records its delay and is fired by the test."""

    delays: ClassVar[list[float]] = []
    call: ClassVar[Callable[[], None]]

    def __init__(self, delay: float, call: Callable[[], None]) -> None:
        self.delays.append(delay)
        FakeTimer.call = staticmethod(call)

    def start(self) -> None: ...

    def cancel(self) -> None: ...


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReconnectingPool]:
    monkeypatch.setattr(connections, "Timer", FakeTimer)
    monkeypatch.setattr(FakeTimer, "delays", [])
    monkeypatch.setattr(ConnectionPool, "_open", lambda _: None)  # no threads, no connections
    with closing(
        ReconnectingPool("", connections=2, wait_seconds=0.1, configure=lambda _: None, prepare_threshold=None)
    ) as made:
        monkeypatch.setattr(made, "_closed", False)
        yield made
        monkeypatch.setattr(made, "_closed", True)


def test_pauses_grow_while_a_request_waits(pool: ReconnectingPool, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[int] = []
    monkeypatch.setattr(pool, "check", lambda: checks.append(1))
    pool._requests = 1
    for _ in range(6):
        pool._reconnect_later()
        pool._reconnect_later()  # a timer is running already
        FakeTimer.call()
    assert FakeTimer.delays == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert len(checks) == 6
    pool._requests = 0
    pool._reconnect_later()
    assert len(FakeTimer.delays) == 6


@pytest.mark.parametrize(("size", "available", "is_exhausted"), [(2, 0, True), (1, 0, False), (2, 1, False)])
def test_timeout_says_whether_all_connections_are_in_use(
    pool: ReconnectingPool, monkeypatch: pytest.MonkeyPatch, size: int, available: int, is_exhausted: bool
) -> None:
    def time_out(*_: Any) -> None:
        raise PoolTimeout("no connection")

    monkeypatch.setattr(ConnectionPool, "getconn", time_out)
    stats = {"pool_size": size, "pool_max": 2, "pool_available": available}
    monkeypatch.setattr(pool, "get_stats", lambda: stats)
    with pytest.raises(PoolTimeout) as caught:
        pool.getconn()
    assert isinstance(caught.value, PoolExhausted) == is_exhausted
    assert pool._requests == 0
