"""How far adding files has come: figures, and a line of text for a terminal. It prints nothing."""

from dataclasses import dataclass

from waylore.indexing.blocks import Refusal

WIDTH = 24


@dataclass(frozen=True, slots=True)
class Progress:
    """What is written so far, of how much, and how long it took."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    passages: int
    facts: int
    seconds: float

    @property
    def done(self) -> float:
        """The part that is done, by bytes of files: 0 to 1."""
        return self.bytes / self.of_bytes if self.of_bytes else 1.0

    @property
    def rate(self) -> float:
        """Passages a second."""
        return self.passages / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take at this pace; None before anything is done."""
        return self.seconds * (1 - self.done) / self.done if self.done else None

    def __str__(self) -> str:
        full = round(WIDTH * self.done)
        bar = "█" * full + "░" * (WIDTH - full)
        left = "…" if self.left is None else _clock(self.left)
        told = f"{self.files:,}/{self.of_files:,} files  {self.passages:,} passages  {self.facts:,} facts"
        return f"{bar} {self.done:4.0%}  {told}  {self.rate:,.0f} passages/s  {left} left"


@dataclass(frozen=True, slots=True)
class Added:
    """What adding files came to.

    `unchanged` files cost a hash. `documents` were new or changed, `forgotten` ones are of files that changed
    or vanished. `refusals` say what was passed over, and why: the first thousand of those that were `refused`.
    """

    files: int = 0
    unchanged: int = 0
    documents: int = 0
    passages: int = 0
    facts: int = 0
    forgotten: int = 0
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        told = [
            f"{self.files:,} files: {self.unchanged:,} unchanged, {self.documents:,} documents written "
            f"({self.passages:,} passages, {self.facts:,} facts), {self.forgotten:,} forgotten, "
            f"in {self.seconds:.1f} s",
            *(f"passed over {refusal.uri}: {refusal.reason}" for refusal in self.refusals),
        ]
        return "\n".join(told)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
