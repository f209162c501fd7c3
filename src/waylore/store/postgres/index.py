"""Index packs by entity and by fact: the rows of mentions, assertions and edges that packs give.

`store.pack_index` computes the rows from the packs. This module reads and writes them. It waits for the server only to
read strengths.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import psycopg
from psycopg.types.string import ByteaBinaryLoader

from waylore.store import pack_index
from waylore.store.pack_index import PackIndex, Row, Strengths, list_edges, strengthen
from waylore.store.packing import EncodedParts, split_ids
from waylore.store.packs import Packs
from waylore.store.postgres.connections import Connection, run_by_column
from waylore.store.postgres.steps import LOWEST_ID, to_array
from waylore.store.rows import group_pairs
from waylore.store.sql import load_queries

SQL = load_queries("waylore.store.postgres")
PACKS_AT_ONCE = 1_000
KEY_COLUMNS = 4  # of an assertion, without the collection


def index_packs(packs: Packs, accesses: Sequence[int], ids: Sequence[str], said: Sequence[int] = ()) -> PackIndex:
    """Return the rows of packs, given with the permissions, ids and times of their passages."""
    facts, entities = split_ids(packs.ids.tobytes()), split_ids(packs.entities.tobytes())
    return pack_index.index_packs(packs, accesses, [(id_,) for id_ in ids], facts, entities, said)


def insert_packs(db: Connection, collection: int, ids: Sequence[str], encoded: Sequence[EncodedParts]) -> Packs:
    """Insert the packs of passages and the vectors of their statements, and return the packs decoded."""
    packs = Packs([each.pack for each in encoded])
    facts = iter(split_ids(packs.ids[packs.by_pack].tobytes()))
    pairs = list(zip(ids, encoded, strict=True))
    rows = [(id_, to_array(islice(facts, each.facts)), each.pack) for id_, each in pairs]
    run_by_column(db, SQL["insert_pack"], collection, rows)
    vectors = [(id_, each.codes) for id_, each in pairs if each.codes]
    run_by_column(db, SQL["insert_statement_vectors"], collection, vectors)
    return packs


def insert_mentions(db: Connection, collection: int, mentions: Sequence[Row]) -> None:
    """Insert mentions, and count the passages of each entity."""
    run_by_column(db, SQL["insert_mention"], collection, sorted(mentions))
    _count_mentions(db, collection, mentions, 1)


def delete_mentions(db: Connection, collection: int, mentions: Sequence[Row]) -> None:
    """Delete mentions, and subtract them from the counts."""
    run_by_column(db, SQL["delete_mention"], collection, mentions)
    counted = _count_mentions(db, collection, mentions, -1)
    for access, entities in group_pairs((access, entity) for entity, access in counted).items():
        bound = {"collection": collection, "access": access, "ids": to_array(entities)}
        db.execute(SQL["delete_unused_entity_count"], bound)


def _count_mentions(db: Connection, collection: int, mentions: Iterable[Row], sign: int) -> list[tuple[str, int]]:
    counts = Counter((entity, access) for entity, access, *_ in mentions)
    totals: Counter[str] = Counter()
    for (entity, _), count in counts.items():
        totals[entity] += sign * count
    run_by_column(db, SQL["add_entity_passages"], collection, sorted(totals.items()))
    rows = [(*key, sign * count) for key, count in sorted(counts.items())]
    run_by_column(db, SQL["add_entity_count"], collection, rows)
    return list(counts)


def insert_assertions(db: Connection, collection: int, index: PackIndex) -> int:
    """Insert assertions and the edges of their facts. Return how many of the facts are new."""
    before = read_strengths(db, collection, index)
    run_by_column(db, SQL["insert_assertion"], collection, sorted(index.assertions, key=itemgetter(0, 1, 2, 3)))
    stated = ((fact, access, strength) for fact, _, strength, _, _, access, *_ in index.assertions)
    _update_edges(db, collection, index, before, strengthen(before, stated))
    return len(index.ends) - len({fact for fact, _ in before})


def delete_assertions(db: Connection, collection: int, index: PackIndex) -> list[str]:
    """Delete assertions, and the edges of facts that lose one. Return the facts that no passage asserts any more."""
    before = read_strengths(db, collection, index)
    run_by_column(db, SQL["delete_assertion"], collection, [row[:KEY_COLUMNS] for row in index.assertions])
    after = read_strengths(db, collection, index)
    _update_edges(db, collection, index, before, after)
    return sorted(set(index.ends) - {fact for fact, _ in after})


def read_strengths(db: Connection, collection: int, index: PackIndex) -> Strengths:
    """Return the strength of each fact for each permission: that of its strongest assertion."""
    if not index.ends:
        return {}
    bound = {"collection": collection, "ids": to_array(index.facts)}
    found = db.execute(SQL["strengths"], bound, binary=True).fetchall()
    return {(fact.hex(), access): strength for fact, access, strength in found}


def _update_edges(db: Connection, collection: int, index: PackIndex, before: Strengths, after: Strengths) -> None:
    gone = [edge[:4] for edge in list_edges(index.ends, before, after)]
    run_by_column(db, SQL["delete_edge"], collection, gone)
    run_by_column(db, SQL["insert_edge"], collection, sorted(list_edges(index.ends, after, before)))


def index_batch(packs: Packs, batch: Sequence[Any]) -> PackIndex:
    """Return the rows that packs must have, given with the rows of `all_packs`."""
    ids, accesses, said = ([row[column] for row in batch] for column in range(3))
    return index_packs(packs, accesses, [id_.hex() for id_ in ids], said)


def fill_series(db: psycopg.Connection[Any]) -> None:
    """Compute the subject and predicate, and the beginning, of every assertion from its pack. A migration runs it."""
    statements = load_queries("waylore.store.postgres", file="series")
    reader = db.cursor(binary=True)
    reader.adapters.register_loader("uuid", ByteaBinaryLoader)
    db.execute(statements["show_all_collections"])
    collections = reader.execute(statements["collections"]).fetchall()
    db.execute(statements["show_own_collection"])
    for (collection,) in collections:
        db.execute(statements["begin"], {"collection": str(collection)})
        bound = {"collection": collection, "after": LOWEST_ID, "limit": PACKS_AT_ONCE}
        while batch := reader.execute(SQL["all_packs"], bound).fetchall():
            index = index_batch(Packs([pack for *_, pack in batch]), batch)
            rows = [(*row[:KEY_COLUMNS], *row[-2:]) for row in index.assertions]
            run_by_column(db, SQL["set_series"], collection, rows)
            bound["after"] = batch[-1][0].hex()
    db.execute(statements["begin"], {"collection": ""})
