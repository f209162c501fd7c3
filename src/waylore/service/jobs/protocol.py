"""Jobs, as a protocol: what is to be done in the background, how far it is, and what became of it.

A job is begun in runs. A run that was lost (its process died, or was taken for dead) is taken up by another,
and whoever began the earlier one is told so at the next word. Who does a job, and when, is decided by a queue:
a table only remembers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Kind = Literal["add", "import", "forget", "reembed"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done for a collection; `work` says what to work on, and `problem` what was in the way.

    `runs` counts how often it was begun, `version` grows with every change.
    """

    id: str
    collection: str
    caller: str
    kind: Kind
    work: Mapping[str, Any]
    made_at: datetime
    state: State = "waiting"
    runs: int = 0
    is_cancelled: bool = False
    progress: Mapping[str, float] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    problem: str = ""
    began_at: datetime | None = None
    ended_at: datetime | None = None
    version: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in OVER


class JobTable(Protocol):
    """All jobs of a service. Every verb may be called from any thread."""

    def add(self, job: Job, put: Callable[[Any], int]) -> None:
        """Remember a job and `put` it into the queue: both, or neither."""
        ...

    def begin(self, id_: str) -> Job | None:
        """A job, in a new run of it; None if there is nothing left to do."""
        ...

    def tell(self, job: Job, progress: Mapping[str, float]) -> bool | None:
        """Say how far a run is; whether it is to stop, or None if it was lost."""
        ...

    def end(self, job: Job, state: State, *, result: Mapping[str, Any] | None, problem: str = "") -> bool:
        """Say what became of a run; whether it still counts."""
        ...

    def put_back(self, job: Job, problem: str) -> None:
        """Say that a run came to nothing, and that the job waits for another."""
        ...

    def cancel(self, collection: str, id_: str, drop: Callable[[Any, int], object]) -> Job | None:
        """Cancel a job that waits, and `drop` it from the queue; tell one that runs to stop; None if over."""
        ...

    def job(self, collection: str, id_: str) -> Job | None:
        """A job of a collection."""
        ...

    def jobs(
        self, collection: str, *, caller: str | None, before: tuple[float, str] | None, limit: int
    ) -> tuple[Job, ...]:
        """Jobs of a collection, the newest first: all, or one caller's; `before` is (seconds, identity)."""
        ...

    def unfinished(self, ids: Sequence[str]) -> frozenset[str]:
        """Which of these are still to be done."""
        ...

    def sweep(self, before: float) -> None:
        """Drop those that ended before a time."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...
