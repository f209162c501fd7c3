"""Fill the columns of a file by which the assertions of one subject and predicate are read newest first.

It runs once, inside the transaction of the migrations, so a killed process leaves the file as it was.
"""

from itertools import groupby, islice
from operator import itemgetter

import apsw

from waylore.store.packs import Packs
from waylore.store.sql import load_queries
from waylore.store.sqlite.index import index_packs

SQL = load_queries("waylore.store.sqlite")
FILL = load_queries("waylore.store.sqlite", file="series")
PACKS_AT_ONCE = 1_000
KEY_COLUMNS = 6  # of an assertion


def fill_series(db: apsw.Connection) -> None:
    """Compute the subject and predicate, and the beginning, of every assertion from its pack."""
    for collection, rows in groupby(db.execute(SQL["all_packs"]), key=itemgetter(0)):
        while batch := list(islice(rows, PACKS_AT_ONCE)):
            _, accesses, ids, numbers, said, _, blobs = zip(*batch, strict=True)
            index = index_packs(Packs(blobs), collection, accesses, [id_.hex() for id_ in ids], numbers, {}, said)
            db.executemany(FILL["set_series"], [(*row[:KEY_COLUMNS], *row[-2:]) for row in index.assertions])
