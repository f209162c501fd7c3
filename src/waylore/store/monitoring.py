"""Collect the figures of connection pools that engines report, for telemetry. It opens no connection."""

from collections import Counter
from collections.abc import Callable, Mapping

_sources: list[Callable[[], Mapping[str, int]]] = []


def add_source(read_figures: Callable[[], Mapping[str, int]]) -> None:
    """Register a function that returns the figures of an engine's pools."""
    _sources.append(read_figures)


def read_pools() -> Mapping[str, int]:
    """Return the figures of all pools of this process, added up; empty if no server was opened."""
    figures: Counter[str] = Counter()
    for read_figures in _sources:
        figures.update(read_figures())
    return figures
