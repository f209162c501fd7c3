"""Define the progress and the result of adding files, with texts for a terminal. The module prints nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any

from waylore.indexing.blocks import Skipped
from waylore.types.results import add_counts, describe_left_out

BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Progress:
    """Files, bytes, passages and facts written so far, the totals, and the time taken in seconds."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    passages: int
    facts: int
    seconds: float

    @property
    def done(self) -> float:
        """The fraction of bytes that is done, 0 to 1."""
        return self.bytes / self.of_bytes if self.of_bytes else 1.0

    @property
    def rate(self) -> float:
        """Passages per second."""
        return self.passages / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Estimated seconds for the rest, or None before the first bytes are done."""
        return self.seconds * (1 - self.done) / self.done if self.done else None

    def __str__(self) -> str:
        full = round(BAR_WIDTH * self.done)
        bar = "█" * full + "░" * (BAR_WIDTH - full)
        left = "…" if self.left is None else _format_clock(self.left)
        counts = f"{self.files:,}/{self.of_files:,} files  {self.passages:,} passages  {self.facts:,} facts"
        return f"{bar} {self.done:4.0%}  {counts}  {self.rate:,.0f} passages/s  {left} left"


@dataclass(frozen=True, slots=True)
class AddReport:
    """The result of adding files.

    `unchanged` files were only hashed. `documents` is the number of new or changed documents, `forgotten` the number of
    documents whose files changed or vanished. `skipped` lists the first thousand skipped files and parts with their
    reasons, `skipped_count` is the number of all. A fact in files of several batches counts in each batch. `left_out`
    counts the secrets of each kind that were left out of the files.
    """

    files: int = 0
    unchanged: int = 0
    documents: int = 0
    passages: int = 0
    facts: int = 0
    forgotten: int = 0
    skipped_count: int = 0
    skipped: tuple[Skipped, ...] = ()
    seconds: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """True if files were skipped and nothing else was done: no file could be read."""
        return self.skipped_count > 0 and not (self.documents or self.unchanged or self.forgotten)

    def __str__(self) -> str:
        lines = [
            f"{self.files:,} files: {self.unchanged:,} unchanged, {self.documents:,} documents written "
            f"({self.passages:,} passages, {self.facts:,} facts), {self.forgotten:,} forgotten, "
            f"in {self.seconds:.1f} s",
            *([f"left out: {describe_left_out(self.left_out)}"] if self.left_out else []),
            *(f"skipped {file.uri}: {file.reason}" for file in self.skipped),
        ]
        return "\n".join(lines)


def _format_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def merge_reports(reports: Sequence[AddReport]) -> AddReport:
    """Add up the reports of several files or folders."""
    if len(reports) <= 1:
        return reports[0] if reports else AddReport()
    values = {each.name: [getattr(report, each.name) for report in reports] for each in fields(AddReport)}
    return AddReport(**{name: _add_up(each) for name, each in values.items()})


def _add_up(values: list[Any]) -> Any:
    if isinstance(values[0], Mapping):
        return add_counts(values)
    return tuple(chain.from_iterable(values)) if isinstance(values[0], tuple) else sum(values)
