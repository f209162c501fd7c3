"""Add files and folders: read, split, extract, embed and write, with a bounded number of items between steps.

A batch is one transaction, and a file gets its fingerprint only with its last document. A run may therefore be
stopped at any time, by Ctrl-C or by SIGKILL, and the next run continues: unchanged files are only hashed, and
documents that are stored already are not embedded again. The result does not depend on what else the store
holds, so the order in which files are added does not matter. The readers are in `indexing.readers`.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from waylore.indexing import chunking, pipeline
from waylore.indexing.assembly import assemble_document, merge_extractions
from waylore.indexing.blocks import Limits, Reading, Skipped, Source, describe_open_error
from waylore.indexing.extractors.definitions import apply_definitions
from waylore.indexing.extractors.structure import extract_declared
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
from waylore.indexing.files.formats import list_sources, make_address, read_source
from waylore.indexing.files.progress import AddReport, Progress
from waylore.protocols import Embedder, Extraction, Extractor
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import document_id, get_file, identity
from waylore.types.knowledge import Document, IndexedDocument

READING_VERSION = "1"  # change it when reading or splitting changes, and every file is read again
BATCH_ROWS = 2_048  # a transaction ends after this many passages, entities and facts
BATCH_CHARACTERS = 4_000_000  # or after this many characters of texts and metadata
LOOKUP_SIZE = 256  # documents or fingerprints in one query
UPLOAD_PLACE = "sent"  # place of uploaded files; stored in fingerprints, so the value stays
T = TypeVar("T")
R = TypeVar("R")
ShowProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A path to add; `template` has the labels, source and metadata of all its documents.

    `uri` is the address of a single file whose path has no meaning, such as an uploaded one.
    """

    path: Path
    root: Path | None
    template: Document
    author: Author
    limits: Limits = field(default_factory=Limits)
    prune: bool = False
    uri: str = ""

    @property
    def place(self) -> str:
        """An id of the folder in which addresses begin; pruning removes only documents of the same place."""
        if self.uri:
            return UPLOAD_PLACE
        base = self.root or (Path(self.path.anchor) if self.path.is_absolute() else Path())
        return identity("place", str(base.resolve()))[:8]

    def compute_stamp(self, extractor: Extractor | None) -> str:
        """Return an id of all that affects the result of adding a file, apart from its bytes."""
        common = [sorted(self.template.labels), self.template.source, dict(self.template.metadata)]
        name = extractor.name if extractor else ""
        return identity("stamp", READING_VERSION, name, json.dumps(common, sort_keys=True, default=list))


def add_files(
    store: Store, embedder: Embedder | None, extractor: Extractor | None, task: Task, show: ShowProgress
) -> AddReport:
    """Add new and changed files under a path. With `task.prune`, forget documents of files that vanished."""
    began = time.monotonic()
    found = list(_list_sources(task))
    skipped = SkippedFiles()
    for item in (f for f in found if isinstance(f, Skipped)):
        skipped.add(item)
    files = [f for f in found if isinstance(f, Source)]
    sizes = {f.uri: _get_size(f.path) for f in files}
    progress = Progress(0, len(files), 0, sum(sizes.values()), 0, 0, 0.0)
    report = AddReport(files=len(files))

    place = task.place

    def wait() -> None:
        """Report the progress so far, so that the caller can stop the run while a long file is read."""
        show(progress)

    parts = _read_files(store, task.template, place, task.compute_stamp(extractor), files, sizes, skipped, wait)
    workers = extractor.concurrency if extractor else 1
    provisional: set[str] = set()
    batches = _make_batches(_run_ahead(lambda part: _extract(part, extractor, provisional), parts, workers))
    embedded = _run_ahead(lambda batch: _embed_batch(store, embedder, task.author, batch), batches, 1)
    write = partial(_write_batch, store, embedder, task, provisional)
    with closing(parts):  # if the run stops, so does the process that reads
        for batch in _run_ahead(write, embedded, 1):
            report = _add_to_report(report, batch)
            progress = _advance(progress, batch, report, time.monotonic() - began)
            show(progress)
    vanished = _find_vanished(store, task, place, {f.uri for f in found}) if task.prune else []
    for ids in pipeline.split_into_batches(vanished, LOOKUP_SIZE):
        store.forget(ids, author=task.author)
    return replace(
        report,
        forgotten=report.forgotten + len(vanished),
        skipped_count=skipped.count,
        skipped=tuple(skipped.reported),
        seconds=time.monotonic() - began,
    )


# -- reading --------------------------------------------------------------------------------------------


def _read_files(
    store: Store,
    template: Document,
    place: str,
    stamp: str,
    files: Sequence[Source],
    sizes: dict[str, int],
    skipped: SkippedFiles,
    wait: Callable[[], None],
) -> Generator[Part]:
    """Yield the documents of all files that changed, and a `FileRead` for each file that could be opened."""
    for batch in pipeline.split_into_batches(files, LOOKUP_SIZE):
        known = store.fingerprints([source.uri for source in batch])
        for source in batch:
            try:
                fingerprint = f"{place}:{identity('file', stamp, _hash_content(source.path))}"
            except OSError as error:
                skipped.add(Skipped(source.uri, describe_open_error(error)))
                continue
            file = FileRead(source, sizes[source.uri], fingerprint, is_unchanged=True)
            if known.get(source.uri) == fingerprint:
                yield file
            else:
                yield from _read_file(store, template, place, file, skipped, wait)


