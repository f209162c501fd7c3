"""Makes one store equal to another: compares them page by page of documents, and copies what differs.

Whatever is copied is read back and compared, row by row. A light sweep compares documents and digests, a whole
one also every row that was there already. It knows nothing of cells, and the source may be written meanwhile: a
sweep that finds nothing to do while nobody writes has proved the two equal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np

from waylore.errors import StoreError
from waylore.store.protocol import Store
from waylore.store.rows import grouped
from waylore.types.identity import file_of
from waylore.types.knowledge import STATUSES, Contribution, Document, Fact, Vector

Place = tuple[str, str]
CLOSE = 1e-2  # by how much a number of a vector may differ: engines keep different precision


def sweep(source: Store, target: Store, batch: int, *, is_whole: bool = False) -> int:
    """Copy to the target what differs and forget there what is gone; return how many documents that were."""
    if _has_other_model(source, target):
        emptied(target, batch)
    changed = 0
    after: Place | None = ("", "")
    while after is not None:
        here = source.listed(after=after, limit=batch)
        last = (here[-1].uri, here[-1].id) if len(here) == batch else None
        there = list(_between(target, after, last, batch))
        changed += _page(source, target, here, there, is_whole=is_whole)
        after = last
    return changed


def emptied(store: Store, batch: int) -> None:
    """Forget everything."""
    while documents := store.listed(limit=batch):
        store.forget([document.id for document in documents])


def is_equal(source: Store, target: Store) -> bool:
    """Whether two stores count the same, and have the same model."""
    one, other = source.statistics(), target.statistics()
    return (one.documents, one.passages, one.entities, one.facts, one.mentions, one.model) == (
        other.documents,
        other.passages,
        other.entities,
        other.facts,
        other.mentions,
        other.model,
    )


def _has_other_model(source: Store, target: Store) -> bool:
    known, other = source.statistics(), target.statistics()
    return bool(other.documents) and known.model != other.model


def _between(store: Store, after: Place, last: Place | None, batch: int) -> Iterator[Document]:
    """The documents of a store from one place to another, by address and identity."""
    while page := store.listed(after=after, limit=batch):
        for document in page:
            if last is not None and (document.uri, document.id) > last:
                return
            yield document
        after = (page[-1].uri, page[-1].id)


# -- a page --------------------------------------------------------------------------------------------


def _page(
    source: Store, target: Store, here: Sequence[Document], there: Sequence[Document], *, is_whole: bool
) -> int:
    ids = [document.id for document in here]
    gone = [document.id for document in there if document.id not in set(ids)]
    if gone:
        target.forget(gone)
    known = _equal_documents(source, target, here, there)
    known -= _in_stale_files(source, target, [d for d in here if d.id in known])
    if is_whole and known:
        known = _equal_rows(source, target, known)
    changed = [id_ for id_ in ids if id_ not in known]
    if changed:
        _copy(source, target, changed)
    _carry_fingerprints(source, target, here)
    if is_whole:
        _carry_uses(source, target, ids)
    return len(changed) + len(gone)


def _equal_documents(
    source: Store, target: Store, here: Sequence[Document], there: Sequence[Document]
) -> set[str]:
    known = {document.id: document for document in here}
    same = {document.id for document in there if known.get(document.id) == document}
    digests, others = source.digests(list(same)), target.digests(list(same))
    return {id_ for id_ in same if id_ in digests and digests[id_] == others.get(id_)}


def _equal_rows(source: Store, target: Store, ids: set[str]) -> set[str]:
    one, other = source.contributions(list(ids)), target.contributions(list(ids))
    return {id_ for id_ in ids if id_ in one and id_ in other and is_same(one[id_], other[id_])}


def _copy(source: Store, target: Store, ids: Sequence[str]) -> None:
    """Write documents to the target instead of what it has of them, and look at what it gives back."""
    told = source.contributions(ids)
    target.write(list(told.values()), model=source.statistics().model, instead_of=ids)
    kept = target.contributions(list(told))
    wrong = [id_ for id_ in told if id_ not in kept or not is_same(told[id_], kept[id_])]
    if wrong:
        raise StoreError(
            f"the new cell gives back another document than was written: {', '.join(wrong)}. "
            "Nothing has moved; check that cell and run the move again"
        )


def is_same(one: Contribution, other: Contribution) -> bool:
    """Whether two contributions are the same, down to their vectors, but for the order of their parts."""
    if one.document != other.document or Counter(one.mentions) != Counter(other.mentions):
        return False
    parts = [{(p.id, getattr(p, "passage_id", "")): p for p in c.parts} for c in (one, other)]
    return parts[0] == parts[1] and all(
        _is_close(part.vector, parts[1][key].vector) for key, part in parts[0].items()
    )


def _is_close(one: Vector | None, other: Vector | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    if len(one) != len(other):
        return False
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    scaled = (one / (lengths[0] or 1.0), other / (lengths[1] or 1.0))  # stores may not keep the length
    return bool(np.allclose(*scaled, atol=CLOSE))


# -- files and uses ------------------------------------------------------------------------------------


def _files(documents: Sequence[Document]) -> dict[str, list[str]]:
    """Documents by the file that they were read from."""
    return grouped((file_of(document.uri), document.id) for document in documents if document.uri)


def _in_stale_files(source: Store, target: Store, documents: Sequence[Document]) -> set[str]:
    """Documents of files that only the target takes for read: they are written anew, which ends that."""
    files = _files(documents)
    stale = target.fingerprints(list(files)).keys() - source.fingerprints(list(files)).keys()
    return {id_ for file in stale for id_ in files[file]}


def _carry_fingerprints(source: Store, target: Store, documents: Sequence[Document]) -> None:
    files = list(_files(documents))
    known, kept = source.fingerprints(files), target.fingerprints(files)
    fresh = {file: print_ for file, print_ in known.items() if kept.get(file) != print_}
    if fresh:
        target.write([], model=source.statistics().model, fingerprints=fresh)


def _carry_uses(source: Store, target: Store, documents: Sequence[str]) -> None:
    """Count in the target what uses of facts it lacks."""
    ids = list({f.id for c in source.contributions(documents).values() for f in c.facts})
    counted = source.facts(ids, statuses=STATUSES)
    kept = target.facts(ids, statuses=STATUSES)
    for at, facts in _lacking(counted, kept).items():
        target.touch(facts=facts, at=at)


def _lacking(counted: Mapping[str, Fact], kept: Mapping[str, Fact]) -> dict[datetime, list[str]]:
    """Facts by when they were used last, each as often as the target lacks a use of it."""
    found: dict[datetime, list[str]] = defaultdict(list)
    for id_, fact in counted.items():
        if fact.last_accessed and id_ in kept:
            found[fact.last_accessed] += [id_] * (fact.access_count - kept[id_].access_count)
    return {at: ids for at, ids in found.items() if ids}
