"""Run calls in the threads of a model, with the context of the caller: its deadline and its trace."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_in_context(pool: ThreadPoolExecutor, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the results of a function for all items, in order. After an error, start no further call."""
    futures = [pool.submit(copy_context().run, function, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
