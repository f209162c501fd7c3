"""Write to the SQLite store: functions of a connection, inside a transaction that the store has begun."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import apsw
import numpy as np

from waylore.store import rows as columns
from waylore.store import vectors
from waylore.store.checks import admit_documents, check_changes, find_dimension, has_model
from waylore.store.protocol import NO_DIGESTS
from waylore.store.receipts import (
    bind_entry,
    bind_record,
    get_now,
    list_write_entries,
    mark_recorded,
    read_entry,
    read_record,
)
from waylore.store.rows import Change
from waylore.store.sql import load_queries
from waylore.store.sqlite.delete import delete_documents
from waylore.store.sqlite.insert import insert_documents
from waylore.store.sqlite.scope import SqliteCollection, read_collection, run_by_facts, run_by_ids
from waylore.types.audit import AuditEntry, Verb
from waylore.types.author import Author
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")


def write(
    db: apsw.Connection,
    name: str,
    documents: Sequence[IndexedDocument],
    *,
    author: Author,
    model: str | None,
    verb: Verb = "write",
) -> int:
    """Write new and changed documents, and return their number; with the verb `release` only new ones."""
    into = read_collection(db, name)
    stored = run_by_ids(db, "digests", [c.document.id for c in documents], collection=into.row)
    check_changes(author, (row[-2:] for row in stored))
    known = {id_.hex(): (row, digest) for id_, row, digest, *_ in stored}
    fresh = {c.document.id: (c, bytes.fromhex(c.digest)) for c in admit_documents(author, documents)}
    kept = known if verb == "release" else {id_ for id_, (_, digest) in known.items() if digest == fresh[id_][1]}
    changed = [each for id_, each in fresh.items() if id_ not in kept]
    if not changed:
        return 0
    change = Change()
    into = _ensure_model(db, into, name, [c for c, _ in changed], model)
    replaced = {c.document.id: known[c.document.id][0] for c, _ in changed if c.document.id in known}
    removed = delete_documents(db, into, list(replaced.values()), change).documents
    changed += [fresh[id_] for id_ in removed if id_ in fresh and id_ not in replaced]  # enrichments
    insert_documents(db, into, changed, change)
    _update_counters(db, into, change)
    before = {id_.hex(): labels for id_, _, _, labels, _ in stored}
    labels = {c.document.id: columns.dump_labels(c.document.labels) for c, _ in changed}
    for entry in list_write_entries(labels, before, verb):
        add_entry(db, into.row, entry.verb, author, entry.documents, before=entry.before, after=entry.after)
    return len(changed)


def forget(
    db: apsw.Connection,
    name: str,
    documents: Sequence[str],
    *,
    author: Author,
    verb: Verb = "forget",
    digests: Mapping[str, str] = NO_DIGESTS,
) -> Receipt:
    """Remove documents and return a receipt. Those with another digest than a given one stay."""
    of = read_collection(db, name)
    found = run_by_ids(db, "digests", documents, collection=of.row)
    stored = [row for row in found if digests.get(row[0].hex(), row[2].hex()) == row[2].hex()]
    check_changes(author, (row[-2:] for row in stored))
    rows = [row for _, row, *_ in stored]
    change = Change()
    receipt = delete_documents(db, of, rows, change)
    if rows:
        _update_counters(db, of, change)
        add_entry(db, of.row, verb, author, receipt.documents, before=[row[3] for row in stored])
    if rows and of.statistics.documents + change.documents == 0:
        set_model(db, of.row, None, None)  # an empty collection has no model, like a new one
    return receipt


def find_receipt(db: apsw.Connection, collection: int, request: str, *, author: str | None = None) -> Receipt | None:
    """Return the record of a request; None if it does not exist. With an author, only its own records count."""
    bound = {"collection": collection, "id": bytes.fromhex(request), "now": get_now(), "author": author}
    return next((read_record(request, row) for row in db.execute(SQL["receipt"], bound)), None)


def add_receipt(db: apsw.Connection, collection: int, request: str, receipt: Receipt, author: Author) -> Receipt:
    """Record the changes of a request, delete old records, and return the receipt with its id."""
    bound = {"collection": collection, **bind_record(request, receipt, author)}
    db.execute(SQL["delete_old_receipts"], bound)
    db.execute(SQL["add_receipt"], bound)
    mark_recorded()
    return replace(receipt, id=request)


def add_entry(
    db: apsw.Connection,
    collection: int,
    verb: Verb,
    author: Author,
    documents: Sequence[str],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> None:
    """Add a change to the audit log; labels are given in JSON."""
    last: tuple[int, bytes] | None = db.execute(SQL["last_audit"], {"collection": collection}).get
    entry = bind_entry(last, verb, author, documents, before=before, after=after)
    db.execute(SQL["add_audit"], {"collection": collection, **entry})


def read_audit(db: apsw.Connection, collection: int, after: int, limit: int) -> tuple[AuditEntry, ...]:
    """Return entries of the audit log, oldest first."""
    bound = {"collection": collection, "after": after, "limit": limit}
    return tuple(map(read_entry, db.execute(SQL["audit"], bound)))


def store_fingerprints(
    db: apsw.Connection, collection: int, fingerprints: Mapping[str, str], *, author: Author
) -> None:
    """Store the fingerprints of files, after all their documents are written."""
    bound = [{"collection": collection, "file": file} for file in fingerprints if author.is_limited]
    check_changes(author, (row for file in bound for row in db.execute(SQL["labels_of_file"], file)))
    db.executemany(SQL["set_fingerprint"], [(collection, *file) for file in fingerprints.items()])


def count_uses(
    db: apsw.Connection, collection: int, *, passages: Sequence[str], facts: Sequence[str], at: datetime
) -> None:
    """Count one use for each time that an item is named."""
    now = columns.to_microseconds(at)
    used = Counter(passages)
    rows = [
        ("passage", row, used[id_.hex()])
        for id_, row in run_by_ids(db, "passage_rows", passages, collection=collection)
    ]
    keys = Counter(columns.make_sort_key(bytes.fromhex(id_)) for id_ in facts)
    known = run_by_facts(db, "known_facts", np.array(list(keys), np.int64), collection=collection)
    rows += [("fact", key, keys[key]) for (key,) in known]
    db.executemany(SQL["touch"], [(collection, *row, now) for row in rows])


def _update_counters(db: apsw.Connection, of: SqliteCollection, change: Change) -> None:
    db.execute(SQL["count"], {"collection": of.row, **change.totals})
    db.executemany(SQL["count_access"], change.by_access)


# -- the embedding model -------------------------------------------------------------------------------


def _ensure_model(
    db: apsw.Connection,
    into: SqliteCollection,
    name: str,
    changed: Sequence[IndexedDocument],
    model: str | None,
) -> SqliteCollection:
    """Give the collection the model of its first write, and refuse any other."""
    if has_model(into.statistics, model):
        return into
    set_model(db, into.row, model, None if model is None else find_dimension(changed))
    return read_collection(db, name)


def set_model(db: apsw.Connection, collection: int, model: str | None, dimension: int | None) -> None:
    """Store the model, and resize the collection's blocks to the dimension of its vectors."""
    db.execute(SQL["set_model"], {"collection": collection, "model": model, "dimension": dimension})
    size = vectors.BLOCK_ROWS * 8 * vectors.count_words(dimension or 0)
    db.execute(SQL["resize_blocks"], {"collection": collection, "size": size, "rows": vectors.BLOCK_ROWS})
