"""Wait for events in tests and benchmarks.

The limit only ends a wait that would never end. It says nothing about speed, so it also holds on a busy machine. It is
below the time limit of a test, so that the error names the event.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG_SECONDS = 60.0
PAUSE_SECONDS = 0.05


def wait_until(check: Callable[[], T | None], seconds: float = HANG_SECONDS) -> T:
    """Call `check` until it returns a true value, and return that value."""
    deadline = time.monotonic() + seconds
    while not (result := check()):
        assert time.monotonic() < deadline, f"the condition was not met within {seconds:g} s"
        time.sleep(PAUSE_SECONDS)
    return result
