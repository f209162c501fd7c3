"""Looking for what is left of what was forgotten: in every table and index of a SQLite file, and between them.

Identities are looked up, rows whose owner is gone are counted, what is derived (terms, names, bits) is derived
again, and the bytes that belong to no row must be blank: then what no row says is not in the file. All of it
is read at one moment, in proportion to the file; others may read and write meanwhile. It mends nothing.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import numpy as np

from waylore.names import keys
from waylore.store import bm25, vectors
from waylore.store.checks import still_there
from waylore.store.rows import names_of
from waylore.store.sql import load_queries
from waylore.store.sqlite import pages
from waylore.store.sqlite.scope import by_ids, by_rows
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")
TRIES = 20  # to find the log empty, while others write


def remains(db: apsw.Connection, path: str, collection: int, receipt: Receipt) -> tuple[str, ...]:
    """A line for everything that is left; none, if nothing is."""
    with _standing_still(db, path) as is_still:
        db.execute(SQL["create_instances"])
        lines = [*_identities(db, collection, receipt), *_orphans(db), *_terms(db), *_names(db), *_codes(db)]
        lines += _unclean(db) if is_still else [_log(path)]
    return tuple(lines)


@contextmanager
def _standing_still(db: apsw.Connection, path: str) -> Iterator[bool]:
    """A moment of the file, and whether the log was empty then: if so, nobody changes the file meanwhile."""
    for _ in range(TRIES):
        is_emptied = pages.checkpoint(path, is_emptying=True)
        with db:
            db.execute(SQL["data_version"]).fetchall()
            is_still = pages.log_size(path) == 0
            if is_still or not is_emptied:
                yield is_still
                return
    with db:
        yield False


def _identities(db: apsw.Connection, collection: int, receipt: Receipt) -> Iterator[str]:
    return still_there(receipt, lambda query, ids: by_ids(db, query, ids, collection=collection))


def _orphans(db: apsw.Connection) -> Iterator[str]:
    for count, what in db.execute(SQL["orphans"]):
        if count:
            yield f"{count} {what}"
    for (problem,) in db.execute(SQL["integrity_check"]):
        if problem != "ok":
            yield f"the file is damaged: {problem}"


def _terms(db: apsw.Connection) -> Iterator[str]:
    """Terms that are counted in another number of passages than have them."""
    known = dict(db.execute(SQL["all_terms"]))
    counted = np.zeros(max(known, default=0) + 1, dtype=np.int64)
    for (packed,) in db.execute(SQL["all_passage_terms"]):
        np.add.at(counted, [row for row in bm25.rows(packed) if row in known], 1)
    wrong = sum(counted[row] != passages for row, passages in known.items())
    if wrong:
        yield f"{wrong} terms are counted in passages that are not there"


def _names(db: apsw.Connection) -> Iterator[str]:
    """Names and keys of names that no document gives an entity, or that are counted too often."""
    names: Counter[object] = Counter()
    of_names: Counter[object] = Counter()
    for entity, access, told, aliases in db.execute(SQL["all_profiles"]):
        names.update((name, entity, access) for name in names_of(told, json.loads(aliases)))
        of_names.update((key, entity, access) for key in keys(told))
    kept = {"names": (names, SQL["all_names"]), "keys of names": (of_names, SQL["all_keys"])}
    for what, (given, query) in kept.items():
        wrong = sum(given[(name, *of)] != count for name, *of, count in db.execute(query))
        if wrong:
            yield f"{wrong} {what} are counted in documents that are not there"


def _codes(db: apsw.Connection) -> Iterator[str]:
    """Bits of vectors whose passage or entity is gone."""
    wrong = 0
    for block, kind, bits, live in db.execute(SQL["all_blocks"]):
        is_live = np.unpackbits(np.frombuffer(live, dtype=np.uint8)).astype(bool)
        has_bits = np.frombuffer(bits, dtype=np.uint64).reshape(-1, vectors.BLOCK).any(axis=0)
        rows = block * vectors.BLOCK + np.flatnonzero(is_live)
        wrong += len(rows) - len(by_rows(db, f"{kind}_ids", rows)) + int((has_bits & ~is_live).sum())
    if wrong:
        yield f"{wrong} codes have no passage or entity"


def _unclean(db: apsw.Connection) -> Iterator[str]:
    free, used = pages.unclean(db)
    for count, where in ((free, "free pages hold"), (used, "pages hold, beside their rows,")):
        if count:
            yield f"{count} {where} bytes that Waylore did not blank: compact() rewrites the file without them"


def _log(path: str) -> str:
    return (
        f"the log beside the file ({pages.log_size(path)} bytes) may hold what is gone, for someone is "
        "reading or writing: verify again when they are done"
    )
