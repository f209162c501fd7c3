"""Collect figures that engines report, for telemetry: of connection pools, and of indexes. It opens no connection."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

_sources: list[Callable[[], Mapping[str, int]]] = []
_lags: dict[int, tuple[int, float]] = {}  # by collection: changes, and when the oldest was made by time.monotonic


def add_source(read_figures: Callable[[], Mapping[str, int]]) -> None:
    """Register a function that returns the figures of an engine's pools."""
    _sources.append(read_figures)


def read_pools() -> Mapping[str, int]:
    """Return the figures of all pools of this process, added up; empty if no server was opened."""
    figures: Counter[str] = Counter()
    for read_figures in _sources:
        figures.update(read_figures())
    return figures


class IndexLag(NamedTuple):
    """How far the indexes of open collections are behind: changes that they lack, and the age of the oldest."""

    pending: int
    seconds: float


def record_lag(collection: int, pending: int, seconds: float) -> None:
    """Record how far the index of a collection is behind."""
    if pending:
        _lags[collection] = (pending, time.monotonic() - seconds)
    else:
        _lags.pop(collection, None)


def read_lag() -> IndexLag:
    """Return how far the indexes of all collections that this process feeds were behind when they were last fed."""
    known = list(_lags.values())
    oldest = min((at for _, at in known), default=time.monotonic())
    return IndexLag(sum(pending for pending, _ in known), time.monotonic() - oldest)
