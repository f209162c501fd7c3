"""Count prepared and written parts of each file, and find the complete files.

Outcomes arrive in any order, and may arrive twice if a unit was prepared twice. The ledger is only in memory: the store
is the checkpoint of a load.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from waylore.indexing import pipeline
from waylore.indexing.files.batches import Batch, FileRead, PreviousDocuments, SkippedFiles
from waylore.indexing.files.compare import list_file_documents
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.files.write import write_batch
from waylore.indexing.loading.job import Outcome, PieceDone, UnitDone, UnitId, WrittenBatch
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.results import add_counts

REMOVED = 1_024  # documents that are removed in one transaction


@dataclass(slots=True)
class UnitTally:
    """The written batches of a unit, and its end if it has arrived."""

    written: set[int] = field(default_factory=set)
    done: UnitDone | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all batches are written."""
        return self.done is not None and len(self.written) == self.done.batches


@dataclass(slots=True)
class FileTally:
    """The written pieces of a file, and the number of all pieces if known."""

    pieces: dict[int, PieceDone] = field(default_factory=dict)
    of_pieces: int = 0
    bytes: int = 0

    def add(self, piece: PieceDone) -> int:
        """Add a piece, and return its number of bytes of the file."""
        self.pieces[piece.number] = piece
        if piece.is_last:
            self.of_pieces = piece.number + 1
        before = self.bytes
        self.bytes = piece.file_size if self.is_complete else min(before + piece.size, piece.file_size)
        return self.bytes - before

    @property
    def is_complete(self) -> bool:
        """Whether all pieces are written."""
        return 0 < self.of_pieces == len(self.pieces)


@dataclass(frozen=True, slots=True)
class FileDone:
    """A completely written file, and the ids of its documents if the collections had documents before."""

    file: FileRead
    is_read: bool
    is_empty: bool
    seen: frozenset[str]


class LoadLedger:
    """The counts of a load, and its complete files."""

    def __init__(self, files: int, size: int) -> None:
        self.report = AddReport(files=files)
        self.skipped = SkippedFiles()
        self.progress = Progress(0, files, 0, size, 0, 0, 0.0)
        self._units: dict[UnitId, UnitTally] = {}
        self._finished: set[UnitId] = set()
        self._files: dict[str, FileTally] = {}
        self._complete: list[FileDone] = []

    def take(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome.unit in self._finished:
            return
        unit = self._units.setdefault(outcome.unit, UnitTally())
        if isinstance(outcome, UnitDone):
            unit.done = outcome
        elif outcome.number not in unit.written:
            unit.written.add(outcome.number)
            self._count_batch(outcome)
        if unit.done and unit.is_complete:
            self._finished.add(outcome.unit)
            del self._units[outcome.unit]
            self._finish_unit(unit.done)

    def pop_complete(self) -> list[FileDone]:
        """Return the complete files that need a fingerprint, each once."""
        complete, self._complete = self._complete, []
        return complete

    @property
    def waiting(self) -> int:
        """The number of complete files that need a fingerprint."""
        return len(self._complete)

    def _count_batch(self, written: WrittenBatch) -> None:
        report = self.report
        self.report = replace(
            report,
            documents=report.documents + written.documents,
            passages=report.passages + written.passages,
            facts=report.facts + written.facts,
        )

    def _finish_unit(self, done: UnitDone) -> None:
        self.report = replace(self.report, left_out=add_counts([self.report.left_out, done.left_out]))
        for piece in done.pieces:
            for skipped in piece.skipped:
                self.skipped.add(skipped)
            self.skipped.count += piece.skipped_count - len(piece.skipped)
            tally = self._files.setdefault(piece.key, FileTally())
            self.progress = replace(self.progress, bytes=self.progress.bytes + tally.add(piece))
            if tally.is_complete:
                del self._files[piece.key]
                self._finish_file(list(tally.pieces.values()))

    def _finish_file(self, pieces: Sequence[PieceDone]) -> None:
        self.progress = replace(self.progress, files=self.progress.files + 1)
        file = pieces[0].file
        if file is None or pieces[0].is_finished:
            return
        if file.is_unchanged:
            self.report = replace(self.report, unchanged=self.report.unchanged + 1)
            return
        if not all(piece.has_all for piece in pieces):
            file = replace(file, fingerprint=replace(file.fingerprint, content=""))
        seen = frozenset(id_ for piece in pieces for id_ in piece.seen)
        is_read, is_empty = any(p.is_read for p in pieces), any(p.is_empty for p in pieces)
        if is_read or is_empty:
            self._complete.append(FileDone(replace(file, is_read=is_read), is_read, is_empty, seen))


def finish_files(store: Store, files: Sequence[FileDone], author: Author, *, was_empty: bool) -> int:
    """Write the fingerprints of complete files, remove documents that they no longer have, and return their number."""
    removed = [] if was_empty else [id_ for file in files for id_ in _find_removed(store, file)]
    *first, last = [*pipeline.split_into_batches(removed, REMOVED)] or [[]]
    begun = {file.file.source.uri: file.file for file in files} if removed else {}
    for ids in first:
        write_batch(store, Batch(removed=ids, begun=begun), author=author, model=None)
    done = Batch(removed=last, begun=begun if last else {}, files_read=[file.file for file in files])
    write_batch(store, done, author=author, model=None)
    return len(removed)


def _find_removed(store: Store, done: FileDone) -> Iterator[str]:
    uris = (done.file.source.uri, *done.file.former)
    previous = PreviousDocuments(d.id for uri in uris for d in list_file_documents(store, uri))
    for id_ in done.seen:
        previous.mark_seen(id_)
    return previous.list_removed()
