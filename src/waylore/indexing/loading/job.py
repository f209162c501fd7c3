"""Define the messages between processes of a load: the job, units of work, prepared batches and their results.

A unit is several small files, or one piece of a long file. Everything here is pickled.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from waylore.indexing.blocks import Skipped
from waylore.indexing.files.batches import Batch, FileRead
from waylore.indexing.files.compare import KnownFile
from waylore.indexing.files.task import Task
from waylore.protocols import Embedder, Extractor
from waylore.store.protocol import Store
from waylore.types.identity import identity
from waylore.types.knowledge import IndexedDocument

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadModels:
    """The models that a process holds."""

    embedder: Embedder | None
    extractor: Extractor | None


class StoredDigests:
    """Ids and digests of stored documents whose files are unfinished: these documents are not embedded again.

    They are stored in an array, because a file may have millions of documents.
    """

    def __init__(self, digests: Iterable[tuple[str, str]] = ()) -> None:
        self._ids = np.sort(np.fromiter((identity("stored", *pair).encode() for pair in digests), dtype="S32"))

    def has(self, document: IndexedDocument) -> bool:
        """Return whether a document is stored with the same content."""
        if not len(self._ids):
            return False
        wanted = identity("stored", document.document.id, document.digest).encode()
        at = int(np.searchsorted(self._ids, wanted))
        return at < len(self._ids) and bool(self._ids[at] == wanted)


@dataclass(frozen=True, slots=True)
class LoadJob:
    """The job of each process of a load: the task, and functions that make the models and open a collection.

    The id of a document decides its collection. `cells` has the number of the cell of each collection. `are_empty` if
    the collections had no documents at the start. A unit has `unit_bytes` at most, unless it is a longer file that
    cannot be split.
    """

    task: Task
    stamp: str
    make_models: Callable[[], LoadModels]
    open_store: Callable[[str], Store]
    collections: tuple[str, ...]
    cells: tuple[int, ...]
    stored: StoredDigests = field(default_factory=StoredDigests)
    are_empty: bool = False
    unit_bytes: int = 100_000  # bge-small takes about a minute for this

    def choose_collection(self, document: str) -> int:
        """Return the number of the collection of a document."""
        return int(document[:8], 16) % len(self.collections)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or some rows of a long one: a small file of the same format, with the number of its first row.

    `read` is the file after the comparison with the store; a whole file is compared by the process that reads it.
    """

    file: KnownFile
    read: FileRead | None = None
    number: int = 0
    is_last: bool = True
    content: bytes = b""
    first_row: int = 1
    skipped: tuple[Skipped, ...] = ()

    @property
    def key(self) -> str:
        """The address of the file; pieces are counted by it."""
        return self.file.addresses[0].uri

    @property
    def size(self) -> int:
        """The number of bytes of the file that the piece covers."""
        return len(self.content) if self.content or not self.is_last else self.file.size


Unit: TypeAlias = Sequence[Piece]
UnitId: TypeAlias = tuple[str, int]


def get_unit_id(unit: Unit) -> UnitId:
    """Return the id of a unit: its first file and piece."""
    return unit[0].key, unit[0].number


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Documents with their vectors, to be written to one collection in one transaction."""

    unit: UnitId
    number: int
    collection: int
    model: str | None
    batch: Batch


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The counts of one transaction."""

    unit: UnitId
    number: int
    documents: int
    passages: int
    facts: int


@dataclass(frozen=True, slots=True)
class PieceDone:
    """The end of a prepared piece.

    `file` is None if it could not be opened. `has_all` if nothing was skipped or is provisional. `is_finished` if a
    batch has the fingerprint of the file. `seen` has the ids of its documents if the collections had documents before.
    """

    key: str
    number: int
    is_last: bool
    size: int
    file_size: int
    file: FileRead | None = None
    is_read: bool = False
    is_empty: bool = False
    has_all: bool = True
    is_finished: bool = False
    seen: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0


@dataclass(frozen=True, slots=True)
class UnitDone:
    """The end of a prepared unit, with its number of batches; `left_out` counts the secrets of each kind in it."""

    unit: UnitId
    batches: int
    pieces: tuple[PieceDone, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


Outcome: TypeAlias = WrittenBatch | UnitDone


class LoadRunner(Protocol):
    """Prepares and writes groups of files somewhere. At most a given number of writers write to one cell."""

    @property
    def can_write(self) -> bool:
        """Whether `write` may be called during the run."""
        ...

    def run(self, groups: Iterator[Sequence[KnownFile]]) -> Iterator[Outcome]:
        """Yield the outcomes in any order; an outcome may be yielded twice."""
        ...

    def write(self, collection: int, call: Callable[[], T]) -> T:
        """Run a write of the caller's as one of the writers of the collection's cell, and return its result."""
        ...

    def close(self) -> None:
        """End all processes and threads of the run."""
        ...
