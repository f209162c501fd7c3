"""Count decisions and times of the searches of this process, for the operators of a collection.

For each collection, count the decisions of the gate and the times of each stage since the process began. They are
numbers without content, and nothing is stored. Each process of a service counts only its own searches.
`surfaces.telemetry` exports the same figures to other programs, for all collections together.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from cachetools import LRUCache

from waylore.types.search import SearchResult

MAX_COLLECTIONS = 1_000  # collections that are counted; the least recently opened is dropped
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds


@dataclass(frozen=True, slots=True)
class ActivityReport:
    """Decisions of the gate, and numbers of searches by the time of each stage: up to each of BOUNDS, and above."""

    since: datetime
    gate: Mapping[str, int]
    stages: Mapping[str, tuple[int, ...]]


class CollectionActivity:
    """Observes the searches of one collection."""

    def __init__(self) -> None:
        self._since = datetime.now(UTC)
        self._lock = Lock()
        self._gate: Counter[str] = Counter()
        self._stages: dict[str, list[int]] = {}

    @contextmanager
    def observe(self, verb: str) -> Iterator[Callable[[object], None]]:  # noqa: ARG002 (of the protocol)
        """Count a search when it has ended; other verbs are ignored."""
        yield self._record

    def _record(self, result: object) -> None:
        if not isinstance(result, SearchResult):
            return
        with self._lock:
            self._gate[result.gate] += 1
            for stage, seconds in () if result.from_cache else result.seconds.items():
                counts = self._stages.setdefault(stage, [0] * (len(BOUNDS) + 1))
                counts[bisect_left(BOUNDS, seconds)] += 1

    def report(self) -> ActivityReport:
        """Return the counts so far."""
        with self._lock:
            stages = {stage: tuple(counts) for stage, counts in self._stages.items()}
            return ActivityReport(self._since, dict(self._gate), stages)


class Activity:
    """The activity of each collection of a service."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._collections: LRUCache[str, CollectionActivity] = LRUCache(MAX_COLLECTIONS)

    def get(self, collection: str) -> CollectionActivity:
        """Return the activity of a collection."""
        with self._lock:
            return self._collections.setdefault(collection, CollectionActivity())

    def forget(self, collection: str) -> None:
        """Forget the activity of a deleted collection."""
        with self._lock:
            self._collections.pop(collection, None)
