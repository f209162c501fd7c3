"""Run a step in its own threads, a bounded number of items ahead of the next step."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run_ahead(function: Callable[[T], R], items: Iterable[T], workers: int) -> Generator[R]:
    """Yield results in order, with up to `workers` items in work and up to `workers` results ahead of the consumer."""
    pending: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="waylore-adding")
    try:
        for item in items:
            pending.append(pool.submit(copy_context().run, function, item))  # keeps the trace in the thread
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
