"""Make one store equal to another: compare them by pages of documents and copy the differences.

Every copied document is read back and compared row by row. Without `compare_rows`, a sweep compares only documents and
digests; with it, also every row of documents that already existed. The source may be written during a sweep. A sweep
without changes and without concurrent writes proves that the stores are equal. This module does not know about cells.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from waylore.config import CellsConfig
from waylore.errors import StoreError
from waylore.store.protocol import Store, read_whole_documents
from waylore.store.rows import group_pairs
from waylore.types.author import OWNER
from waylore.types.identity import get_file
from waylore.types.knowledge import STATUSES, Document, Fact, IndexedDocument, Vector
from waylore.types.search import Filter

VECTOR_TOLERANCE = 1e-2  # allowed difference of each number of a vector: engines store different precision


def sync_stores(source: Store, target: Store, batch: int, *, compare_rows: bool = False) -> int:
    """Copy differences to the target, delete documents that the source lacks, and return the number of changes."""
    if _has_other_model(source, target):
        delete_all(target, batch)
    changed = 0
    after: str | None = ""
    while after is not None:
        here = source.list_all_documents(after=after, limit=batch)
        last = here[-1].id if len(here) == batch else None
        there = list(_list_between(target, after, last, batch))
        changed += _sync_page(source, target, here, there, compare_rows=compare_rows)
        after = last
    return changed + _copy_weights(source, target)


def _copy_weights(source: Store, target: Store) -> int:
    """Copy the weights that were fitted to the source, and return the number of changes."""
    weights = source.statistics().weights
    if weights == target.statistics().weights:
        return 0
    target.set_weights(weights, author=OWNER)
    return 1


class DocumentCopy:
    """Makes one store equal to another, document by document, for a move between any two engines."""

    def __init__(self, source: Store, target: Store, config: CellsConfig) -> None:
        self._source = source
        self._target = target
        self._config = config
        self._is_compared = False  # whether every row has been compared once
        self._equal_at: int | None = None  # version of the source at the last time both were equal

    def copy(self) -> None:
        """Copy until few changes are left, comparing every row the first time."""
        if not self._is_compared:
            sync_stores(self._source, self._target, self._config.batch, compare_rows=True)
            self._is_compared = True
        self._equal_at = None
        for _ in range(self._config.sweeps):
            version = self._source.version()
            changed = sync_stores(self._source, self._target, self._config.batch)
            if changed < max(self._config.batch // 8, 1):
                self._equal_at = None if changed else version
                return

    def finish(self, until: float) -> bool:
        """Copy the last changes while writers wait. Without writes in the meantime, nothing is compared."""
        while self._source.version() != self._equal_at and self._copy_changes():
            if time.time() > until:
                return False
        return True

    def read_version(self) -> int:
        """Return the version of the source."""
        return self._source.version()

    def _copy_changes(self) -> bool:
        """Copy differences. Return whether there were differences, or the counts still differ."""
        changed = sync_stores(self._source, self._target, self._config.batch)
        return bool(changed) or not is_equal(self._source, self._target)


def delete_all(store: Store, batch: int) -> None:
    """Delete all documents of a store."""
    while documents := store.list_all_documents(limit=batch):
        store.forget([document.id for document in documents], author=OWNER)


def is_equal(source: Store, target: Store) -> bool:
    """Return whether two stores have the same counts, model and weights."""
    one, other = source.statistics(), target.statistics()
    return replace(one, version=0, details={}) == replace(other, version=0, details={})


def _has_other_model(source: Store, target: Store) -> bool:
    one, other = source.statistics(), target.statistics()
    return bool(other.documents) and one.model != other.model


def _list_between(store: Store, after: str, last: str | None, batch: int) -> Iterator[Document]:
    """Yield the documents of a store whose ids are between two ids."""
    while page := store.list_all_documents(after=after, limit=batch):
        for document in page:
            if last is not None and document.id > last:
                return
            yield document
        after = page[-1].id


# -- a page --------------------------------------------------------------------------------------------


def _sync_page(
    source: Store, target: Store, here: Sequence[Document], there: Sequence[Document], *, compare_rows: bool
) -> int:
    ids = [document.id for document in here]
    deleted = [document.id for document in there if document.id not in set(ids)]
    if deleted:
        target.forget(deleted, author=OWNER)
    equal = _find_equal_documents(source, target, here, there)
    equal -= _find_in_stale_files(source, target, [d for d in here if d.id in equal])
    if compare_rows and equal:
        equal = _find_equal_rows(source, target, [document for document in here if document.id in equal])
    changed = [document for document in here if document.id not in equal]
    if changed:
        _copy(source, target, changed)
    _copy_fingerprints(source, target, here)
    if compare_rows:
        _copy_uses(source, target, here)
    return len(changed) + len(deleted)


def _find_equal_documents(
    source: Store, target: Store, here: Sequence[Document], there: Sequence[Document]
) -> set[str]:
    """Return the ids of documents that are equal and have the same digest in both stores."""
    by_id = {document.id: document for document in here}
    same = {document.id for document in there if by_id.get(document.id) == document}
    digests, others = source.digests(list(same)), target.digests(list(same))
    return {id_ for id_ in same if id_ in digests and digests[id_] == others.get(id_)}


def _find_equal_rows(source: Store, target: Store, documents: Sequence[Document]) -> set[str]:
    """Return the ids of documents whose rows are all equal in both stores."""
    of_users = _group_by_user(documents)
    one, other = (read_whole_documents(store, of_users) for store in (source, target))
    return {id_ for id_ in one if id_ in other and is_same(one[id_], other[id_])}


def _group_by_user(documents: Sequence[Document]) -> dict[str, list[str]]:
    """Return document ids by user."""
    return group_pairs((document.user, document.id) for document in documents)


def _copy(source: Store, target: Store, documents: Sequence[Document]) -> None:
    """Replace documents in the target, then read them back and compare them."""
    of_users, ids = _group_by_user(documents), [document.id for document in documents]
    written = read_whole_documents(source, of_users)
    target.write(list(written.values()), author=OWNER, model=source.statistics().model, replacing=ids)
    stored = read_whole_documents(target, of_users)
    wrong = [id_ for id_ in written if id_ not in stored or not is_same(written[id_], stored[id_])]
    if wrong:
        raise StoreError(
            f"the new cell returns other rows than were written for {', '.join(wrong)}; "
            "nothing was moved, check that cell and run the move again"
        )


def is_same(one: IndexedDocument, other: IndexedDocument) -> bool:
    """Return whether two indexed documents are equal, vectors included. The order of their parts is ignored."""
    if one.document != other.document or Counter(one.mentions) != Counter(other.mentions):
        return False
    parts = [{(p.id, getattr(p, "passage_id", "")): p for p in c.parts} for c in (one, other)]
    return parts[0] == parts[1] and all(_is_close(part.vector, parts[1][key].vector) for key, part in parts[0].items())


def _is_close(one: Vector | None, other: Vector | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    if len(one) != len(other):
        return False
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    scaled = (one / (lengths[0] or 1.0), other / (lengths[1] or 1.0))  # a store may not keep the exact length
    return bool(np.allclose(*scaled, atol=VECTOR_TOLERANCE))


# -- files and uses ------------------------------------------------------------------------------------


def _group_by_file(documents: Sequence[Document]) -> dict[str, list[str]]:
    """Return document ids by the file that they were read from."""
    return group_pairs((get_file(document.uri), document.id) for document in documents if document.uri)


def _find_in_stale_files(source: Store, target: Store, documents: Sequence[Document]) -> set[str]:
    """Return documents of files that have a fingerprint in the target only.

    Writing them again removes that fingerprint.
    """
    files = _group_by_file(documents)
    stale = target.fingerprints(list(files)).keys() - source.fingerprints(list(files)).keys()
    return {id_ for file in stale for id_ in files[file]}


def _copy_fingerprints(source: Store, target: Store, documents: Sequence[Document]) -> None:
    files = list(_group_by_file(documents))
    wanted, stored = source.fingerprints(files), target.fingerprints(files)
    changed = {file: print_ for file, print_ in wanted.items() if stored.get(file) != print_}
    if changed:
        target.write([], author=OWNER, model=source.statistics().model, fingerprints=changed)


def _copy_uses(source: Store, target: Store, documents: Sequence[Document]) -> None:
    """Add the missing uses of facts to the target."""
    for user, own in _group_by_user(documents).items():
        ids = list({f.id for c in read_whole_documents(source, {user: own}).values() for f in c.facts})
        where = Filter(user=user)
        wanted, stored = (store.facts(ids, statuses=STATUSES, where=where) for store in (source, target))
        for at, facts in _find_missing_uses(wanted, stored).items():
            target.count_uses(facts=facts, at=at)


def _find_missing_uses(wanted: Mapping[str, Fact], stored: Mapping[str, Fact]) -> dict[datetime, list[str]]:
    """Return facts by the time of their last use, each repeated for every missing use."""
    missing: dict[datetime, list[str]] = defaultdict(list)
    for id_, fact in wanted.items():
        if fact.last_accessed and id_ in stored:
            missing[fact.last_accessed] += [id_] * (fact.access_count - stored[id_].access_count)
    return {at: ids for at, ids in missing.items() if ids}
