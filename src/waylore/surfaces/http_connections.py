"""Connections that are closed when nothing comes of them: uvicorn's own wait for ever.

A client that connects and says nothing, sends its headers a letter at a time, goes on sending after it was
answered, or does not read the rest of an answer that was given up, holds a connection and nothing else. After
`http.stall` seconds it is cut off. What happens within a request is not watched here: bodies have limits of
their own, and answers are given up by `http_guard`.
"""

import asyncio
from functools import cache

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from waylore.surfaces.settings import load


@cache
def _stall() -> float:
    """As the process reads it: uvicorn makes connections, and tells them nothing of ours."""
    return load().http.stall


class Impatient(H11Protocol):
    """HTTP over one connection, which must be of use."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to watch."""
        super().connection_made(transport)
        self._last, self._since = self.cycle, self.loop.time()
        self._watch = self.loop.call_later(_stall() / 2, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing left to watch."""
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        now = self.loop.time()
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn says
        is_idle = self.transport.is_closing() or cycle is None or cycle.response_complete
        if not is_idle or self.cycle is not self._last:
            self._last, self._since = self.cycle, now
        if now - self._since > _stall():
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(_stall() / 2, self._look)
