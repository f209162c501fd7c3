"""Adds files and folders: read, cut, extract, embed and write, each step ahead of the next by a bounded amount.

What is written is whole: a batch is one transaction, and a file is known as read only when all of it is there.
So a run may be stopped at any moment, by Ctrl-C or by SIGKILL, and the next one goes on: files that did not
change cost a hash, documents that are there already are not embedded again. Nothing here depends on what else
the store holds, so the order of adding does not matter.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from waylore.indexing import chunking, pipeline
from waylore.indexing.assembly import assembled, together
from waylore.indexing.blocks import Limits, Reading, Refusal, Source, unopened
from waylore.indexing.extractors.definitions import resolved
from waylore.indexing.extractors.structure import declared
from waylore.indexing.files.batches import Batch, Cut, End, Former, Further, Gone, Refusals
from waylore.indexing.files.formats import address, readings, sources
from waylore.indexing.files.progress import Added, Progress
from waylore.protocols import Embedder, Extraction, Extractor
from waylore.store.protocol import Store
from waylore.types.identity import document_id, file_of, identity
from waylore.types.knowledge import Contribution, Document

VERSION = "1"  # of reading and cutting: a new one reads every file again
PARTS = 2_048  # passages, entities and facts that one transaction writes, about
CHARACTERS = 4_000_000  # of texts and metadata that one transaction writes, about
WINDOW = 256  # files whose fingerprints are looked up at once
SENT = "sent"  # the place of files that were sent here under an address
T = TypeVar("T")
R = TypeVar("R")
Show = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be added, and how: `frame` is what all documents have in common.

    `uri` is the address of a file that lies where it lies by chance, as one that was sent here does.
    """

    path: Path
    root: Path | None
    frame: Document
    limits: Limits = field(default_factory=Limits)
    prune: bool = False
    uri: str = ""

    @property
    def place(self) -> str:
        """Where addresses begin: files of one place do not vanish because another place is added."""
        if self.uri:
            return SENT
        base = self.root or (Path(self.path.anchor) if self.path.is_absolute() else Path())
        return identity("place", str(base.resolve()))[:8]

    def stamp(self, extractor: Extractor | None) -> str:
        """What decides, beside a file's bytes, whether adding it again could change anything."""
        frame = [sorted(self.frame.labels), self.frame.source, dict(self.frame.metadata)]
        name = extractor.name if extractor else ""
        return identity("stamp", VERSION, name, json.dumps(frame, sort_keys=True, default=list))


def add_files(
    store: Store, embedder: Embedder | None, extractor: Extractor | None, task: Task, show: Show
) -> Added:
    """Add what is new or changed under a path; forget what vanished from it, if asked to."""
    began = time.monotonic()
    found = list(_sources(task))
    refusals = Refusals()
    for refusal in (f for f in found if isinstance(f, Refusal)):
        refusals.add(refusal)
    files = [f for f in found if isinstance(f, Source)]
    sizes = {f.uri: _size(f.path) for f in files}
    told = Progress(0, len(files), 0, sum(sizes.values()), 0, 0, 0.0)
    added = Added(files=len(files))

    place = task.place
    cuts = _cut(store, task.frame, place, task.stamp(extractor), files, sizes, refusals)
    at_once = extractor.concurrency if extractor else 1
    provisional: set[str] = set()
    batches = _batches(_ahead(lambda part: _extracted(part, extractor, provisional), cuts, at_once))
    embedded = _ahead(lambda batch: _embedded(store, embedder, batch), batches, 1)
    for batch in _ahead(lambda batch: _written(store, embedder, place, provisional, batch), embedded, 1):
        added = _with(added, batch)
        told = _further(told, batch, added, time.monotonic() - began)
        show(told)
    gone = _vanished(store, task, place, {f.uri for f in found}) if task.prune else []
    for few in pipeline.batches(gone, WINDOW):
        store.forget(few)
    return replace(
        added,
        forgotten=added.forgotten + len(gone),
        refused=refusals.count,
        refusals=tuple(refusals.shown),
        seconds=time.monotonic() - began,
    )


# -- reading --------------------------------------------------------------------------------------------


def _cut(
    store: Store,
    frame: Document,
    place: str,
    stamp: str,
    files: Sequence[Source],
    sizes: dict[str, int],
    refusals: Refusals,
) -> Iterator[Cut | Further | Gone | End]:
    """The documents of all files that changed, and the end of every file that could be read."""
    for few in pipeline.batches(files, WINDOW):
        known = store.fingerprints([source.uri for source in few])
        for source in few:
            try:
                now = f"{place}:{identity('file', stamp, _content(source.path))}"
            except OSError as error:
                refusals.add(Refusal(source.uri, unopened(error)))
                continue
            end = End(source, sizes[source.uri], now, unchanged=True)
            if known.get(source.uri) == now:
                yield end
            else:
                yield from _file(store, frame, place, end, refusals)


def _file(
    store: Store, frame: Document, place: str, end: End, refusals: Refusals
) -> Iterator[Cut | Further | Gone | End]:
    """The documents of one file; one with refusals is not taken as known, so that they are told again."""
    before = Former(document.id for document in _documents_of(store, end.source.uri))
    refused, reached, is_read = refusals.count, 0, False
    for read in readings(end.source):
        if isinstance(read, Refusal):
            refusals.add(read)
            continue
        document = _document(frame, read)
        before.see(document.id)
        is_read = True
        passages = chunking.passages(read, document)
        yield Cut(document, passages, declared(read, document, passages))
        if read.reached > reached:
            yield Further(read.reached - reached)
            reached = read.reached
    if is_read:
        yield from map(Gone, pipeline.batches(before.gone(), WINDOW))
    fingerprint = end.fingerprint if refusals.count == refused else f"{place}:"
    size = max(end.size - reached, 0)
    yield replace(end, size=size, unchanged=False, fingerprint=fingerprint if is_read else "")


