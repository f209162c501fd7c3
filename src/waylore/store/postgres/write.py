"""Write to the PostgreSQL store: functions of a connection, inside a transaction that the store has begun."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store import rows as columns
from waylore.store.checks import admit_documents, check_changes, find_dimension, has_model
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.delete import delete_documents
from waylore.store.postgres.insert import insert_documents
from waylore.store.postgres.scope import PostgresCollection, run, run_by_ids, run_many
from waylore.store.receipts import bind_record, get_now, mark_recorded, read_record
from waylore.store.rows import Change
from waylore.types.author import Author
from waylore.types.identity import identity
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt


def write(
    db: Connection,
    into: PostgresCollection,
    documents: Sequence[IndexedDocument],
    *,
    author: Author,
    model: str | None,
) -> int:
    """Write new and changed documents, and return their number."""
    fresh = {c.document.id: (c, c.digest) for c in admit_documents(author, documents)}
    known = {id_.hex(): (digest.hex(), access) for id_, digest, access in _read_own(db, into, list(fresh), author)}
    changed = [(c, digest) for id_, (c, digest) in fresh.items() if known.get(id_, ("",))[0] != digest]
    if not changed:
        return 0
    change = Change()
    into = _ensure_model(db, into, [c for c, _ in changed], model)
    replaced = [c.document.id for c, _ in changed if c.document.id in known]
    delete_documents(db, into.key, replaced, [known[id_][1] for id_ in replaced], change)
    insert_documents(db, into, changed, change)
    _update_counters(db, into.key, change)
    return len(changed)


def forget(db: Connection, of: PostgresCollection, documents: Sequence[str], *, author: Author) -> Receipt:
    """Remove documents and return a receipt."""
    known = {id_.hex(): access for id_, _, access in _read_own(db, of, documents, author)}
    change = Change()
    receipt = delete_documents(db, of.key, list(known), list(known.values()), change)
    if known:
        _update_counters(db, of.key, change)
    if known and of.statistics.documents + change.documents == 0:
        set_model(db, of.key, None, None)  # an empty collection has no model, like a new one
    return receipt


def find_receipt(db: Connection, collection: int, request: str, *, author: str | None = None) -> Receipt | None:
    """Return the record of what a request has changed; None if there is none by this author, or by any."""
    rows = run(db, "receipt", collection=collection, id=request, now=get_now(), author=author).fetchall()
    return next((read_record(request, row) for row in rows), None)


def add_receipt(db: Connection, collection: int, request: str, receipt: Receipt, author: Author) -> Receipt:
    """Record what a request has changed, delete old records, and return the receipt with its id."""
    bound = {"collection": collection, **bind_record(request, receipt, author)}
    run(db, "delete_old_receipts", collection=collection, now=bound.pop("now"))
    run(db, "add_receipt", **bound)
    mark_recorded()
    return replace(receipt, id=request)


def store_fingerprints(db: Connection, collection: int, fingerprints: Mapping[str, str], *, author: Author) -> None:
    """Store the fingerprints of files, after all their documents are written."""
    files = list(fingerprints) if author.labels is not None else []
    found = (run(db, "labels_of_file", collection=collection, file=file).fetchall() for file in files)
    check_changes(author, (labels for rows in found for (labels,) in rows))
    rows = [(identity("file", uri), uri, fingerprint) for uri, fingerprint in fingerprints.items()]
    run_many(db, "set_fingerprint", collection, rows)


def count_uses(db: Connection, collection: int, kind: str, ids: Sequence[str], at: datetime) -> None:
    """Count one use for each time that an item is named."""
    uses, now = Counter(ids), columns.to_microseconds(at)
    found = [id_.hex() for id_, _ in run_by_ids(db, f"{kind}_rows", ids, collection=collection)]
    run_many(db, "touch", collection, [(id_, uses[id_], now) for id_ in found])


def set_model(db: Connection, collection: int, model: str | None, dimension: int | None) -> None:
    """Store the model of a collection."""
    run(db, "set_model", collection=collection, model=model, dimension=dimension)


def _read_own(
    db: Connection, of: PostgresCollection, documents: Sequence[str], author: Author
) -> list[tuple[bytes, bytes, int]]:
    """Return the id, digest and permission of stored documents, if the author may change all of them."""
    stored = run_by_ids(db, "digests", documents, collection=of.key)
    check_changes(author, (labels for *_, labels in stored))
    return [(id_, digest, access) for id_, digest, access, _ in stored]


def _update_counters(db: Connection, collection: int, change: Change) -> None:
    run(db, "count", collection=collection, **change.totals)
    run_many(db, "count_access", collection, change.by_access)


def _ensure_model(
    db: Connection, into: PostgresCollection, changed: Sequence[IndexedDocument], model: str | None
) -> PostgresCollection:
    """Give the collection the model of its first write, and refuse any other."""
    if has_model(into.statistics, model):
        return into
    dimension = None if model is None else find_dimension(changed)
    set_model(db, into.key, model, dimension)
    return replace(into, statistics=replace(into.statistics, model=model, dimension=dimension))
