"""How many requests a caller may send: a moving window, remembered in this process for the callers of late.

(The library `limits` does this too, but keeps every caller for ever and starts a thread for each hundredth of a
second in which somebody calls.)
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

CALLERS = 65_536


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether one more request is allowed, how many are left, and in how many seconds one more will be."""

    is_allowed: bool
    left: int
    seconds: float


class Rates:
    """At most `most` requests of a caller in any `window` seconds; 0 for any number."""

    def __init__(self, most: int, *, window: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.window = window
        self._clock = clock
        self._times: TTLCache[str, deque[float]] = TTLCache(CALLERS, window, timer=clock)

    def take(self, caller: str) -> Taken:
        """Count a request of a caller, if it is allowed."""
        if not self.most:
            return Taken(True, 0, 0.0)
        now = self._clock()
        times = self._times.get(caller) or deque()
        while times and times[0] <= now - self.window:
            times.popleft()
        is_allowed = len(times) < self.most
        if is_allowed:
            times.append(now)
            self._times[caller] = times  # setting it anew keeps it for another window
        return Taken(is_allowed, self.most - len(times), times[0] + self.window - now)
