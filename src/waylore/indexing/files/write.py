"""Write prepared documents of files to a store, with the fingerprints of their files, in one transaction."""

from collections.abc import Collection
from dataclasses import replace

from waylore.indexing.files.addresses import Fingerprint
from waylore.indexing.files.batches import Batch, FileRead
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import get_file


def write_batch(
    store: Store, batch: Batch, *, author: Author, model: str | None, provisional: Collection[str] = ()
) -> Batch:
    """Write new documents, removed documents and fingerprints in one transaction, and return the batch with counts.

    A file that is not yet read to its end, or that is `provisional` and must be read again, gets an incomplete
    fingerprint.
    """
    complete = [file for file in batch.files_read if file.is_read and not file.is_unchanged]
    fingerprints = {uri: file.make_unfinished() for uri, file in batch.begun.items()}
    fingerprints |= {file.source.uri: _finish(file, provisional) for file in complete}
    if fingerprints:
        batch.written = store.write(
            batch.documents,
            author=author,
            model=model,
            fingerprints={uri: str(fingerprint) for uri, fingerprint in fingerprints.items()},
            replacing=[*batch.removed, *batch.moved],
        )
        batch.forgotten = len(batch.removed)
    return batch


def _finish(file: FileRead, provisional: Collection[str]) -> Fingerprint:
    """Return the fingerprint of a file whose documents are all written."""
    is_final = get_file(file.source.uri) not in provisional
    return file.fingerprint if is_final else replace(file.fingerprint, content="")
