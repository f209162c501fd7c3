"""Add files and folders: read, split, extract, embed and write, with a bounded number of items between steps.

A batch is one transaction, and a file gets its fingerprint only with its last document. A run may therefore be stopped
at any time, by Ctrl-C or by SIGKILL, and the next run continues: unchanged files are only hashed, and documents that
are already stored are not embedded again. The result does not depend on other documents of the store, so the order of
files does not matter. The readers are in `indexing.readers`.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from waylore.indexing import pipeline
from waylore.indexing.blocks import Skipped
from waylore.indexing.files.ahead import run_ahead
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
from waylore.indexing.files.commits import Commit, find_commit_time
from waylore.indexing.files.compare import (
    LOOKUP_SIZE,
    compare_files,
    find_task_commits,
    find_vanished,
    list_file_documents,
)
from waylore.indexing.files.folders import get_size, list_paths
from waylore.indexing.files.prepare import extract_document, make_batches, split_source
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.files.task import Task
from waylore.indexing.files.write import write_batch
from waylore.indexing.secrets.sieve import Sieve, make_sieve
from waylore.protocols import Embedder, Extractor
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import get_file

BATCH_ROWS = 2_048  # a transaction ends after this many passages, entities and facts
ShowProgress = Callable[[Progress], None]


@dataclass(slots=True)
class AddRun:
    """The data that steps of a run share: files by address, files to read again, skipped files, commits and a sieve."""

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
    sizes = {path: get_size(path) for path in listed if isinstance(path, Path)}
    run.commits = find_task_commits(task, sizes)
    progress = Progress(0, len(sizes), 0, sum(sizes.values()), 0, 0, 0.0)
    report = AddReport(files=len(sizes))

    def wait() -> None:
        """Report the progress so far, so that the caller can stop the run while a long file is read."""
        show(progress)

    parts = _read_files(run, task.compute_stamp(extractor), sizes, wait)
    workers = extractor.concurrency if extractor else 1
    extracted = run_ahead(lambda part: _extract(run, extractor, part), parts, workers)
    batches = make_batches(run.files, extracted, BATCH_ROWS)
    embedded = run_ahead(lambda batch: _embed_batch(store, embedder, task.author, batch), batches, 1)
    written = run_ahead(lambda batch: _write_batch(run, embedder, batch), embedded, 1)
    with ExitStack() as stages:  # if the run stops, its threads and the reading process stop before it returns
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


def _read_files(run: AddRun, stamp: str, sizes: Mapping[Path, int], wait: Callable[[], None]) -> Generator[Part]:
    """Yield the documents of all changed files, and a `FileRead` for each file that could be opened."""
    for file in compare_files(run.store, run.task, sizes, stamp, run.skipped, run.commits):
        run.files[get_file(file.source.uri)] = file
        yield from [file] if file.is_unchanged else _read_file(run, file, wait)


def _read_file(run: AddRun, file: FileRead, wait: Callable[[], None]) -> Iterator[Part]:
    """Yield the documents of one file, then its end.

    A file with skipped parts gets an incomplete fingerprint, so that the next run reads and reports it again. The
    documents of a file that is now empty are removed.
    """
    uris = (file.source.uri, *file.former)
    previous = PreviousDocuments(d.id for uri in uris for d in list_file_documents(run.store, uri))
    skipped_before, bytes_read, is_read, is_empty = run.skipped.count, 0, False, False
    committed = find_commit_time(run.commits.get(file.source.path), file.source.path)
    for part in split_source(file.source, run.task.template, run.sieve, committed, wait):
        if isinstance(part, Skipped):
            run.skipped.add(part)
            is_empty = is_empty or part.is_empty
            continue
        if isinstance(part, BytesRead):
            bytes_read += part.size
        else:
            for id_ in (part.document.id, *file.list_former_ids(part.document.uri)):
                previous.mark_seen(id_)
            is_read = True
        yield part
    for ids in pipeline.split_into_batches(previous.list_removed() if is_read or is_empty else (), LOOKUP_SIZE):
        yield RemovedDocuments(file, ids)
    has_all = run.skipped.count == skipped_before
    fingerprint = file.fingerprint if has_all else replace(file.fingerprint, content="")
    yield replace(file, size=max(file.size - bytes_read, 0), is_read=is_read, fingerprint=fingerprint)


def _extract(run: AddRun, extractor: Extractor | None, part: Part) -> IndexedPart:
    """Index a document with its extractions, and note its file if it must be read again."""
    if not isinstance(part, ChunkedDocument):
        return part
    indexed, is_provisional = extract_document(extractor, part)
    if is_provisional:
        run.provisional.add(get_file(part.document.uri))
    return indexed


# -- batches --------------------------------------------------------------------------------------------


def _embed_batch(store: Store, embedder: Embedder | None, author: Author, batch: Batch) -> Batch:
    """Drop documents that are already stored, and embed the others."""
    changed = pipeline.find_changed(store, admit_documents(author, batch.documents))
    batch.documents = pipeline.embed_documents(changed, embedder) if embedder else changed
    return batch


def _write_batch(run: AddRun, embedder: Embedder | None, batch: Batch) -> Batch:
    model = embedder.name if embedder else None
    return write_batch(run.store, batch, author=run.task.author, model=model, provisional=run.provisional)


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