def _sources(task: Task) -> Iterable[Source | Refusal]:
    if task.uri:
        return [Source(task.path, task.uri, task.limits)]
    return sources(task.path, root=task.root, limits=task.limits)


def _document(frame: Document, read: Reading) -> Document:
    metadata = {**read.metadata, **frame.metadata}
    return replace(frame, id=document_id(uri=read.uri), uri=read.uri, title=read.title, metadata=metadata)


def _documents_of(store: Store, file: str) -> Iterator[Document]:
    own = store.listed(under=file, limit=1)
    return chain((d for d in own if d.uri == file), _listed(store, f"{file}#"))


def _listed(store: Store, under: str) -> Iterator[Document]:
    after = ("", "")
    while page := store.listed(under=under, after=after, limit=WINDOW):
        yield from page
        after = (page[-1].uri, page[-1].id)


def _vanished(store: Store, task: Task, place: str, seen: set[str]) -> list[str]:
    """Documents of files that were read from here once and are here no more."""
    top = address(task.path, task.root)
    under = "" if top == "." else f"{top}/"
    gone: list[str] = []
    for few in pipeline.batches(_listed(store, under), WINDOW):
        files = {d.id: file_of(d.uri) for d in few}
        known = store.fingerprints(sorted(set(files.values()) - seen))
        gone += [id_ for id_, file in files.items() if known.get(file, "").startswith(f"{place}:")]
    return gone


def _extracted(
    part: Cut | Further | Gone | End, extractor: Extractor | None, provisional: set[str]
) -> Contribution | Further | Gone | End:
    """A document with what it declares and what it says; notes the files that are to be read again."""
    if not isinstance(part, Cut):
        return part
    if extractor is None:
        return assembled(part.document, part.passages, [Extraction() for _ in part.passages])
    read = extractor.extract(part.document, part.passages)
    if any(said.provisional for said in read):
        provisional.add(file_of(part.document.uri))
    said = list(map(together, part.declared, read))
    return assembled(part.document, part.passages, resolved(part.document, part.passages, said))


# -- batches --------------------------------------------------------------------------------------------


def _batches(parts: Iterable[Contribution | Further | Gone | End]) -> Iterator[Batch]:
    batch, size, length = Batch(), 0, 0
    for part in parts:
        if isinstance(part, Further):
            batch.bytes += part.size
        elif isinstance(part, Gone):
            batch.gone += part.ids
            size += len(part.ids)
        elif isinstance(part, End):
            batch.ends.append(part)
            batch.bytes += part.size
            size += 1
        else:
            batch.contributions.append(part)
            size += sum(1 for _ in part.parts)
            length += _length(part)
        if size >= PARTS or length >= CHARACTERS:
            yield batch
            batch, size, length = Batch(), 0, 0
    yield batch


def _length(part: Contribution) -> int:
    """Characters of what may be long: a row of a table may be all metadata."""
    told = sum(len(str(value)) for value in part.document.metadata.values())
    return told + sum(len(passage.text) for passage in part.passages)


def _embedded(store: Store, embedder: Embedder | None, batch: Batch) -> Batch:
    """The batch without what is there already, with vectors."""
    changed = pipeline.changed(store, batch.contributions)
    batch.contributions = pipeline.embedded(changed, embedder) if embedder else changed
    return batch


def _written(store: Store, embedder: Embedder | None, place: str, provisional: set[str], batch: Batch) -> Batch:
    """One transaction: what is new, what is no more, and which files are known, to their ends or in part."""
    fingerprints = {file_of(c.document.uri): f"{place}:" for c in batch.contributions}
    known = [end for end in batch.ends if end.fingerprint and not end.unchanged]
    fingerprints |= {e.source.uri: e.fingerprint for e in known if e.source.uri not in provisional}
    if batch.contributions or batch.gone or fingerprints:
        model = embedder.name if embedder else None
        batch.written = store.write(
            batch.contributions, model=model, fingerprints=fingerprints, instead_of=batch.gone
        )
        batch.forgotten = len(batch.gone)
    return batch


def _with(added: Added, batch: Batch) -> Added:
    return replace(
        added,
        unchanged=added.unchanged + sum(end.unchanged for end in batch.ends),
        documents=added.documents + batch.written,
        passages=added.passages + sum(len(c.passages) for c in batch.contributions),
        facts=added.facts + sum(len(c.facts) for c in batch.contributions),
        forgotten=added.forgotten + batch.forgotten,
    )


def _further(told: Progress, batch: Batch, added: Added, seconds: float) -> Progress:
    return replace(
        told,
        files=told.files + len(batch.ends),
        bytes=told.bytes + batch.bytes,
        passages=added.passages,
        facts=added.facts,
        seconds=seconds,
    )


# -- running ahead --------------------------------------------------------------------------------------


def _ahead(function: Callable[[T], R], items: Iterable[T], at_once: int) -> Iterator[R]:
    """The results in order; up to `at_once` items are worked on, and as many are done, before one is taken."""
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="waylore-adding")
    try:
        for item in items:
            waiting.append(pool.submit(copy_context().run, function, item))  # a trace goes on in the thread
            if len(waiting) > 2 * at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
