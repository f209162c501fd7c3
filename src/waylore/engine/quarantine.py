"""Move the documents of one author to quarantine, and release them again.

Documents are copied to another collection of the same database, whose name ends in `QUARANTINE`, and then forgotten in
their own. So no read of the collection has to leave them out. If a run is killed in between, some documents are in both
collections and none is lost; the next run continues.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from waylore.errors import ModelMismatch
from waylore.indexing.importers.dispatch import BATCH_DOCUMENTS
from waylore.indexing.pipeline import split_into_batches
from waylore.store.protocol import QUARANTINE, Store, read_whole_documents
from waylore.store.receipts import record_as
from waylore.store.rows import group_pairs
from waylore.types.audit import Verb
from waylore.types.author import Author
from waylore.types.identity import make_enrichment_uri
from waylore.types.results import Receipt

ENRICHMENT = make_enrichment_uri("")


@dataclass(frozen=True, slots=True)
class _Written:
    """A document with its author and user. If a model made it, also the document to which it adds facts."""

    id: str
    author: str
    user: str
    base: str


def take_back(store: Store, wrote: str, *, author: Author) -> Receipt:
    """Move all documents of an author to quarantine, with the facts that models added, and return a receipt.

    A document that is changed meanwhile stays.
    """
    with closing(store.open_quarantine()) as quarantine:
        found = list(_list_written(store))
        own = {each.id for each in found if each.author == wrote}
        digests = _copy([each for each in found if own & {each.id, each.base}], store, quarantine, author=author)
        receipt = store.forget(list(digests), author=author, verb="quarantine", digests=digests)
        changed = digests.keys() - set(receipt.documents)
        _forget(quarantine, changed, author=author)
    return receipt


def release(store: Store, wrote: str, *, author: Author) -> Receipt:
    """Move documents of an author back, and return a receipt of the released documents.

    A document whose id is stored again with another content stays in quarantine, and is in `missing`.
    """
    with closing(store.open_quarantine()) as quarantine:
        ids = _copy(_select_quarantined(quarantine, wrote), quarantine, store, author=author, verb="release")
        here, there = store.digests(list(ids)), quarantine.digests(list(ids))
        back = [id_ for id_ in ids if here.get(id_) == there.get(id_)]
        receipt = _forget(quarantine, back, author=author)
    return replace(receipt, missing=tuple(sorted(ids.keys() - set(back))))


def forget_quarantined(store: Store, wrote: str, *, author: Author) -> Receipt:
    """Remove documents of an author from the quarantine for good, and return a receipt."""
    with closing(store.open_quarantine()) as quarantine:
        chosen = [each.id for each in _select_quarantined(quarantine, wrote)]
        return quarantine.forget(chosen, author=author)


def count_quarantined(store: Store) -> dict[str, int]:
    """Return the number of documents in quarantine for each author whose documents were taken back, by name."""
    with closing(store.open_quarantine()) as quarantine:
        return dict(sorted(Counter(owner for owner, _ in _list_owners(quarantine)).items()))


def _forget(quarantine: Store, documents: Iterable[str], *, author: Author) -> Receipt:
    with record_as(""):  # the request is recorded in the collection itself
        return quarantine.forget(list(documents), author=author)


def _copy(
    documents: Sequence[_Written], source: Store, target: Store, *, author: Author, verb: Verb = "write"
) -> dict[str, str]:
    """Copy documents in batches, and return the digests that they had before they were read."""
    if documents:
        _check_models(source, target)
    digests = dict[str, str]()
    for batch in split_into_batches(documents, BATCH_DOCUMENTS):
        digests |= source.digests([each.id for each in batch])
        with record_as(""):
            read = read_whole_documents(source, group_pairs((each.user, each.id) for each in batch))
            target.write(list(read.values()), author=author, model=source.statistics().model, verb=verb)
    return digests


def _check_models(source: Store, target: Store) -> None:
    one, other = source.statistics(), target.statistics()
    if other.documents and one.model != other.model:
        raise ModelMismatch(
            f"the collection and its quarantine have vectors of different models, {one.model} and {other.model}: give "
            f"both the same with `waylore reembed --collection NAME` and NAME{QUARANTINE}, and try again"
        )


def _list_written(store: Store) -> Iterator[_Written]:
    """Yield all documents of a store, by id."""
    last = ""
    while page := store.list_all_documents(after=last):
        for each in page:
            base = each.uri.removeprefix(ENRICHMENT) if each.uri.startswith(ENRICHMENT) else ""
            yield _Written(each.id, each.author, each.user, base)
        last = page[-1].id


def _list_owners(quarantine: Store) -> Iterator[tuple[str, _Written]]:
    """Yield the documents in quarantine, each with the author whose release brings it back.

    A document that a model made is released with the document to which it adds facts, if both are in quarantine.
    """
    found = {each.id: each for each in _list_written(quarantine)}
    for each in found.values():
        yield found.get(each.base, each).author, each


def _select_quarantined(quarantine: Store, wrote: str) -> list[_Written]:
    return [each for owner, each in _list_owners(quarantine) if owner == wrote]
