"""Removing documents from the SQLite store, with all that nothing else supports any more.

Everything a document brought is taken away again, down to counters and words; cost is in proportion to it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import apsw

from waylore.store import bm25
from waylore.store.rows import Change, names_of
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import remove_vectors
from waylore.store.sqlite.insert import indexed
from waylore.store.sqlite.name_keys import remove_keys
from waylore.store.sqlite.scope import Collection, by_rows
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")


def remove(db: apsw.Connection, of: Collection, documents: Sequence[int], change: Change) -> Receipt:
    """Take away documents and whatever nothing else supports any more."""
    if not documents:
        return Receipt()
    read = by_rows(db, "passage_rows_of_documents", documents)
    passages = [row for row, *_ in read]
    tags = by_rows(db, "tags_of_documents", documents)
    _remove_mentions(db, passages, change)
    facts = _remove_facts(db, of, passages, change)
    entities = _remove_entities(db, of, documents, change)
    _remove_words(db, of.row, read, tags)
    change.length -= sum(length for *_, length, _ in read)
    remove_vectors(db, of, "passage", passages)
    went = [id_.hex() for (id_,) in by_rows(db, "delete_passages", passages)]
    change.passages -= len(went)
    accesses = by_rows(db, "document_accesses", documents)
    db.executemany(SQL["leave_access"], accesses)
    db.execute(SQL["drop_unused_accesses"], {"collection": of.row})
    by_rows(db, "delete_document_tags", documents)
    by_rows(db, "delete_fingerprints", documents)
    gone = [id_.hex() for (id_,) in by_rows(db, "delete_documents", documents)]
    change.documents -= len(gone)
    return Receipt(tuple(sorted(gone)), tuple(sorted(went)), entities, facts)


def _remove_mentions(db: apsw.Connection, passages: Sequence[int], change: Change) -> None:
    counts = by_rows(db, "mention_counts", passages)
    db.executemany(SQL["add_entity_passages"], [(-n, row) for row, n in counts])
    by_rows(db, "delete_mentions", passages)
    change.mentions -= sum(n for _, n in counts)


def _remove_facts(
    db: apsw.Connection, of: Collection, passages: Sequence[int], change: Change
) -> tuple[str, ...]:
    touched = [row for (row,) in by_rows(db, "facts_of_passage_rows", passages)]
    db.executemany(SQL["delete_edge"], by_rows(db, "edge_keys", touched))
    by_rows(db, "delete_supports", passages)
    by_rows(db, "unstage_supports", passages, collection=of.row)
    gone = by_rows(db, "delete_unsupported_facts", touched)
    rows = {row for row, _ in gone}
    by_rows(db, "insert_edges", [row for row in touched if row not in rows])
    by_rows(db, "delete_usage", list(rows), kind="fact")
    change.facts -= len(gone)
    return tuple(sorted(id_.hex() for _, id_ in gone))


def _remove_entities(
    db: apsw.Connection, of: Collection, documents: Sequence[int], change: Change
) -> tuple[str, ...]:
    profiles = by_rows(db, "profiles_of_documents", documents)
    names = [
        (of.row, name, entity, access)
        for entity, access, told, aliases in profiles
        for name in names_of(told, json.loads(aliases))
    ]
    db.executemany(SQL["remove_name"], names)
    db.executemany(SQL["delete_unused_name"], names)
    remove_keys(db, of.row, [(told, access, entity) for entity, access, told, _ in profiles])
    by_rows(db, "delete_profiles", documents)
    gone = by_rows(db, "delete_unsupported_entities", [entity for entity, *_ in profiles])
    remove_vectors(db, of, "entity", [row for row, _ in gone])
    change.entities -= len(gone)
    return tuple(sorted(id_.hex() for _, id_ in gone))


def _remove_words(db: apsw.Connection, of: int, read: Sequence[Any], tags: Sequence[Any]) -> None:
    """Take passages from the inverted index, told from what was written: words may be read otherwise today."""
    terms = {row: bm25.rows(packed) for row, *_, packed in read}
    frequency = Counter(term for of_passage in terms.values() for term in of_passage)
    db.executemany(SQL["leave_term"], [(n, term) for term, n in frequency.items()])
    by_rows(db, "delete_unused_terms", list(frequency))
    told = [
        (row, indexed(of, terms[row], access, [tag for owner, tag in tags if owner == document]))
        for row, document, access, *_ in read
    ]
    db.executemany(SQL["delete_words"], told)
    by_rows(db, "delete_passage_terms", list(terms))
