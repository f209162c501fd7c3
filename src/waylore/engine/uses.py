"""Count how often passages and facts were used, and write the counts in batches.

A use counts at most once an hour for each caller and item, so that frequent questions raise no score. Each process has
its own table of recent uses. A thread writes a batch two seconds after its first use, or at once if it is large.
`close` and the exit of the process write the rest, so only a killed process loses the last two seconds.
"""

import atexit
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias
from weakref import WeakSet, finalize

from waylore.errors import WayloreError
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import SearchResult

log = logging.getLogger(__name__)
USE_SECONDS = 3_600.0  # a caller's uses of an item count once in this time
MAX_RECENT_USES = 100_000  # uses that are known to be recent; the oldest are dropped
BATCH_SECONDS = 2.0  # time from the first use of a batch to its write
BATCH_USES = 1_000  # a batch of this size is written at once
Signals: TypeAlias = SimpleQueue["UseCounter | None"]  # a counter that has uses to write, or None at the end


@dataclass(slots=True)
class _Batch:
    """The uses that are not written yet, and the time of the last one."""

    passages: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    at: datetime = EPOCH

    def __len__(self) -> int:
        return len(self.passages) + len(self.facts)


class UseCounter:
    """Counts the uses of one open collection."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._batch = _Batch()
        self._recent_uses: OrderedDict[tuple[str, str], float] = OrderedDict()  # with their time, oldest first
        self._lock = Lock()  # guards the batch, the recent uses and the thread
        self._writing = Lock()  # held until a batch is written
        self._signals: Signals = SimpleQueue()
        self._thread: Thread | None = None
        self._is_closed = False
        finalize(self, self._signals.put, None).atexit = False  # ends the thread of a counter that was not closed
        _counters.add(self)

    def record(self, result: SearchResult, caller: str) -> None:
        """Count the hits of an answer, and the facts of their paths, as used by a caller."""
        now = self._clock()
        passages = [hit.passage.id for hit in result.hits]
        facts = [step.fact.id for hit in result.hits if hit.path for step in hit.path.steps]
        with self._lock:
            if self._is_closed:
                return
            before = len(self._batch)
            self._batch.passages += self._take_unused(caller, passages, now.timestamp())
            self._batch.facts += self._take_unused(caller, facts, now.timestamp())
            self._batch.at = now
            if before == 0 < len(self._batch) or before < BATCH_USES <= len(self._batch):
                self._signals.put(self)
                self._start_thread()

    def write(self) -> None:
        """Write the uses so far. An error is logged, because a store that cannot be written can be searched.

        The deadline of a request does not apply, because the uses of other requests are written too.
        """
        with self._writing:
            with self._lock:
                batch, self._batch = self._batch, _Batch()
            try:
                if batch:
                    Context().run(self._store.count_uses, passages=batch.passages, facts=batch.facts, at=batch.at)
            except WayloreError as error:
                log.warning("uses were not counted: %s", error)
            except Exception:
                log.exception("uses were not counted")

    def close(self) -> None:
        """Write the uses so far, and count no more."""
        with self._lock:
            self._is_closed = True
        self._signals.put(None)
        if self._thread is not None:
            self._thread.join()
        self.write()

    def _take_unused(self, caller: str, items: Iterable[str], now: float) -> list[str]:
        """Return the items that a caller has not used in the last hour, and record them as used."""
        recent = self._recent_uses
        while recent and now - next(iter(recent.values())) >= USE_SECONDS:
            recent.popitem(last=False)
        unused = [item for item in dict.fromkeys(items) if (caller, item) not in recent]
        recent.update({(caller, item): now for item in unused})
        while len(recent) > MAX_RECENT_USES:
            recent.popitem(last=False)
        return unused

    def _start_thread(self) -> None:
        if self._thread is None:
            target, name = _write_batches, "waylore-uses"
            self._thread = Thread(target=target, args=(self._signals,), name=name, daemon=True)
            self._thread.start()


def _write_batches(signals: Signals) -> None:
    """Write batches until their counter is closed or collected. Without uses to write, no counter is referenced."""
    while (counter := signals.get()) is not None:
        try:
            following = signals.get(timeout=BATCH_SECONDS)
        except Empty:
            following = counter
        counter.write()
        del counter
        if following is None:
            return
        del following


_counters: WeakSet[UseCounter] = WeakSet()


@atexit.register
def _write_all() -> None:
    """Write the uses of collections that were not closed, when the process ends."""
    for counter in list(_counters):
        counter.write()
