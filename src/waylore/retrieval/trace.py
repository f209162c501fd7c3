"""Record the stages of a search: start, duration, number of candidates and failures.

A stage that fails does not fail the search: the trace records the error and returns a default instead.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from waylore.errors import DeadlineExceeded, WayloreError
from waylore.store.reads import Reads

T = TypeVar("T")
U = TypeVar("U")


@dataclass(slots=True)
class Trace:
    """The record of one search, by the name of the stage.

    `started` and `seconds` are on the clock of `time.perf_counter`. `missing` has a line for each stage that
    failed, and `causes` has the errors of the store.
    """

    started: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    causes: list[Exception] = field(default_factory=list)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Record when a stage starts and how long it takes."""
        self.started[name] = start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start

    def run_stage(self, name: str, stage: Reads[T], *, default: U) -> Reads[T | U]:
        """Run a stage. If it fails, record the error and return `default`. A deadline ends the whole search.

        Stages that run together overlap in time.
        """
        with self.measure(name):
            try:
                return (yield from stage)
            except DeadlineExceeded:
                raise
            except WayloreError as error:
                self.missing.append(f"{name}: {error}")
                self.causes.append(error)
                return default

    def call_model(self, name: str, model: Callable[[], T], *, default: U, stage: str = "") -> T | U:
        """Call a model. If it fails, record the error and return `default`.

        `stage` is the stage that cannot run without the model; it is reported instead of `name`. The model
        belongs to the caller and may raise any exception.
        """
        with self.measure(name):
            try:
                return model()
            except DeadlineExceeded:
                raise
            except Exception as error:  # noqa: BLE001 (see above)
                self.missing.append(f"{stage or name}: {error}")
                return default
