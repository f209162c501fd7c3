"""Define the values that pass between the steps of adding files.

They are split documents, progress within a file, removed documents and batches. Each takes little memory,
because a file may have millions of rows. The module does no work; `indexing.files.add` does.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from waylore.indexing.blocks import MAX_REPORTED_SKIPS, Reading, Skipped, Source
from waylore.indexing.files.addresses import Fingerprint
from waylore.indexing.secrets.leave_out import CleanText
from waylore.protocols import Extraction
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, IndexedDocument, Passage


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document split into passages, before extraction; `declared` comes from metadata, fields and tables.

    `clean` has the secrets left out of the reading.
    """

    document: Document
    passages: Sequence[Passage]
    declared: Sequence[Extraction]
    reading: Reading
    clean: CleanText


@dataclass(frozen=True, slots=True)
class BytesRead:
    """The number of bytes that were read since the last report."""

    size: int


class PreviousDocuments:
    """Ids of the documents that a file had before, each marked if the file still has it.

    They are stored in an array, because a file may have millions of documents.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = np.sort(np.fromiter((id_.encode() for id_ in ids), dtype="S32"))
        self._is_seen = np.zeros(len(self._ids), dtype=np.bool_)

    def mark_seen(self, id_: str) -> None:
        """Record that the file still has a document; ids of new documents are ignored."""
        at = int(np.searchsorted(self._ids, id_.encode()))
        if at < len(self._ids) and self._ids[at] == id_.encode():
            self._is_seen[at] = True

    def list_removed(self) -> Iterator[str]:
        """Return the ids of documents that were not seen again."""
        return (id_.decode() for id_ in self._ids[~self._is_seen])


@dataclass(slots=True)
class SkippedFiles:
    """The first skipped files and parts with their reasons, and the number of all."""

    reported: list[Skipped] = field(default_factory=list)
    count: int = 0

    def add(self, skipped: Skipped) -> None:
        """Count a skipped file, and store it if it is among the first."""
        self.count += 1
        if len(self.reported) < MAX_REPORTED_SKIPS:
            self.reported.append(skipped)


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file with its fingerprint, and whether a part of it could be read.

    `size` is the number of its bytes that no `BytesRead` has reported. `former` has the other addresses under which the
    file is stored; its documents are moved to the new one.
    """

    source: Source
    size: int
    fingerprint: Fingerprint
    former: tuple[str, ...] = ()
    is_unchanged: bool = False
    is_read: bool = False

    def make_unfinished(self) -> Fingerprint:
        """Return the fingerprint for the time until all documents are written."""
        return Fingerprint(self.fingerprint.place, former=self.former)

    def list_former_ids(self, uri: str) -> list[str]:
        """Return the ids that a document of this file has under the former addresses."""
        return [document_id(uri=file + uri.removeprefix(self.source.uri)) for file in self.former]


@dataclass(frozen=True, slots=True)
class RemovedDocuments:
    """Ids of documents that a file no longer contains; a file may return several of these."""

    file: FileRead
    ids: Sequence[str]


Part: TypeAlias = ChunkedDocument | BytesRead | RemovedDocuments | FileRead
IndexedPart: TypeAlias = IndexedDocument | BytesRead | RemovedDocuments | FileRead


@dataclass(slots=True)
class Batch:
    """The documents and files that one transaction writes.

    `begun` has the files of its documents. `moved` has the ids of these documents under former addresses. They are
    removed in the same transaction and do not count as forgotten.
    """

    documents: list[IndexedDocument] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    begun: dict[str, FileRead] = field(default_factory=dict)
    files_read: list[FileRead] = field(default_factory=list)
    bytes: int = 0
    written: int = 0
    forgotten: int = 0
