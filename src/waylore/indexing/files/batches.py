"""What goes through the steps of adding files: documents cut into passages, how far a file is, what is gone.

Each is small, or small in proportion to what it stands for: a file may have millions of rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from waylore.indexing.blocks import Refusal, Source
from waylore.protocols import Extraction
from waylore.types.knowledge import Contribution, Document, Passage

SHOWN = 1_000  # refusals that are kept; the others are counted


@dataclass(frozen=True, slots=True)
class Cut:
    """A document cut into passages, about to be read by an extractor."""

    document: Document
    passages: Sequence[Passage]
    declared: Sequence[Extraction]


@dataclass(frozen=True, slots=True)
class Further:
    """So many bytes more of a file are read."""

    size: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Some of the documents that a file no longer has."""

    ids: Sequence[str]


class Former:
    """The documents that a file had, by identity, and which it still has: a file may have millions."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = np.sort(np.fromiter((id_.encode() for id_ in ids), dtype="S32"))
        self._is_there = np.zeros(len(self._ids), dtype=np.bool_)

    def see(self, id_: str) -> None:
        """Note that the file still has a document, if it had it."""
        at = int(np.searchsorted(self._ids, id_.encode()))
        if at < len(self._ids) and self._ids[at] == id_.encode():
            self._is_there[at] = True

    def gone(self) -> Iterator[str]:
        """Those that were not seen."""
        return (id_.decode() for id_ in self._ids[~self._is_there])


@dataclass(slots=True)
class Refusals:
    """What was passed over: the first of it, and how much it was."""

    shown: list[Refusal] = field(default_factory=list)
    count: int = 0

    def add(self, refusal: Refusal) -> None:
        """Count one, and keep it if it is among the first."""
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append(refusal)


@dataclass(frozen=True, slots=True)
class End:
    """A file that was read to its end, and what it was.

    `size` is how many of its bytes were not told before, by what was cut from it.
    """

    source: Source
    size: int
    fingerprint: str
    unchanged: bool = False


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    contributions: list[Contribution] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    bytes: int = 0
    written: int = 0
    forgotten: int = 0
