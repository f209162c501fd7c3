"""Find stores, embedders, extractors, readers and recipes of other packages by entry point.

An entry point is loaded when its name is used, so an unused package costs nothing. Our own modules that few processes
need are loaded late too (`import_later`).
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

GROUPS = (
    "waylore.stores",
    "waylore.embedders",
    "waylore.extractors",
    "waylore.readers",
    "waylore.recipes",
    "waylore.rerankers",
)


def load_plugin(group: str, name: str) -> Any | None:
    """Load the object that a package registered under a name; None if no package did."""
    for entry in entry_points(group=group, name=name):
        return entry.load()
    return None


def list_plugins(group: str) -> tuple[str, ...]:
    """Return the names that packages registered in a group."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def import_later(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports another one when it is called, so that a search starts without its module."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call
