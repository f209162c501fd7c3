"""Check that the documents of a store are unchanged since they were written, and that derived data agrees with them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from waylore.deadline import check_each
from waylore.indexing.pipeline import split_into_batches
from waylore.store.protocol import Store
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt

BATCH = 100  # documents that are compared at a time


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A document, the digest of its readable content, and whether this is the digest that was stored with it."""

    id: str
    uri: str
    digest: str
    is_whole: bool


def check_documents(store: Store) -> Iterator[CheckedDocument]:
    """Read every document of a collection, by id, and compare its digest with the stored one."""
    return compare_digests(store.export(), store.digests)


def compare_digests(
    exported: Iterable[IndexedDocument], read_digests: Callable[[Sequence[str]], Mapping[str, str]]
) -> Iterator[CheckedDocument]:
    """Compare the digest of each document with the stored one."""
    for batch in split_into_batches(check_each(exported), BATCH):
        stored = read_digests([indexed.document.id for indexed in batch])
        for indexed in batch:
            document, digest = indexed.document, indexed.digest
            yield CheckedDocument(document.id, document.uri, digest, stored.get(document.id) == digest)


def list_disagreements(store: Store) -> Iterator[str]:
    """Yield a line for each damaged document, and for each kind of derived data that disagrees with the documents."""
    for document in check_documents(store):
        if not document.is_whole:
            yield f"{document.uri or document.id} is not what was written"
    yield from store.find_remains(Receipt())
