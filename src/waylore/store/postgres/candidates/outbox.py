"""The outbox of an index: items that a write has changed, until the index has confirmed the change.

A writer adds rows in its own transaction. A feeder reads the current state of the items, sends it to the index, waits
until the index has confirmed it, and deletes the rows. So it does not matter how often or in which order an item is
sent, and a feeder that is killed is continued by the next one. A lock lets one feeder at a time work on a collection.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from waylore.store.postgres.connections import Connection
from waylore.store.postgres.scope import PostgresCollection, run, run_by_ids
from waylore.store.qdrant.points import Point, hash_word, shorten
from waylore.store.qdrant.queries import MANY_ACCESSES, IndexPlace
from waylore.store.rows import Change

if TYPE_CHECKING:  # its HTTP client is optional
    from waylore.store.qdrant.index import QdrantIndex

PASSAGE, ENTITY, TENANT = 0, 1, 2  # kinds of rows
BATCH = 500  # items that are sent at a time
MAX_ACCESSES = 64  # permissions of an entity that the index lists
MAX_COUNTED = 100_000  # rows that are counted to tell how far the index is behind
Row = Sequence[Any]  # kind, id, permission, version


def queue_changes(db: Connection, collection: int, change: Change) -> None:
    """Add the items of a change to the outbox, in the transaction that changes them."""
    rows = [(PASSAGE, *each) for each in change.touched_passages] + [
        (ENTITY, *each) for each in change.touched_entities
    ]
    if rows:
        kinds, ids, accesses = map(list, zip(*rows, strict=True))
        run(db, "queue_changes", collection=collection, kinds=kinds, ids=ids, accesses=accesses)


def read_next_changes(db: Connection, collection: int) -> list[Row]:
    """Return the oldest rows of the outbox."""
    found: list[Row] = run(db, "next_changes", collection=collection, limit=BATCH).fetchall()
    return found


def read_changes(db: Connection, collection: int, items: Sequence[tuple[int, str]]) -> list[Row]:
    """Return the rows of some items, given by kind and id."""
    kinds, ids = [kind for kind, _ in items], [id_ for _, id_ in items]
    found: list[Row] = run(db, "changes_of_items", collection=collection, kinds=kinds, ids=ids).fetchall()
    return found


def send_changes(
    db: Connection, of: PostgresCollection, place: IndexPlace, index: "QdrantIndex", rows: Sequence[Row]
) -> None:
    """Send the items of some rows to the index as they are now, and delete the rows."""
    for tenant in _list_ids(rows, TENANT):
        index.remove_tenant(bytes.fromhex(tenant))
    send_items(db, of, place, index, passages=_list_ids(rows, PASSAGE), entities=_list_ids(rows, ENTITY))
    kinds, ids, accesses, versions = map(list, zip(*rows, strict=True))
    ids = [id_.hex() for id_ in ids]
    run(db, "confirm_changes", collection=of.key, kinds=kinds, ids=ids, accesses=accesses, versions=versions)


def send_items(
    db: Connection,
    of: PostgresCollection,
    place: IndexPlace,
    index: "QdrantIndex",
    *,
    passages: Sequence[str] = (),
    entities: Sequence[str] = (),
) -> None:
    """Put items into the index as they are now; those that are no longer stored are removed from it."""
    points = [*_read_passages(db, of, passages), *_read_entities(db, of, entities)]
    gone = {*passages, *entities} - {point.id for point in points}
    if points:
        index.put(place, points)
    if gone:
        index.remove(place, sorted(gone))


def build_next(db: Connection, of: PostgresCollection, place: IndexPlace, index: "QdrantIndex") -> int:
    """Send the next items of an index that is being built, and store how far it is. Return how many were sent."""
    [(passages_after, entities_after)] = run(db, "build_progress", collection=of.key).fetchall()
    sent = 0
    if passages_after is not None:
        ids = _read_ids(db, "passages_to_index", of.key, passages_after)
        send_items(db, of, place, index, passages=ids)
        passages_after, sent = _get_last(ids), len(ids)
    elif entities_after is not None:
        ids = _read_ids(db, "entities_to_index", of.key, entities_after)
        send_items(db, of, place, index, entities=ids)
        entities_after, sent = _get_last(ids), len(ids)
    bound = {"passages_after": _to_text(passages_after), "entities_after": _to_text(entities_after)}
    run(db, "set_build_progress", collection=of.key, **bound)
    return sent


def list_stored(db: Connection, collection: int, items: Sequence[tuple[int, str]]) -> set[str]:
    """Return the ids of those of some items, given by kind and id, that are stored."""
    queries = {PASSAGE: "passage_rows", ENTITY: "entity_rows"}
    rows = [
        row
        for kind, query in queries.items()
        for row in run_by_ids(db, query, [id_ for of, id_ in items if of == kind], collection=collection)
    ]
    return {id_.hex() for id_, *_ in rows}


def count_pending(db: Connection, collection: int) -> tuple[int, float]:
    """Return how many changes the index does not have, up to `MAX_COUNTED`, and the age of the oldest in seconds."""
    [(count, seconds)] = run(db, "count_pending", collection=collection, limit=MAX_COUNTED).fetchall()
    return count, seconds


def _list_ids(rows: Iterable[Row], kind: int) -> list[str]:
    return list(dict.fromkeys(id_.hex() for each, id_, *_ in rows if each == kind))


def _read_ids(db: Connection, query: str, collection: int, after: bytes) -> list[str]:
    found = run(db, query, collection=collection, after=after.hex(), limit=BATCH).fetchall()
    return [id_.hex() for (id_,) in found]


def _get_last(ids: Sequence[str]) -> bytes | None:
    return bytes.fromhex(ids[-1]) if len(ids) == BATCH else None


def _to_text(id_: bytes | None) -> str | None:
    return None if id_ is None else id_.hex()


def _read_passages(db: Connection, of: PostgresCollection, ids: Sequence[str]) -> list[Point]:
    bound = {"collection": of.key, "own_vectors": of.own_vectors, "ids": list(ids)}
    rows = run(db, "points_of_passages", **bound).fetchall() if ids else []
    made = (
        Point(
            id=id_.hex(),
            accesses=[access],
            codes=codes,
            terms=terms,
            length=length,
            tags=[shorten(tag) for tag in tags],
            at=at,
            speaker=hash_word("speaker", speaker) if speaker else None,
            expires=expires,
        )
        for id_, access, at, speaker, expires, codes, length, terms, tags in rows
    )
    return [point for point in made if point.codes or point.terms]  # a silent passage has neither


def _read_entities(db: Connection, of: PostgresCollection, ids: Sequence[str]) -> list[Point]:
    bound = {"collection": of.key, "own_vectors": of.own_vectors, "ids": list(ids), "most": MAX_ACCESSES + 1}
    rows = run(db, "points_of_entities", **bound).fetchall() if ids else []
    return [
        Point(id=id_.hex(), accesses=_shorten_list(accesses), codes=codes, is_name=True)
        for id_, codes, accesses in rows
        if accesses
    ]


def _shorten_list(accesses: Sequence[int]) -> Sequence[int]:
    return accesses if len(accesses) <= MAX_ACCESSES else [MANY_ACCESSES]
