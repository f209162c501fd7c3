"""Probes: threads that check the store, the model and the OpenID provider at intervals.

`/readyz` reports their last results and checks nothing itself, so it answers even if a check hangs. Each check has its
own thread, so a hanging check does not delay the others.
"""

import logging
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

log = logging.getLogger(__name__)
INTERVAL_SECONDS = 2.0
LIMIT_SECONDS = 5.0  # a longer check counts as failed; on a busy machine one second is not enough
CLOSE_SECONDS = 1.0  # closing a probe waits this long for a running check
START_SECONDS = 3.0  # the start of a service waits this long for the first results


class Probe:
    """Runs a check at intervals until it is closed. The check raises an error if something is not available."""

    def __init__(self, name: str, check: Callable[[], object]) -> None:
        self.name = name
        self._check = check
        self._has_passed = False
        self._began: float | None = None  # monotonic time at which the running check began
        self._has_run = Event()
        self._is_closing = Event()
        self._thread = Thread(target=self._run, name=f"waylore-probe-{name}", daemon=True)
        self._thread.start()

    @property
    def is_ok(self) -> bool:
        """Whether the last check passed, and the running one has not taken too long."""
        began = self._began
        return self._has_passed and (began is None or monotonic() - began < LIMIT_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait for the first result, but not longer than `seconds`."""
        self._has_run.wait(seconds)

    def close(self) -> None:
        """End the thread. Do not wait for a check that hangs."""
        self._is_closing.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._is_closing.is_set():
            self._began = monotonic()
            has_passed = self._run_check()
            self._has_passed = has_passed and monotonic() - self._began < LIMIT_SECONDS
            self._began = None
            self._has_run.set()
            self._is_closing.wait(INTERVAL_SECONDS)

    def _run_check(self) -> bool:
        try:
            self._check()
        except Exception as error:  # noqa: BLE001 (any error means that it is not available)
            if self._has_passed or not self._has_run.is_set():  # one line for all checks that fail in a row
                log.warning("the %s is not ready: %s", self.name, error)
            return False
        return True


def run_until_passed(check: Callable[[], object]) -> Callable[[], None]:
    """Return a check that runs only until it has passed once, because each run may cost money."""
    has_passed = Event()

    def run() -> None:
        if not has_passed.is_set():
            check()
            has_passed.set()

    return run
