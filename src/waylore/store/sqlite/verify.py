"""Find traces of forgotten items in every table and index of a SQLite file and between its rows, and find damage.

Ids are looked up, rows without an owner are counted, derived data (rows of packs, terms, names, bits) is derived
again, and bytes that belong to no row must be blank. All of it is read from one snapshot, in time proportional to
the file, while others may read and write. This module repairs nothing.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import apsw
import numpy as np

from waylore.names import keys
from waylore.store import bm25, vectors
from waylore.store.checks import check_terms, describe_still_stored, list_still_stored
from waylore.store.pack_index import describe_differences, list_edges
from waylore.store.packs import Packs
from waylore.store.rows import list_names, make_sort_key
from waylore.store.sql import load_queries
from waylore.store.sqlite import file, pages
from waylore.store.sqlite.index import PACKS_AT_ONCE, find_entity_rows, index_packs, read_strengths
from waylore.store.sqlite.scope import run_by_facts, run_by_ids, run_by_rows
from waylore.store.sqlite.vfs import has_checksums
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.sqlite")
MAX_CHECKPOINTS = 20  # attempts to find the log empty while others write
HAS = {
    "mention": SQL["has_mention"],
    "assertion": SQL["has_assertion"],
    "edge": SQL["has_edge"],
}


@dataclass(frozen=True, slots=True)
class CheckedPages:
    """The bytes of a file, whether its pages have checksums, the damaged ones, and the writes lost in the log."""

    size: int
    has_checksums: bool
    damaged: tuple[int, ...]
    lost_writes: int


def find_remains(db: apsw.Connection, path: str, collection: int, receipt: Receipt) -> tuple[str, ...]:
    """Return one line for each trace; an empty tuple if there is none."""
    with _hold_still(db, path) as is_still:
        db.execute(SQL["create_instances"])
        lines = [
            *_find_identities(db, collection, receipt),
            *_count_orphans(db),
            *_check_packs(db),
            *_check_terms(db),
            *_check_names(db),
            *_check_codes(db),
        ]
        lines += _check_pages(db) if is_still else [_describe_log(path)]
    return tuple(lines)


@contextmanager
def _hold_still(db: apsw.Connection, path: str) -> Iterator[bool]:
    """Open a snapshot, and yield whether the log is empty. If it is, the file does not change during the snapshot."""
    for _ in range(MAX_CHECKPOINTS):
        is_truncated = not db.readonly("main") and pages.checkpoint(path, truncate_log=True)
        with db:
            db.execute(SQL["data_version"]).fetchall()
            is_still = pages.measure_log(path) == 0
            if is_still or not is_truncated:
                yield is_still
                return
    with db:
        yield False


def _find_identities(db: apsw.Connection, collection: int, receipt: Receipt) -> Iterator[str]:
    yield from list_still_stored(
        replace(receipt, facts=()), lambda query, ids: run_by_ids(db, query, ids, collection=collection)
    )
    ids = {make_sort_key(bytes.fromhex(id_)): id_ for id_ in receipt.facts}
    for (key,) in run_by_facts(db, "known_facts", np.array(list(ids), np.int64), collection=collection):
        yield describe_still_stored("fact", ids[key])


def _count_orphans(db: apsw.Connection) -> Iterator[str]:
    for count, problem in db.execute(SQL["orphans"]):
        if count:
            yield f"{count} {problem}"
    for (problem,) in db.execute(SQL["integrity_check"]):
        if problem != "ok":
            yield f"the file is damaged: {problem}"


def _check_packs(db: apsw.Connection) -> Iterator[str]:
    """Yield a line if stored mentions, assertions and edges differ from those computed from the packs."""
    wanted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for collection, rows in groupby(db.execute(SQL["all_packs"]), key=itemgetter(0)):
        while batch := list(islice(rows, PACKS_AT_ONCE)):
            _, accesses, ids, numbers, said, facts, blobs = zip(*batch, strict=True)
            packs = Packs(blobs)
            rows_of = find_entity_rows(db, collection, packs)
            index = index_packs(packs, collection, accesses, [id_.hex() for id_ in ids], numbers, rows_of, said)
            keys: dict[str, Sequence[tuple[Any, ...]]] = {
                "mention": index.mentions,
                "assertion": [(*row[:7], *row[-2:]) for row in index.assertions],
                "edge": list({edge[:4] for edge in list_edges(index.ends, read_strengths(db, collection, index), {})}),
            }
            for kind, listed in keys.items():
                wanted[kind] += len(listed)
                found[kind] += sum(1 for _ in db.executemany(HAS[kind], listed))
            wanted["entity"] += len(set(packs.entities[1:].tolist()))
            found["entity"] += len(rows_of)
            wanted["fact"] += sum(facts)
            found["fact"] += len(packs.facts)
    yield from describe_differences(wanted, found, dict(db.execute(SQL["count_rows"])))


def _check_terms(db: apsw.Connection) -> Iterator[str]:
    counted: Counter[tuple[int, int]] = Counter()
    for access, packed in db.execute(SQL["all_passage_terms"]):
        counted.update((row, access) for row in bm25.unpack_terms(packed))
    return check_terms(counted, dict(db.execute(SQL["all_terms"])), db.execute(SQL["all_term_counts"]))


def _check_names(db: apsw.Connection) -> Iterator[str]:
    """Yield a line if names or keys of names belong to no document, or are counted too often."""
    names: Counter[object] = Counter()
    of_names: Counter[object] = Counter()
    for entity, access, given_name, aliases in db.execute(SQL["all_profiles"]):
        names.update((name, entity, access) for name in list_names(given_name, json.loads(aliases)))
        of_names.update((key, entity, access) for key in keys(given_name))
    expected = {"names": (names, SQL["all_names"]), "keys of names": (of_names, SQL["all_keys"])}
    for kind, (counts, query) in expected.items():
        wrong = sum(counts[(name, *of)] != count for name, *of, count in db.execute(query))
        if wrong:
            yield f"{wrong} {kind} are counted in documents that do not exist"


def _check_codes(db: apsw.Connection) -> Iterator[str]:
    """Yield a line if bits of vectors have no passage or entity."""
    wrong = 0
    for block, kind, bits, live in db.execute(SQL["all_blocks"]):
        is_live = np.unpackbits(np.frombuffer(live, dtype=np.uint8)).astype(bool)
        has_bits = np.frombuffer(bits, dtype=np.uint64).reshape(-1, vectors.BLOCK_ROWS).any(axis=0)
        rows = block * vectors.BLOCK_ROWS + np.flatnonzero(is_live)
        found = sum(count for count, _ in run_by_rows(db, f"joined_{kind}_ids", rows))
        wrong += len(rows) - found + int((has_bits & ~is_live).sum())
    if wrong:
        yield f"{wrong} codes have no passage or entity"


def _check_pages(db: apsw.Connection) -> Iterator[str]:
    free, used = pages.count_unclean(db)
    for count, where in ((free, "free pages hold"), (used, "pages in use hold, beside their rows,")):
        if count:
            yield f"{count} {where} bytes that Waylore did not blank: compact() rewrites the file without them"


def _describe_log(path: str) -> str:
    return (
        f"the log beside the file ({pages.measure_log(path)} bytes) may hold forgotten items, because another "
        "connection is reading or writing: verify again when it has finished"
    )


# -- damage --------------------------------------------------------------------------------------------


def check_pages(path: str) -> CheckedPages:
    """Compare every page of a file with its checksum, from one snapshot, without changing the file."""
    with file.translate_errors(path), closing(file.open_to_read(path)) as db:
        file.check_kind(db, file.STORE, file.CATALOGUE)
        lost = pages.count_lost_writes(db)
        with db:
            size, has = int(db.pragma("page_count")) * int(db.pragma("page_size")), has_checksums(db)
            damaged = pages.find_damaged(db) if has else ()
    return CheckedPages(size, has, damaged, lost)
