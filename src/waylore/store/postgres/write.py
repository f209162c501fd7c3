"""The writing verbs of the PostgreSQL store: functions of a connection in a transaction that it began."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from waylore.store import rows as columns
from waylore.store.checks import dimension_of, is_known
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.delete import remove
from waylore.store.postgres.insert import insert
from waylore.store.postgres.scope import Collection, by_ids, many, run
from waylore.store.rows import Change
from waylore.types.identity import identity
from waylore.types.knowledge import Contribution
from waylore.types.results import Receipt


def write(db: Connection, into: Collection, contributions: Sequence[Contribution], *, model: str | None) -> int:
    """Write what is new or changed; return how many contributions that were."""
    fresh = {c.document.id: (c, c.digest) for c in contributions}
    known = {id_.hex(): (digest.hex(), access) for id_, digest, access in _known(db, into, list(fresh))}
    changed = [(c, digest) for id_, (c, digest) in fresh.items() if known.get(id_, ("",))[0] != digest]
    if not changed:
        return 0
    change = Change()
    into = _with_model(db, into, [c for c, _ in changed], model)
    replaced = [c.document.id for c, _ in changed if c.document.id in known]
    remove(db, into.key, replaced, [known[id_][1] for id_ in replaced], change)
    insert(db, into, changed, change)
    _count(db, into.key, change)
    return len(changed)


def forget(db: Connection, of: Collection, documents: Sequence[str]) -> Receipt:
    """Remove documents and say what went."""
    known = {id_.hex(): access for id_, _, access in _known(db, of, documents)}
    change = Change()
    receipt = remove(db, of.key, list(known), list(known.values()), change)
    if known:
        _count(db, of.key, change)
    if known and of.statistics.documents + change.documents == 0:
        set_model(db, of.key, None, None)  # an empty collection is like a new one
    return receipt


def keep_fingerprints(db: Connection, collection: int, fingerprints: Mapping[str, str]) -> None:
    """Remember what files were, now that all of what they say is written."""
    rows = [(identity("file", uri), uri, fingerprint) for uri, fingerprint in fingerprints.items()]
    many(db, "set_fingerprint", collection, rows)


def touch(db: Connection, collection: int, kind: str, ids: Sequence[str], at: datetime) -> None:
    """Count a use of each, as often as it is named."""
    uses, now = Counter(ids), columns.instant(at)
    found = [id_.hex() for id_, _ in by_ids(db, f"{kind}_rows", ids, collection=collection)]
    many(db, "touch", collection, [(id_, uses[id_], now) for id_ in found])


def set_model(db: Connection, collection: int, model: str | None, dimension: int | None) -> None:
    """Remember the model."""
    run(db, "set_model", collection=collection, model=model, dimension=dimension)


def _known(db: Connection, of: Collection, documents: Sequence[str]) -> list[tuple[bytes, bytes, int]]:
    return by_ids(db, "digests", documents, collection=of.key)


def _count(db: Connection, collection: int, change: Change) -> None:
    run(db, "count", collection=collection, **asdict(change))


def _with_model(
    db: Connection, into: Collection, changed: Sequence[Contribution], model: str | None
) -> Collection:
    """A collection has the model of its first write, and no other."""
    if is_known(into.statistics, model):
        return into
    dimension = None if model is None else dimension_of(changed)
    set_model(db, into.key, model, dimension)
    return replace(into, statistics=replace(into.statistics, model=model, dimension=dimension))
