"""Remove documents from the SQLite store, with everything that no other document supports.

Counters and words are removed too. The cost is in proportion to the removed documents.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np

from waylore.store import bm25
from waylore.store.packing import compute_fact_keys, split_ids
from waylore.store.packs import Packs
from waylore.store.rows import Change, list_names
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import remove_vectors
from waylore.store.sqlite.index import delete_assertions, delete_mentions, find_entity_rows, index_packs
from waylore.store.sqlite.insert import join_index_words
from waylore.store.sqlite.name_keys import remove_keys
from waylore.store.sqlite.scope import SqliteCollection, run_by_rows
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")


def delete_documents(db: apsw.Connection, of: SqliteCollection, documents: Sequence[int], change: Change) -> Receipt:
    """Remove documents, given by row, with their enrichments and everything that no other document supports."""
    if not documents:
        return Receipt()
    documents = sorted({*documents, *(row for (row,) in run_by_rows(db, "enrichments", documents))})
    read = run_by_rows(db, "passage_rows_of_documents", documents)
    passages = [row for row, *_ in read]
    tags = run_by_rows(db, "tags_of_documents", documents)
    facts = _remove_packs(db, of, read, change)
    entities = _remove_entities(db, of, documents, change)
    _remove_words(db, of.row, read, tags)
    for _, _, access, length, _, _, is_turn, is_silent, _ in read:
        change.passages[access] -= not is_silent
        change.length[access] -= length
        change.turns[access] -= is_turn
    remove_vectors(db, of, "passage", passages)
    removed_passages = [id_.hex() for (id_,) in run_by_rows(db, "delete_passages", passages)]
    accesses = run_by_rows(db, "document_accesses", documents)
    db.executemany(SQL["leave_access"], accesses)
    db.execute(SQL["drop_unused_accesses"], {"collection": of.row})
    run_by_rows(db, "delete_document_tags", documents)
    run_by_rows(db, "delete_fingerprints", documents)
    removed = [id_.hex() for (id_,) in run_by_rows(db, "delete_documents", documents)]
    change.documents -= len(removed)
    return Receipt(tuple(sorted(removed)), tuple(sorted(removed_passages)), entities, facts)


def _remove_packs(db: apsw.Connection, of: SqliteCollection, read: Sequence[Any], change: Change) -> tuple[str, ...]:
    """Remove the packs of passages, and return the ids of the facts that no other passage asserts."""
    rows = [row for row, *_ in read]
    packs = Packs([pack for *_, pack in read])
    accesses, ids = [each[2] for each in read], [each[5].hex() for each in read]
    index = index_packs(packs, of.row, accesses, ids, rows, find_entity_rows(db, of.row, packs))
    delete_mentions(db, index.mentions)
    change.mentions -= len(index.mentions)
    change.assertions.subtract(index.stated)
    gone = delete_assertions(db, of.row, index)
    run_by_rows(db, "delete_packs", rows)
    run_by_rows(db, "delete_statement_vectors", rows)
    run_by_rows(db, "unstage", rows, collection=of.row, kind="fact")
    run_by_rows(db, "delete_usage", gone, collection=of.row, kind="fact")
    change.facts -= len(gone)
    facts = packs.ids[: packs.typed]
    return tuple(sorted(set(split_ids(facts[np.isin(compute_fact_keys(facts), gone)].tobytes()))))


def _remove_entities(
    db: apsw.Connection, of: SqliteCollection, documents: Sequence[int], change: Change
) -> tuple[str, ...]:
    profiles = run_by_rows(db, "profiles_of_documents", documents)
    names = [
        (of.row, name, entity, access)
        for entity, access, given_name, aliases in profiles
        for name in list_names(given_name, json.loads(aliases))
    ]
    db.executemany(SQL["remove_name"], names)
    db.executemany(SQL["delete_unused_name"], names)
    remove_keys(db, of.row, [(given_name, access, entity) for entity, access, given_name, _ in profiles])
    run_by_rows(db, "delete_profiles", documents)
    gone = run_by_rows(db, "delete_unsupported_entities", [entity for entity, *_ in profiles])
    remove_vectors(db, of, "entity", [row for row, _ in gone])
    change.entities -= len(gone)
    return tuple(sorted(id_.hex() for _, id_ in gone))


def _remove_words(db: apsw.Connection, of: int, read: Sequence[Any], tags: Sequence[Any]) -> None:
    """Remove passages from the inverted index.

    The stored terms are removed, because the current version may split the text into
    other terms.
    """
    terms = {row: bm25.unpack_terms(packed) for row, _, _, _, packed, *_ in read}
    counts = Counter((term, access) for row, _, access, *_ in read for term in terms[row])
    db.executemany(SQL["add_term_count"], [(term, access, -n) for (term, access), n in counts.items()])
    db.executemany(SQL["delete_unused_term_count"], list(counts))
    db.executemany(SQL["leave_term"], [(n, term) for (term, _), n in counts.items()])
    run_by_rows(db, "delete_unused_terms", [term for term, _ in counts])
    words = [
        (row, join_index_words(of, terms[row], access, [tag for owner, tag in tags if owner == document]))
        for row, document, access, *_, is_silent, _ in read
        if not is_silent
    ]
    db.executemany(SQL["delete_words"], words)
    run_by_rows(db, "delete_passage_terms", list(terms))
