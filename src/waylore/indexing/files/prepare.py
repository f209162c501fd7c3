"""Prepare the documents of files for writing: read, split, extract, group into batches. No step here uses a store.

`waylore add` runs these functions in threads of one process, `waylore load` in many processes; `files.write` writes
what they return.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.deadline import check_each
from waylore.indexing import chunking
from waylore.indexing.assembly import assemble_document, merge_extractions
from waylore.indexing.blocks import Reading, Skipped, Source
from waylore.indexing.extractors.definitions import apply_definitions
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.extractors.structure import extract_declared
from waylore.indexing.files.batches import (
    Batch,
    BytesRead,
    ChunkedDocument,
    FileRead,
    IndexedPart,
    RemovedDocuments,
)
from waylore.indexing.files.event_time import find_event_time
from waylore.indexing.files.formats import read_source
from waylore.indexing.secrets.readings import clean_reading
from waylore.indexing.secrets.sieve import Sieve
from waylore.protocols import Extraction, Extractor
from waylore.types.identity import document_id, get_file
from waylore.types.knowledge import Document, IndexedDocument

BATCH_CHARACTERS = 4_000_000  # a transaction ends after this many characters of texts and metadata


# -- reading --------------------------------------------------------------------------------------------


def split_source(
    source: Source, template: Document, sieve: Sieve, committed: datetime | None, wait: Callable[[], object]
) -> Iterator[ChunkedDocument | BytesRead | Skipped]:
    """Yield the documents of a file without secrets, split into passages, and its skipped parts.

    template: the labels, source and metadata of all documents. `committed` is the default of their time.
    """
    bytes_read = 0
    for found in check_each(read_source(source, wait)):
        if isinstance(found, Skipped):
            yield found
            continue
        reading, clean = clean_reading(found, sieve)
        document = _make_document(template, reading, committed)
        passages = chunking.split_into_passages(reading, document)
        yield ChunkedDocument(document, passages, extract_declared(reading, document, passages), reading, clean)
        if reading.bytes_read > bytes_read:
            yield BytesRead(reading.bytes_read - bytes_read)
            bytes_read = reading.bytes_read


def _make_document(template: Document, reading: Reading, committed: datetime | None) -> Document:
    metadata = {**reading.metadata, **template.metadata}
    at, id_ = find_event_time(reading) or committed, document_id(uri=reading.uri)
    return replace(template, id=id_, uri=reading.uri, title=reading.title, metadata=metadata, at=at)


# -- extraction -----------------------------------------------------------------------------------------


def extract_document(extractor: Extractor | None, part: ChunkedDocument) -> tuple[IndexedDocument, bool]:
    """Index a document with the facts of an extractor, and return whether the extraction is provisional."""
    if extractor is None:
        return _assemble(part, [Extraction() for _ in part.passages]), False
    if isinstance(extractor, RuleExtractor):  # this extractor reads the marks of the author too
        extracted = extractor.extract_reading(part.reading, part.document, part.passages)
    else:
        extracted = extractor.extract(part.document, part.passages)
    merged = list(map(merge_extractions, part.declared, extracted))
    indexed = _assemble(part, apply_definitions(part.document, part.passages, merged))
    return indexed, any(extraction.provisional for extraction in extracted)


def _assemble(part: ChunkedDocument, extractions: Sequence[Extraction]) -> IndexedDocument:
    """Index a document; its passages have their offsets in the file."""
    indexed = assemble_document(part.document, part.passages, extractions)
    return part.clean.restore_offsets(indexed, part.reading.start)


# -- batches --------------------------------------------------------------------------------------------


def make_batches(files: Mapping[str, FileRead], parts: Iterable[IndexedPart], max_rows: int) -> Generator[Batch]:
    """Group documents and the ends of files into batches of `max_rows` passages, entities and facts.

    `files` has the file of each document by its address.
    """
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
            file = files[get_file(part.document.uri)]
            batch.begun[file.source.uri] = file
            batch.documents.append(part)
            batch.moved += file.list_former_ids(part.document.uri)
            size += sum(1 for _ in part.parts)
            length += _count_characters(part)
        if size >= max_rows or length >= BATCH_CHARACTERS:
            yield batch
            batch, size, length = Batch(), 0, 0
    yield batch


def _count_characters(part: IndexedDocument) -> int:
    """Return the characters of passages and metadata; a row of a table may consist of metadata only."""
    metadata = sum(len(str(value)) for value in part.document.metadata.values())
    return metadata + sum(len(passage.text) for passage in part.passages)
