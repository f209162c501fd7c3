"""Add files and folders: read, split, extract, embed and write, with a bounded number of items between steps.

A batch is one transaction, and a file gets its fingerprint only with its last document. A run may therefore be
stopped at any time, by Ctrl-C or by SIGKILL, and the next run continues: unchanged files are only hashed, and
documents that are stored already are not embedded again. The result does not depend on what else the store
holds, so the order in which files are added does not matter. The readers are in `indexing.readers`.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from waylore.deadline import check_each
from waylore.indexing import chunking, pipeline
from waylore.indexing.assembly import assemble_document, merge_extractions
from waylore.indexing.blocks import Reading, Skipped
from waylore.indexing.extractors.definitions import apply_definitions
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.extractors.structure import extract_declared
from waylore.indexing.files.addresses import Fingerprint
from waylore.indexing.files.batches import (
    Batch,
    BytesRead,
    ChunkedDocument,
    FileRead,
    IndexedPart,
    Part,
    PreviousDocuments,
    RemovedDocuments,
    SkippedFiles,
)
from waylore.indexing.files.commits import Commit, find_commits
from waylore.indexing.files.compare import LOOKUP_SIZE, compare_files, find_vanished, list_file_documents
from waylore.indexing.files.event_time import find_event_time
from waylore.indexing.files.folders import list_paths
from waylore.indexing.files.formats import read_source
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.files.task import Task
from waylore.indexing.secrets.readings import clean_reading
from waylore.indexing.secrets.sieve import Sieve, make_sieve
from waylore.protocols import Embedder, Extraction, Extractor
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import document_id, get_file
from waylore.types.knowledge import Document, IndexedDocument

BATCH_ROWS = 2_048  # a transaction ends after this many passages, entities and facts
BATCH_CHARACTERS = 4_000_000  # or after this many characters of texts and metadata
T = TypeVar("T")
R = TypeVar("R")
ShowProgress = Callable[[Progress], None]


@dataclass(slots=True)
class AddRun:
    """What the steps of a run share: files by address, those to read again, skipped ones, last commits and a sieve."""

    store: Store
    task: Task
    commits: Mapping[Path, Commit] = field(default_factory=dict)
    files: dict[str, FileRead] = field(default_factory=dict)
    provisional: set[str] = field(default_factory=set)
    skipped: SkippedFiles = field(default_factory=SkippedFiles)
    sieve: Sieve = field(init=False)

    def __post_init__(self) -> None:
        self.sieve = make_sieve(self.task.scrub)


def add_files(
    store: Store, embedder: Embedder | None, extractor: Extractor | None, task: Task, show: ShowProgress
) -> AddReport:
    """Add new and changed files under a path. With `task.prune`, forget documents of files that vanished."""
    began = time.monotonic()
    run = AddRun(store, task)
    listed = list(list_paths(task.path, root=task.folder))
    for path, reason in (found for found in listed if isinstance(found, tuple)):
        run.skipped.add(Skipped(task.make_address(path).uri, reason))
    sizes = {path: _get_size(path) for path in listed if isinstance(path, Path)}
    run.commits = _find_commits(task, sizes)
    progress = Progress(0, len(sizes), 0, sum(sizes.values()), 0, 0, 0.0)
    report = AddReport(files=len(sizes))

    def wait() -> None:
        """Report the progress so far, so that the caller can stop the run while a long file is read."""
        show(progress)

    parts = _read_files(run, task.compute_stamp(extractor), sizes, wait)
    workers = extractor.concurrency if extractor else 1
    extracted = _run_ahead(lambda part: _extract(run, extractor, part), parts, workers)
    batches = _make_batches(run, extracted)
    embedded = _run_ahead(lambda batch: _embed_batch(store, embedder, task.author, batch), batches, 1)
    written = _run_ahead(lambda batch: _write_batch(run, embedder, batch), embedded, 1)
    with ExitStack() as stages:  # if the run stops, so do its threads and the process that reads, before it returns
        for stage in (parts, extracted, batches, embedded, written):
            stages.enter_context(closing(stage))
        for batch in written:
            report = _add_to_report(report, batch)
            progress = _advance(progress, batch, report, time.monotonic() - began)
            show(progress)
    existing = [found[0] if isinstance(found, tuple) else found for found in listed]
    vanished = list(find_vanished(store, task, existing)) if task.prune else []
    for ids in pipeline.split_into_batches(vanished, LOOKUP_SIZE):
        store.forget(ids, author=task.author)
    return replace(
        report,
        forgotten=report.forgotten + len(vanished),
        skipped_count=run.skipped.count,
        skipped=tuple(run.skipped.reported),
        seconds=time.monotonic() - began,
        left_out=run.sieve.left_out,
    )


# -- reading --------------------------------------------------------------------------------------------


def _find_commits(task: Task, files: Mapping[Path, int]) -> Mapping[Path, Commit]:
    """Return the last commits of the files; an uploaded file has none."""
    return {} if task.uri else find_commits(task.path if task.path.is_dir() else task.path.parent, files)


def _read_files(run: AddRun, stamp: str, sizes: Mapping[Path, int], wait: Callable[[], None]) -> Generator[Part]:
    """Yield the documents of all files that changed, and a `FileRead` for each file that could be opened."""
    for file in compare_files(run.store, run.task, sizes, stamp, run.skipped, run.commits):
        run.files[get_file(file.source.uri)] = file
        yield from [file] if file.is_unchanged else _read_file(run, file, wait)


def _read_file(run: AddRun, file: FileRead, wait: Callable[[], None]) -> Iterator[Part]:
    """Yield the documents of one file, then its end.

    A file with skipped parts gets an incomplete fingerprint, so that the next run reads and reports it again. The
    documents of a file that was emptied are removed.
    """
    uris = (file.source.uri, *file.former)
    previous = PreviousDocuments(d.id for uri in uris for d in list_file_documents(run.store, uri))
    skipped_before, bytes_read, is_read, is_empty = run.skipped.count, 0, False, False
    committed = _find_commit_time(run, file.source.path)
    for found in check_each(read_source(file.source, wait)):
        if isinstance(found, Skipped):
            run.skipped.add(found)
            is_empty = is_empty or found.is_empty
            continue
        reading, clean = clean_reading(found, run.sieve)
        document = _make_document(run.task.template, reading, committed)
        for id_ in (document.id, *file.list_former_ids(document.uri)):
            previous.mark_seen(id_)
        is_read = True
        passages = chunking.split_into_passages(reading, document)
        yield ChunkedDocument(document, passages, extract_declared(reading, document, passages), reading, clean)
        if reading.bytes_read > bytes_read:
            yield BytesRead(reading.bytes_read - bytes_read)
            bytes_read = reading.bytes_read
    for ids in pipeline.split_into_batches(previous.list_removed() if is_read or is_empty else (), LOOKUP_SIZE):
        yield RemovedDocuments(file, ids)
    has_all = run.skipped.count == skipped_before
    fingerprint = file.fingerprint if has_all else replace(file.fingerprint, content="")
    yield replace(file, size=max(file.size - bytes_read, 0), is_read=is_read, fingerprint=fingerprint)


def _find_commit_time(run: AddRun, path: Path) -> datetime | None:
    """Return when the content of a file was committed."""
    commit = run.commits.get(path)
    with suppress(OSError):  # the reader reports it
        return commit.at if commit and commit.holds_for(path) else None
    return None


def _make_document(template: Document, reading: Reading, committed: datetime | None) -> Document:
    metadata = {**reading.metadata, **template.metadata}
    at, id_ = find_event_time(reading) or committed, document_id(uri=reading.uri)
    return replace(template, id=id_, uri=reading.uri, title=reading.title, metadata=metadata, at=at)


def _extract(run: AddRun, extractor: Extractor | None, part: Part) -> IndexedPart:
    """Index a document with its extractions, and note its file if it must be read again."""
    if not isinstance(part, ChunkedDocument):
        return part
    if extractor is None:
        return _assemble(part, [Extraction() for _ in part.passages])
    if isinstance(extractor, RuleExtractor):  # it reads the marks of the author too
        extracted = extractor.extract_reading(part.reading, part.document, part.passages)
    else:
        extracted = extractor.extract(part.document, part.passages)
    if any(extraction.provisional for extraction in extracted):
        run.provisional.add(get_file(part.document.uri))
    merged = list(map(merge_extractions, part.declared, extracted))
    return _assemble(part, apply_definitions(part.document, part.passages, merged))


def _assemble(part: ChunkedDocument, extractions: Sequence[Extraction]) -> IndexedDocument:
    """Index a document; its passages have their offsets in the file."""
    indexed = assemble_document(part.document, part.passages, extractions)
    return part.clean.restore_offsets(indexed, part.reading.start)


# -- batches --------------------------------------------------------------------------------------------


def _make_batches(run: AddRun, parts: Iterable[IndexedPart]) -> Generator[Batch]:
    batch, size, length = Batch(), 0, 0
    for part in parts:
        if isinstance(part, BytesRead):
            batch.bytes += part.size
        elif isinstance(part, RemovedDocuments):
            batch.removed += part.ids
            batch.begun[part.file.source.uri] = part.file
            size += len(part.ids)
        elif isinstance(part, FileRead):
            batch.files_read.append(part)
            batch.bytes += part.size
            size += 1
        else:
            file = run.files[get_file(part.document.uri)]
            batch.begun[file.source.uri] = file
            batch.documents.append(part)
            batch.moved += file.list_former_ids(part.document.uri)
            size += sum(1 for _ in part.parts)
            length += _count_characters(part)
        if size >= BATCH_ROWS or length >= BATCH_CHARACTERS:
            yield batch
            batch, size, length = Batch(), 0, 0
    yield batch


def _count_characters(part: IndexedDocument) -> int:
    """Return the characters of passages and metadata; a row of a table may consist of metadata only."""
    metadata = sum(len(str(value)) for value in part.document.metadata.values())
    return metadata + sum(len(passage.text) for passage in part.passages)


def _embed_batch(store: Store, embedder: Embedder | None, author: Author, batch: Batch) -> Batch:
    """Drop documents that are stored already, and embed the others."""
    changed = pipeline.find_changed(store, admit_documents(author, batch.documents))
    batch.documents = pipeline.embed_documents(changed, embedder) if embedder else changed
    return batch


def _write_batch(run: AddRun, embedder: Embedder | None, batch: Batch) -> Batch:
    """Write new documents, removed documents and fingerprints in one transaction.

    A file that is not read to its end yet, or must be read again, gets an incomplete fingerprint.
    """
    complete = [file for file in batch.files_read if file.is_read and not file.is_unchanged]
    fingerprints = {uri: file.make_unfinished() for uri, file in batch.begun.items()}
    fingerprints |= {file.source.uri: _finish(run, file) for file in complete}
    if fingerprints:
        batch.written = run.store.write(
            batch.documents,
            author=run.task.author,
            model=embedder.name if embedder else None,
            fingerprints={uri: str(fingerprint) for uri, fingerprint in fingerprints.items()},
            replacing=[*batch.removed, *batch.moved],
        )
        batch.forgotten = len(batch.removed)
    return batch


def _finish(run: AddRun, file: FileRead) -> Fingerprint:
    """Return the fingerprint of a file whose documents are all written."""
    is_final = get_file(file.source.uri) not in run.provisional
    return file.fingerprint if is_final else replace(file.fingerprint, content="")


def _add_to_report(report: AddReport, batch: Batch) -> AddReport:
    return replace(
        report,
        unchanged=report.unchanged + sum(file.is_unchanged for file in batch.files_read),
        documents=report.documents + batch.written,
        passages=report.passages + sum(len(d.passages) for d in batch.documents),
        facts=report.facts + len({fact.id for d in batch.documents for fact in d.facts if fact.is_typed}),
        forgotten=report.forgotten + batch.forgotten,
    )


def _advance(progress: Progress, batch: Batch, report: AddReport, seconds: float) -> Progress:
    return replace(
        progress,
        files=progress.files + len(batch.files_read),
        bytes=progress.bytes + batch.bytes,
        passages=report.passages,
        facts=report.facts,
        seconds=seconds,
    )


# -- running ahead --------------------------------------------------------------------------------------


def _run_ahead(function: Callable[[T], R], items: Iterable[T], workers: int) -> Generator[R]:
    """Yield results in order, with up to `workers` items in work and as many results ahead of the consumer."""
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


def _get_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
