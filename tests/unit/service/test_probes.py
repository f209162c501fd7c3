"""A probe reports the last result of its check, also while a check hangs."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event

import pytest

from waylore.errors import StoreUnavailable
from waylore.service import probes
from waylore.service.probes import Probe, run_until_passed

SECONDS = 30.0  # only a guard against hanging


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "INTERVAL_SECONDS", 0.02)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_probe_follows_its_check(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [StoreUnavailable("the server is down"), ValueError("a wrong value")]
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if errors:
            raise errors[-1]

    with closing(Probe("store", check)) as probe:
        probe.wait(SECONDS)
        assert not probe.is_ok
        wait_until(lambda: checks > 5)
        errors.clear()
        wait_until(lambda: probe.is_ok)
        errors.append(StoreUnavailable("the server is down again"))
        wait_until(lambda: not probe.is_ok)
    assert [record.getMessage() for record in caplog.records] == [
        "the store is not ready: a wrong value",
        "the store is not ready: the server is down again",
    ]


def test_hanging_check_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "LIMIT_SECONDS", 0.1)
    may_end, hangs = Event(), Event()
    may_end.set()

    def check() -> None:
        if not may_end.is_set():
            hangs.set()
        assert may_end.wait(SECONDS)

    with closing(Probe("store", check)) as probe:
        wait_until(lambda: probe.is_ok)
        may_end.clear()
        assert hangs.wait(SECONDS)
        wait_until(lambda: not probe.is_ok)
        may_end.set()
        wait_until(lambda: probe.is_ok)
        may_end.clear()
        hangs.clear()
        assert hangs.wait(SECONDS)
    may_end.set()  # closing did not wait for the check


def test_check_that_passed_is_not_repeated() -> None:
    runs: list[str] = []
    outcomes: Iterator[Exception | None] = iter([StoreUnavailable("not yet"), None])

    def check() -> None:
        runs.append("run")
        if error := next(outcomes):
            raise error

    run = run_until_passed(check)
    with pytest.raises(StoreUnavailable):
        run()
    run()
    run()
    assert len(runs) == 2