def _read_file(
    store: Store, template: Document, place: str, file: FileRead, skipped: SkippedFiles, wait: Callable[[], None]
) -> Iterator[Part]:
    """Yield the documents of one file, then its end.

    A file with skipped parts gets an incomplete fingerprint, so that the next run reads and reports it again.
    """
    previous = PreviousDocuments(document.id for document in _list_file_documents(store, file.source.uri))
    skipped_before, bytes_read, is_read = skipped.count, 0, False
    for reading in read_source(file.source, wait):
        if isinstance(reading, Skipped):
            skipped.add(reading)
            continue
        document = _make_document(template, reading)
        previous.mark_seen(document.id)
        is_read = True
        passages = chunking.split_into_passages(reading, document)
        yield ChunkedDocument(document, passages, extract_declared(reading, document, passages))
        if reading.bytes_read > bytes_read:
            yield BytesRead(reading.bytes_read - bytes_read)
            bytes_read = reading.bytes_read
    if is_read:
        yield from map(RemovedDocuments, pipeline.split_into_batches(previous.list_removed(), LOOKUP_SIZE))
    fingerprint = file.fingerprint if skipped.count == skipped_before else f"{place}:"
    size = max(file.size - bytes_read, 0)
    yield replace(file, size=size, is_unchanged=False, fingerprint=fingerprint if is_read else "")


def _list_sources(task: Task) -> Iterable[Source | Skipped]:
    if task.uri:
        return [Source(task.path, task.uri, task.limits)]
    return list_sources(task.path, root=task.root, limits=task.limits)


def _make_document(template: Document, reading: Reading) -> Document:
    metadata = {**reading.metadata, **template.metadata}
    id_ = document_id(uri=reading.uri)
    return replace(template, id=id_, uri=reading.uri, title=reading.title, metadata=metadata)


def _list_file_documents(store: Store, file: str) -> Iterator[Document]:
    own = store.list_documents(under=file, limit=1)
    return chain((d for d in own if d.uri == file), _list_documents(store, f"{file}#"))


def _list_documents(store: Store, under: str) -> Iterator[Document]:
    after = ("", "")
    while page := store.list_documents(under=under, after=after, limit=LOOKUP_SIZE):
        yield from page
        after = (page[-1].uri, page[-1].id)


def _find_vanished(store: Store, task: Task, place: str, seen: set[str]) -> list[str]:
    """Return the ids of documents whose files were added from this place and no longer exist."""
    top = make_address(task.path, task.root)
    under = "" if top == "." else f"{top}/"
    vanished: list[str] = []
    for batch in pipeline.split_into_batches(_list_documents(store, under), LOOKUP_SIZE):
        files = {d.id: get_file(d.uri) for d in batch}
        known = store.fingerprints(sorted(set(files.values()) - seen))
        vanished += [id_ for id_, file in files.items() if known.get(file, "").startswith(f"{place}:")]
    return vanished


def _extract(part: Part, extractor: Extractor | None, provisional: set[str]) -> IndexedPart:
    """Index a document with its extractions, and add its file to `provisional` if it must be read again."""
    if not isinstance(part, ChunkedDocument):
        return part
    if extractor is None:
        return assemble_document(part.document, part.passages, [Extraction() for _ in part.passages])
    extracted = extractor.extract(part.document, part.passages)
    if any(extraction.provisional for extraction in extracted):
        provisional.add(get_file(part.document.uri))
    merged = list(map(merge_extractions, part.declared, extracted))
    return assemble_document(part.document, part.passages, apply_definitions(part.document, part.passages, merged))


# -- batches --------------------------------------------------------------------------------------------


def _make_batches(parts: Iterable[IndexedPart]) -> Iterator[Batch]:
    batch, size, length = Batch(), 0, 0
    for part in parts:
        if isinstance(part, BytesRead):
            batch.bytes += part.size
        elif isinstance(part, RemovedDocuments):
            batch.removed += part.ids
            size += len(part.ids)
        elif isinstance(part, FileRead):
            batch.files_read.append(part)
            batch.bytes += part.size
            size += 1
        else:
            batch.documents.append(part)
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


def _write_batch(store: Store, embedder: Embedder | None, task: Task, provisional: set[str], batch: Batch) -> Batch:
    """Write new documents, removed documents and fingerprints in one transaction.

    A file that is not read to its end yet, or must be read again, gets an incomplete fingerprint.
    """
    fingerprints = {get_file(d.document.uri): f"{task.place}:" for d in batch.documents}
    complete = [file for file in batch.files_read if file.fingerprint and not file.is_unchanged]
    fingerprints |= {f.source.uri: f.fingerprint for f in complete if f.source.uri not in provisional}
    if batch.documents or batch.removed or fingerprints:
        model = embedder.name if embedder else None
        batch.written = store.write(
            batch.documents, author=task.author, model=model, fingerprints=fingerprints, replacing=batch.removed
        )
        batch.forgotten = len(batch.removed)
    return batch


def _add_to_report(report: AddReport, batch: Batch) -> AddReport:
    return replace(
        report,
        unchanged=report.unchanged + sum(file.is_unchanged for file in batch.files_read),
        documents=report.documents + batch.written,
        passages=report.passages + sum(len(d.passages) for d in batch.documents),
        facts=report.facts + sum(len(d.facts) for d in batch.documents),
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


def _run_ahead(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
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


def _hash_content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _get_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
