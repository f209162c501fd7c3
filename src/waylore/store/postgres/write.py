"""Write to the PostgreSQL store and forget: functions of a connection, inside a transaction that the store has begun.

A document is removed with everything that no other document supports, counters and words included. The cost is in
proportion to the removed documents.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from waylore.store import bm25
from waylore.store import rows as columns
from waylore.store.checks import admit_documents, check_changes, find_dimension, has_model
from waylore.store.packs import Packs
from waylore.store.postgres.candidates.outbox import queue_changes
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.index import delete_assertions, delete_mentions, index_packs
from waylore.store.postgres.insert import insert_documents
from waylore.store.postgres.name_keys import remove_keys
from waylore.store.postgres.scope import PostgresCollection, run, run_by_ids, run_many, run_without_rows
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
from waylore.store.rows import Change, group_pairs, list_names
from waylore.types.audit import AuditEntry, Verb
from waylore.types.author import Author
from waylore.types.identity import get_file, identity, make_enrichment_uri
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt


def write(
    db: Connection,
    into: PostgresCollection,
    documents: Sequence[IndexedDocument],
    *,
    author: Author,
    model: str | None,
    verb: Verb = "write",
) -> int:
    """Write new and changed documents, and return their number; with the verb `release` only new ones."""
    fresh = {c.document.id: (c, c.digest) for c in admit_documents(author, documents)}
    own = _read_own(db, into, list(fresh), author)
    known = {id_.hex(): (digest.hex(), access, labels) for id_, digest, access, labels in own}
    kept = known if verb == "release" else {id_ for id_, (digest, *_) in known.items() if digest == fresh[id_][1]}
    changed = [each for id_, each in fresh.items() if id_ not in kept]
    if not changed:
        return 0
    change = Change()
    into = _ensure_model(db, into, [c for c, _ in changed], model)
    replaced = [c.document.id for c, _ in changed if c.document.id in known]
    gone = _delete_documents(db, into, replaced, [known[id_][1] for id_ in replaced], change).documents
    changed += [fresh[id_] for id_ in gone if id_ in fresh and id_ not in replaced]  # enrichments
    insert_documents(db, into, changed, change)
    _update_counters(db, into, change)
    before = {id_: labels for id_, (*_, labels) in known.items()}
    labels = {c.document.id: columns.dump_labels(c.document.labels) for c, _ in changed}
    for entry in list_write_entries(labels, before, verb):
        add_entry(db, into.key, entry.verb, author, entry.documents, before=entry.before, after=entry.after)
    return len(changed)


def forget(
    db: Connection,
    of: PostgresCollection,
    documents: Sequence[str],
    *,
    author: Author,
    verb: Verb = "forget",
    digests: Mapping[str, str] = NO_DIGESTS,
) -> Receipt:
    """Remove documents and return a receipt. Those with another digest than a given one stay."""
    found = _read_own(db, of, documents, author)
    own = [row for row in found if digests.get(row[0].hex(), row[1].hex()) == row[1].hex()]
    known = {id_.hex(): access for id_, _, access, _ in own}
    change = Change()
    receipt = _delete_documents(db, of, list(known), list(known.values()), change)
    if known:
        _update_counters(db, of, change)
        add_entry(db, of.key, verb, author, receipt.documents, before=[labels for *_, labels in own])
    if known and of.statistics.documents + change.documents == 0:
        set_model(db, of.key, None, None)  # an empty collection has no model, like a new one
    return receipt


def find_receipt(db: Connection, collection: int, request: str, *, author: str | None = None) -> Receipt | None:
    """Return the record of a request; None if it does not exist. With an author, only its own records count."""
    rows = run(db, "receipt", collection=collection, id=request, now=get_now(), author=author).fetchall()
    return next((read_record(request, row) for row in rows), None)


def add_receipt(db: Connection, collection: int, request: str, receipt: Receipt, author: Author) -> Receipt:
    """Record the changes of a request, delete old records, and return the receipt with its id."""
    bound = {"collection": collection, **bind_record(request, receipt, author)}
    run(db, "delete_old_receipts", collection=collection, now=bound.pop("now"))
    run(db, "add_receipt", **bound)
    mark_recorded()
    return replace(receipt, id=request)


def add_entry(
    db: Connection,
    collection: int,
    verb: Verb,
    author: Author,
    documents: Sequence[str],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> None:
    """Add a change to the audit log; labels are given in JSON."""
    last = run(db, "last_audit", collection=collection).fetchone()
    entry = bind_entry(last, verb, author, documents, before=before, after=after)
    run(db, "add_audit", collection=collection, **entry)


def read_audit(db: Connection, collection: int, after: int, limit: int) -> tuple[AuditEntry, ...]:
    """Return entries of the audit log, oldest first."""
    return tuple(map(read_entry, run(db, "audit", collection=collection, after=after, limit=limit).fetchall()))


def store_fingerprints(db: Connection, collection: int, fingerprints: Mapping[str, str], *, author: Author) -> None:
    """Store the fingerprints of files, after all their documents are written."""
    files = list(fingerprints) if author.is_limited else []
    found = (run(db, "labels_of_file", collection=collection, file=file).fetchall() for file in files)
    check_changes(author, (row for rows in found for row in rows))
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
) -> list[tuple[bytes, bytes, int, str]]:
    """Return the id, digest, permission and labels of stored documents, if the author may change all of them."""
    stored = run_by_ids(db, "digests", documents, collection=of.key)
    check_changes(author, (row[-2:] for row in stored))
    return [(id_, digest, access, labels) for id_, digest, access, labels, _ in stored]


def _update_counters(db: Connection, of: PostgresCollection, change: Change) -> None:
    """Add a change to the counters, and to the outbox if the collection has an index."""
    run(db, "count", collection=of.key, **change.totals)
    run_many(db, "count_access", of.key, change.by_access)
    if of.index:
        queue_changes(db, of.key, change)


def _ensure_model(
    db: Connection, into: PostgresCollection, changed: Sequence[IndexedDocument], model: str | None
) -> PostgresCollection:
    """Give the collection the model of its first write, and refuse any other."""
    if has_model(into.statistics, model):
        return into
    dimension = None if model is None else find_dimension(changed)
    set_model(db, into.key, model, dimension)
    return replace(into, statistics=replace(into.statistics, model=model, dimension=dimension))


# -- removing documents --------------------------------------------------------------------------------


def _delete_documents(
    db: Connection, collection: PostgresCollection, documents: Sequence[str], accesses: Sequence[int], change: Change
) -> Receipt:
    """Remove documents, given with their permissions, with their enrichments and all that no other supports."""
    if not documents:
        return Receipt()
    of = collection.key
    added = run(db, "enrichments", collection=of, addresses=list(map(make_enrichment_uri, documents))).fetchall()
    known = dict(zip(documents, accesses, strict=True)) | {id_.hex(): access for id_, access in added}
    documents, accesses = list(known), list(known.values())
    gone = run_by_ids(db, "delete_passages", documents, collection=of)
    passages = [id_.hex() for id_, *_ in gone]
    facts = _remove_packs(db, of, {id_.hex(): access for id_, _, access, *_ in gone}, change)
    entities = _remove_entities(db, collection, documents, change)
    _remove_words(db, of, {number: access for _, number, access, *_ in gone}, change)
    run_without_rows(db, "delete_passage_vectors", of, passages, own_vectors=collection.own_vectors)
    run_without_rows(db, "delete_usage", of, passages)
    run_without_rows(db, "unstage", of, passages, kind="passage")
    change.touched_passages.update((id_.hex(), access) for id_, _, access, *_ in gone)
    change.passages.subtract(access for _, _, access, _, is_silent in gone if not is_silent)
    change.turns.subtract(access for _, _, access, is_turn, _ in gone if is_turn)
    run_many(db, "leave_access", of, list(Counter(accesses).items()))
    run(db, "drop_unused_accesses", collection=of)
    run_without_rows(db, "delete_document_tags", of, documents)
    uris = [uri for _, uri in run_by_ids(db, "delete_documents", documents, collection=of)]
    run_without_rows(db, "delete_fingerprints", of, [identity("file", get_file(uri)) for uri in uris])
    change.documents -= len(uris)
    return Receipt(tuple(sorted(documents)), tuple(sorted(passages)), entities, facts)


def _remove_packs(db: Connection, of: int, accesses: Mapping[str, int], change: Change) -> tuple[str, ...]:
    """Remove the packs of passages, given with their permissions. Return the facts that no other passage asserts."""
    gone = run_by_ids(db, "delete_packs", accesses, collection=of)
    ids = [id_.hex() for id_, _ in gone]
    index = index_packs(Packs([pack for _, pack in gone]), [accesses[id_] for id_ in ids], ids)
    delete_mentions(db, of, index.mentions)
    change.mentions -= len(index.mentions)
    facts = delete_assertions(db, of, index)
    change.assertions.subtract(index.stated)
    run_without_rows(db, "delete_statement_vectors", of, ids)
    run_without_rows(db, "unstage", of, ids, kind="fact")
    run_without_rows(db, "delete_usage", of, facts)
    change.facts -= len(facts)
    return tuple(facts)


def _remove_entities(
    db: Connection, collection: PostgresCollection, documents: Sequence[str], change: Change
) -> tuple[str, ...]:
    of = collection.key
    profiles = [
        (entity.hex(), access, given_name, json.loads(aliases))
        for entity, access, given_name, aliases in run_by_ids(db, "delete_profiles", documents, collection=of)
    ]
    names = Counter(
        (identity("name", name), entity, access)
        for entity, access, given_name, aliases in profiles
        for name in list_names(given_name, aliases)
    )
    run_many(db, "add_name", of, [(*row, -count) for row, count in sorted(names.items())])
    run_without_rows(db, "delete_unused_name", of, list({name for name, *_ in names}))
    remove_keys(db, of, [(given_name, access, entity) for entity, access, given_name, _ in profiles])
    described = [entity for entity, *_ in profiles]
    change.touched_entities.update((entity, access) for entity, access, *_ in profiles)
    gone = [id_.hex() for (id_,) in run_by_ids(db, "delete_unsupported_entities", described, collection=of)]
    run_without_rows(db, "delete_entity_vectors", of, gone, own_vectors=collection.own_vectors)
    run_without_rows(db, "unstage", of, gone, kind="entity")
    change.entities -= len(gone)
    return tuple(sorted(gone))


def _remove_words(db: Connection, of: int, accesses: Mapping[int, int], change: Change) -> None:
    """Remove passages, given by number with their permissions, from the inverted index.

    The counters of the stored terms are lowered.
    """
    gone = run(db, "delete_passage_terms", collection=of, numbers=list(accesses)).fetchall()
    by_access: Counter[tuple[int, int]] = Counter()
    for number, length, packed in gone:
        by_access.update((term, accesses[number]) for term in bm25.unpack_terms(packed))
        change.length[accesses[number]] -= length
    frequency: Counter[int] = Counter()
    for (term, _), count in by_access.items():
        frequency[term] -= count
    run_many(db, "add_term_count", of, [(*key, -count) for key, count in by_access.items()])
    for access, terms in group_pairs((access, term) for term, access in by_access).items():
        run(db, "delete_unused_term_count", collection=of, terms=terms, access=access)
    run_many(db, "leave_term", of, list(frequency.items()))
    run(db, "delete_unused_terms", collection=of, numbers=list(frequency))
