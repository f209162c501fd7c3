"""The two steps of a load: prepare a unit of files, anywhere and without a store, and write its batches.

Both use the functions of `waylore add` (`files.prepare`, `files.write`). A unit gives the same batches each time, and
writing a batch twice changes nothing. So a process may be killed at any time and its unit be given to another process.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from waylore.indexing import pipeline
from waylore.indexing.blocks import Skipped, describe_open_error
from waylore.indexing.files.add import BATCH_ROWS
from waylore.indexing.files.ahead import run_ahead
from waylore.indexing.files.batches import Batch, BytesRead, ChunkedDocument, FileRead, IndexedPart, SkippedFiles
from waylore.indexing.files.commits import find_commit_time
from waylore.indexing.files.compare import compare_file
from waylore.indexing.files.prepare import extract_document, make_batches, split_source
from waylore.indexing.files.write import write_batch
from waylore.indexing.loading.job import (
    LoadJob,
    LoadModels,
    Piece,
    PieceDone,
    PreparedBatch,
    Unit,
    UnitDone,
    WrittenBatch,
    get_unit_id,
)
from waylore.indexing.loading.sources import fetch
from waylore.indexing.secrets.sieve import Sieve, make_sieve
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import get_file
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import add_counts


@dataclass(slots=True)
class PieceTally:
    """The results of preparing a piece so far."""

    piece: Piece
    file: FileRead | None = None
    seen: list[str] = field(default_factory=list)
    skipped: SkippedFiles = field(default_factory=SkippedFiles)
    is_read: bool = False
    is_empty: bool = False
    is_provisional: bool = False
    is_finished: bool = False
    batches: set[int] = field(default_factory=set)

    @property
    def has_all(self) -> bool:
        """Whether the file need not be read again."""
        return not self.skipped.count and not self.is_provisional

    @property
    def is_whole(self) -> bool:
        """Whether the piece is a file, not a part of one."""
        return self.piece.is_last and not self.piece.number

    def skip(self, skipped: Skipped) -> None:
        """Note a part that is skipped."""
        self.skipped.add(skipped)
        self.is_empty = self.is_empty or skipped.is_empty


# -- prepare --------------------------------------------------------------------------------------------


def prepare_unit(unit: Unit, job: LoadJob, models: LoadModels) -> Iterator[PreparedBatch | UnitDone]:
    """Read, split, extract and embed the files of a unit; yield batches to write, then the end of the unit."""
    id_, sieve = get_unit_id(unit), make_sieve(job.task.scrub)
    tallies = [PieceTally(piece) for piece in unit]
    files: dict[str, FileRead] = {}
    parts = _prepare_pieces(tallies, job, models, sieve, files)
    number = 0
    for collection, batch in _make_batches(parts, files, job):
        if not job.are_empty or len(job.collections) > 1:
            batch.files_read = []  # documents in other units decide when the file is complete
        _finish_files(batch, number, tallies)
        changed = [each for each in batch.documents if not job.stored.has(each)]
        batch.documents = pipeline.embed_documents(changed, models.embedder) if models.embedder else changed
        if batch.documents or batch.files_read or batch.moved:
            model = models.embedder.name if models.embedder else None
            yield PreparedBatch(id_, number, collection, model, batch)
            number += 1
    done = tuple(_describe(tally, with_ids=not job.are_empty) for tally in tallies)
    yield UnitDone(id_, number, done, add_counts([sieve.left_out]))


def _prepare_pieces(
    tallies: Iterable[PieceTally], job: LoadJob, models: LoadModels, sieve: Sieve, files: dict[str, FileRead]
) -> Iterator[IndexedPart]:
    for tally in tallies:
        for skipped in tally.piece.skipped:
            tally.skip(skipped)
        try:
            with fetch(tally.piece) as path:
                yield from _prepare_piece(tally, path, job, models, sieve, files)
        except OSError as error:
            tally.skip(Skipped(tally.piece.key, describe_open_error(error)))


def _prepare_piece(
    tally: PieceTally, path: Path, job: LoadJob, models: LoadModels, sieve: Sieve, files: dict[str, FileRead]
) -> Iterator[IndexedPart]:
    """Yield the documents of a piece, then its file if it is whole."""
    piece = tally.piece
    file = piece.read or compare_file(replace(piece.file, path=path), job.task, job.stamp)
    file = replace(file, source=replace(file.source, path=path, first_row=piece.first_row))
    tally.file = files[get_file(file.source.uri)] = file
    if file.is_unchanged or (piece.skipped and not piece.content):
        return
    committed = find_commit_time(piece.file.commit, piece.file.path if piece.content else path)
    found = split_source(file.source, job.task.template, sieve, committed, lambda: None)
    for indexed, is_provisional in _extract(_keep_documents(found, tally), models):
        tally.is_provisional |= is_provisional
        former = file.list_former_ids(indexed.document.uri) if len(job.collections) == 1 else []  # else in other units
        tally.seen += [indexed.document.id, *former]
        tally.is_read = True
        yield from admit_documents(job.task.author, [indexed])
    if tally.is_whole and tally.is_read and tally.has_all:
        yield replace(file, is_read=True)


def _keep_documents(
    found: Iterable[ChunkedDocument | BytesRead | Skipped], tally: PieceTally
) -> Iterator[ChunkedDocument]:
    for part in found:
        if isinstance(part, Skipped):
            tally.skip(part)
        elif isinstance(part, ChunkedDocument):
            yield part


def _extract(parts: Iterator[ChunkedDocument], models: LoadModels) -> Iterator[tuple[IndexedDocument, bool]]:
    extractor = models.extractor
    if extractor is None or extractor.concurrency == 1:
        return (extract_document(extractor, part) for part in parts)
    return run_ahead(lambda part: extract_document(extractor, part), parts, extractor.concurrency)


def _make_batches(
    parts: Iterable[IndexedPart], files: dict[str, FileRead], job: LoadJob
) -> Iterator[tuple[int, Batch]]:
    """Yield batches with the number of their collection."""
    if len(job.collections) == 1:
        yield from ((0, batch) for batch in make_batches(files, parts, BATCH_ROWS))
        return
    for batch in make_batches(files, parts, BATCH_ROWS * len(job.collections)):
        own: dict[int, list[IndexedDocument]] = defaultdict(list)
        for document in batch.documents:
            own[job.choose_collection(document.document.id)].append(document)
        yield from ((collection, _make_batch(files, own[collection])) for collection in sorted(own))


def _make_batch(files: dict[str, FileRead], documents: list[IndexedDocument]) -> Batch:
    """Return a batch of some documents."""
    begun = {get_file(each.document.uri): files[get_file(each.document.uri)] for each in documents}
    moved = [id_ for each in documents for id_ in begun[get_file(each.document.uri)].list_former_ids(each.document.uri)]
    return Batch(documents=documents, moved=moved, begun=begun)


def _finish_files(batch: Batch, number: int, tallies: Iterable[PieceTally]) -> None:
    """Keep only files in a batch that have all documents in it, because batches are written in any order."""
    ends = {file.source.uri for file in batch.files_read}
    for tally in tallies:
        uri = tally.file.source.uri if tally.file else ""
        if uri in batch.begun:
            tally.batches.add(number)
        tally.is_finished = tally.is_finished or (uri in ends and tally.batches == {number})
    done = {tally.file.source.uri for tally in tallies if tally.file and tally.is_finished}
    batch.files_read = [file for file in batch.files_read if file.source.uri in done]


def _describe(tally: PieceTally, *, with_ids: bool) -> PieceDone:
    piece = tally.piece
    return PieceDone(
        key=piece.key,
        number=piece.number,
        is_last=piece.is_last,
        size=piece.size,
        file_size=piece.file.size,
        file=tally.file,
        is_read=tally.is_read,
        is_empty=tally.is_empty,
        has_all=tally.has_all,
        is_finished=tally.is_finished,
        seen=tuple(tally.seen) if with_ids else (),
        skipped=tuple(tally.skipped.reported),
        skipped_count=tally.skipped.count,
    )


# -- write ----------------------------------------------------------------------------------------------


def write_prepared(store: Store, prepared: PreparedBatch, author: Author) -> WrittenBatch:
    """Write a prepared batch in one transaction. Writing it again changes nothing."""
    batch = write_batch(store, prepared.batch, author=author, model=prepared.model)
    return WrittenBatch(
        prepared.unit,
        prepared.number,
        documents=batch.written,
        passages=sum(len(each.passages) for each in batch.documents),
        facts=len({fact.id for each in batch.documents for fact in each.facts if fact.is_typed}),
    )
