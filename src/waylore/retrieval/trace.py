"""What a graph search is given, and what it gives back: the words that the graph stages share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from waylore.errors import WayloreError
from waylore.store.reads import Reads

T = TypeVar("T")
U = TypeVar("U")


@dataclass(slots=True)
class Trace:
    """What the stages did: when each began, how long it took, how many it found, what failed and why."""

    began: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    causes: list[Exception] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        self.began[name] = start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start

    def reads(self, name: str, stage: Reads[T], *, instead: U) -> Reads[T | U]:
        """A stage that may fail; says so and gives `instead`, if it does. Who goes together shares his time."""
        with self.stage(name):
            try:
                return (yield from stage)
            except WayloreError as error:
                self.missing.append(f"{name}: {error}")
                self.causes.append(error)
                return instead

    def asks(self, name: str, model: Callable[[], T], *, instead: U, lost: str = "") -> T | U:
        """The same of a model: it is the caller's, and may fail of anything; `lost` is what fails with it."""
        with self.stage(name):
            try:
                return model()
            except Exception as error:  # noqa: BLE001 (see above)
                self.missing.append(f"{lost or name}: {error}")
                return instead
