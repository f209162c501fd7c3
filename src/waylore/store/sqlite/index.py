"""Index packs by entity and by fact: the rows of mentions, assertions and edges that packs give.

`store.pack_index` computes the rows from the packs. This module reads and writes them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter

import apsw
import numpy as np

from waylore.store import pack_index
from waylore.store.pack_index import PackIndex, Row, Strengths, list_edges, strengthen
from waylore.store.packing import EncodedParts, compute_fact_keys, split_ids
from waylore.store.packs import Packs
from waylore.store.rows import make_sort_key
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import run_by_facts, run_by_ids

SQL = load_queries("waylore.store.sqlite")
PACKS_AT_ONCE = 1_000
KEY_COLUMNS = 6  # of an assertion


def index_packs(
    packs: Packs,
    collection: int,
    accesses: Sequence[int],
    ids: Sequence[str],
    rows: Sequence[int],
    entities: Mapping[str, int],
    said: Sequence[int] = (),
) -> PackIndex:
    """Return the rows of packs, given with the permissions, ids and rows of their passages, and the rows of entities.

    An entity that is missing has the row 0. An assertion begins with the collection. `said` are the times of the
    passages.
    """
    passages = [(make_sort_key(bytes.fromhex(id_)), row) for id_, row in zip(ids, rows, strict=True)]
    numbers = [entities.get(id_, 0) for id_ in split_ids(packs.entities.tobytes())]
    keys = compute_fact_keys(packs.ids).tolist()
    index = pack_index.index_packs(packs, accesses, passages, keys, numbers, said)
    return replace(index, assertions=[(collection, *row) for row in index.assertions])


def find_entity_rows(db: apsw.Connection, collection: int, packs: Packs) -> dict[str, int]:
    """Return the rows of the entities that packs name, by id."""
    found = run_by_ids(db, "entity_rows", split_ids(packs.entities[1:].tobytes()), collection=collection)
    return {id_.hex(): row for id_, row in found}


def insert_packs(db: apsw.Connection, rows: Sequence[int], encoded: Sequence[EncodedParts]) -> None:
    """Insert the packs of passages, given by row, and the vectors of their statements."""
    pairs = list(zip(rows, encoded, strict=True))
    db.executemany(SQL["insert_pack"], [(row, each.facts, each.pack) for row, each in pairs])
    db.executemany(SQL["insert_statement_vectors"], [(row, each.codes) for row, each in pairs if each.codes])


def insert_mentions(db: apsw.Connection, mentions: Sequence[Row]) -> None:
    """Insert mentions, and count the passages of each entity."""
    db.executemany(SQL["insert_mention"], sorted(mentions))
    _count_mentions(db, mentions, 1)


def delete_mentions(db: apsw.Connection, mentions: Sequence[Row]) -> None:
    """Delete mentions, and subtract them from the counts."""
    db.executemany(SQL["delete_mention"], sorted(mentions))
    counted = _count_mentions(db, mentions, -1)
    db.executemany(SQL["delete_unused_entity_count"], counted)


def _count_mentions(db: apsw.Connection, mentions: Iterable[Row], sign: int) -> list[tuple[int, int]]:
    counts = Counter((entity, access) for entity, access, *_ in mentions)
    totals: Counter[int] = Counter()
    for (entity, _), count in counts.items():
        totals[entity] += sign * count
    db.executemany(SQL["add_entity_passages"], [(count, entity) for entity, count in totals.items()])
    db.executemany(SQL["add_entity_count"], [(*key, sign * count) for key, count in counts.items()])
    return list(counts)


def insert_assertions(
    db: apsw.Connection, collection: int, index: PackIndex, statement: str = SQL["insert_assertion"]
) -> int:
    """Insert assertions and the edges of their facts. Return how many of the facts are new."""
    before = read_strengths(db, collection, index)
    db.executemany(statement, sorted(index.assertions, key=itemgetter(1, 2, 3, 4, 5)))
    stated = ((fact, access, strength) for _, fact, _, strength, _, _, _, access, *_ in index.assertions)
    after = strengthen(before, stated)
    _update_edges(db, index, before, after)
    return len(index.ends) - len({fact for fact, _ in before})


def delete_assertions(db: apsw.Connection, collection: int, index: PackIndex) -> list[int]:
    """Delete assertions, and the edges of facts that lose one. Return the facts that no passage asserts any more."""
    before = read_strengths(db, collection, index)
    db.executemany(SQL["delete_assertion"], [row[:KEY_COLUMNS] for row in index.assertions])
    after = read_strengths(db, collection, index)
    _update_edges(db, index, before, after)
    return sorted(set(index.ends) - {fact for fact, _ in after})


def read_strengths(db: apsw.Connection, collection: int, index: PackIndex) -> Strengths:
    """Return the strength of each fact for each permission: that of its strongest assertion."""
    found = run_by_facts(db, "strengths", np.array(index.facts, np.int64), collection=collection)
    return {(fact, access): strength for fact, access, strength in found}


def _update_edges(db: apsw.Connection, index: PackIndex, before: Strengths, after: Strengths) -> None:
    db.executemany(SQL["delete_edge"], [edge[:4] for edge in list_edges(index.ends, before, after)])
    db.executemany(SQL["insert_edge"], sorted(list_edges(index.ends, after, before)))


def fill_series(db: apsw.Connection) -> None:
    """Compute the subject and predicate, and the beginning, of every assertion from its pack. A migration runs it."""
    for collection, rows in groupby(db.execute(SQL["all_packs"]), key=itemgetter(0)):
        while batch := list(islice(rows, PACKS_AT_ONCE)):
            _, accesses, ids, numbers, said, _, blobs = zip(*batch, strict=True)
            index = index_packs(Packs(blobs), collection, accesses, [id_.hex() for id_ in ids], numbers, {}, said)
            db.executemany(SQL["set_series"], [(*row[:KEY_COLUMNS], *row[-2:]) for row in index.assertions])
