"""The writing verbs of the SQLite store: functions of a connection in a transaction that the store began."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

import apsw

from waylore.store import rows as columns
from waylore.store import vectors
from waylore.store.checks import dimension_of, is_known
from waylore.store.rows import Change
from waylore.store.sql import load_queries
from waylore.store.sqlite.delete import remove
from waylore.store.sqlite.insert import insert
from waylore.store.sqlite.scope import Collection, by_ids, collection
from waylore.types.knowledge import Contribution
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")


def write(db: apsw.Connection, name: str, contributions: Sequence[Contribution], *, model: str | None) -> int:
    """Write what is new or changed; return how many contributions that were."""
    into = collection(db, name)
    known = {
        id_.hex(): (row, digest)
        for id_, row, digest in by_ids(
            db, "digests", [c.document.id for c in contributions], collection=into.row
        )
    }
    fresh = {c.document.id: (c, bytes.fromhex(c.digest)) for c in contributions}
    changed = [(c, digest) for id_, (c, digest) in fresh.items() if id_ not in known or known[id_][1] != digest]
    if not changed:
        return 0
    change = Change()
    into = _with_model(db, into, name, [c for c, _ in changed], model)
    replaced = [known[c.document.id][0] for c, _ in changed if c.document.id in known]
    remove(db, into, replaced, change)
    insert(db, into, changed, change)
    _count(db, into, change)
    return len(changed)


def forget(db: apsw.Connection, name: str, documents: Sequence[str]) -> Receipt:
    """Remove documents and say what went."""
    of = collection(db, name)
    rows = [row for _, row, _ in by_ids(db, "digests", documents, collection=of.row)]
    change = Change()
    receipt = remove(db, of, rows, change)
    if rows:
        _count(db, of, change)
    if rows and of.statistics.documents + change.documents == 0:
        set_model(db, of.row, None, None)  # an empty collection is like a new one
    return receipt


def keep_fingerprints(db: apsw.Connection, collection: int, fingerprints: Mapping[str, str]) -> None:
    """Remember what files were, now that all of what they say is written."""
    db.executemany(SQL["set_fingerprint"], [(collection, *file) for file in fingerprints.items()])


def touch(db: apsw.Connection, collection: int, kind: str, ids: Sequence[str], at: datetime) -> None:
    """Count a use of each, as often as it is named."""
    uses, now = Counter(ids), columns.instant(at)
    rows = by_ids(db, f"{kind}_rows", ids, collection=collection)
    db.executemany(SQL["touch"], [(kind, row, uses[id_.hex()], now) for id_, row in rows])


def _count(db: apsw.Connection, of: Collection, change: Change) -> None:
    db.execute(SQL["count"], {"collection": of.row, **asdict(change)})


# -- the embedding model -------------------------------------------------------------------------------


def _with_model(
    db: apsw.Connection,
    into: Collection,
    name: str,
    changed: Sequence[Contribution],
    model: str | None,
) -> Collection:
    """A collection has the model of its first write, and no other."""
    if is_known(into.statistics, model):
        return into
    set_model(db, into.row, model, None if model is None else dimension_of(changed))
    return collection(db, name)


def set_model(db: apsw.Connection, collection: int, model: str | None, dimension: int | None) -> None:
    """Remember the model, and empty the collection's blocks to the length of its vectors."""
    db.execute(SQL["set_model"], {"collection": collection, "model": model, "dimension": dimension})
    size = vectors.BLOCK * 8 * vectors.words(dimension or 0)
    db.execute(SQL["resize_blocks"], {"collection": collection, "size": size, "rows": vectors.BLOCK})
