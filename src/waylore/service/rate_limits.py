"""Rate limits: how many requests a caller may send in a sliding window, counted in this process.

(The library `limits` does this too, but it stores every caller forever and starts a thread for each hundredth
of a second in which a request comes.)
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

MAX_CALLERS = 65_536  # callers whose requests are counted; the oldest are dropped


@dataclass(frozen=True, slots=True)
class RateDecision:
    """Whether a request is allowed, how many more are allowed, and the seconds until the oldest leaves the window."""

    is_allowed: bool
    remaining: int
    seconds: float


class RateLimiter:
    """Allows `limit` requests of a caller in any `window` seconds. 0 allows any number."""

    def __init__(self, limit: int, *, window: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self.window = window
        self._clock = clock
        self._times: TTLCache[str, deque[float]] = TTLCache(MAX_CALLERS, window, timer=clock)

    def count_request(self, caller: str) -> RateDecision:
        """Count a request of a caller if it is allowed."""
        if not self.limit:
            return RateDecision(True, 0, 0.0)
        now = self._clock()
        times = self._times.get(caller) or deque()
        while times and times[0] <= now - self.window:
            times.popleft()
        is_allowed = len(times) < self.limit
        if is_allowed:
            times.append(now)
            self._times[caller] = times  # the assignment restarts its time in the cache
        return RateDecision(is_allowed, self.limit - len(times), times[0] + self.window - now)
