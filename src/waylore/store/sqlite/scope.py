"""What one verb of the SQLite store may see, and how a query is given its rows and identities.

A filter becomes a scope once, at the start of a verb: permissions as rows, metadata as tags. Both also stand
as words in the inverted index, so that searches filter inside it.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from waylore.store import rows as columns
from waylore.store.sql import load_queries
from waylore.types.knowledge import Status
from waylore.types.results import Statistics
from waylore.types.search import Filter

SQL = load_queries("waylore.store.sqlite")
Rows = npt.NDArray[np.int64]
_IDENTITY = re.compile("[0-9a-f]{32}")
NOTHING = '"§"'  # a word that no passage has


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of `collections`."""

    row: int
    statistics: Statistics
    length: int
    next_passage: int
    next_entity: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What one verb may see: the collection, the permissions the caller has, and the tags asked for."""

    collection: Collection
    accesses: Rows
    tags: list[list[str]]
    is_everything: bool

    @property
    def bindings(self) -> dict[str, Any]:
        """The parameters that every reading query has."""
        return {
            "collection": self.collection.row,
            "accesses": apsw.carray(self.accesses),
            "tags": json.dumps(self.tags, ensure_ascii=False) if self.tags else "[]",
        }

    @property
    def match(self) -> str:
        """The same as an expression of the inverted index; empty if nothing is filtered."""
        if self.is_everything:
            return ""
        row = self.collection.row
        either = [[access_word(row, a) for a in self.accesses.tolist()]]
        either += [[tag_word(row, t) for t in tags] for tags in self.tags]
        return " AND ".join(any_of(words) for words in either)


@dataclass(frozen=True, slots=True)
class Held:
    """Which facts count: by the status of their most trusted voice, and by when they were valid."""

    statuses: Sequence[Status]
    as_of: datetime | None

    @property
    def bindings(self) -> dict[str, Any]:
        """The parameters that every query for facts has."""
        at = None if self.as_of is None else columns.instant(self.as_of)
        return {"statuses": json.dumps(list(self.statuses)), "as_of": at}


def collection(db: apsw.Connection, name: str) -> Collection:
    """The collection's row as it is now."""
    row = db.execute(SQL["collection"], {"name": name}).get
    (number, version, model, dimension, documents, passages, entities, facts, mentions) = row[:9]
    statistics = Statistics(documents, passages, entities, facts, mentions, model, dimension, version)
    return Collection(number, statistics, *row[9:])


class Scopes:
    """The scopes of one connection, kept until anyone writes to the file."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        self._db = db
        self._name = name
        self._seen: tuple[Any, int] = (None, -1)
        self._kept: dict[str, Scope] = {}

    def of(self, where: Filter) -> Scope:
        """What a filter lets through, as rows."""
        now = (self._db.execute(SQL["data_version"]).get, self._db.total_changes())
        if now != self._seen:
            self._seen = now
            self._kept.clear()
        key = f"{columns.labels(where)}{columns.tags(where.metadata)}"
        if key not in self._kept:
            self._kept[key] = self._scope(where)
        return self._kept[key]

    def _scope(self, where: Filter) -> Scope:
        found = collection(self._db, self._name)
        bound = {"collection": found.row, "labels": columns.labels(where)}
        accesses = [row for (row,) in self._db.execute(SQL["visible_accesses"], bound)]
        return Scope(
            collection=found,
            accesses=np.array(accesses or [0], dtype=np.int64),  # carray wants one at least; no row is 0
            tags=columns.tags(where.metadata),
            is_everything=where.labels is None and not where.metadata,
        )


# -- words: what the inverted index holds, beside the rows of terms; for each collection apart ---------


def access_word(collection: int, access: int) -> str:
    """A permission, as a word that every passage with it has."""
    return f"{collection}·§a{access}"


def tag_word(collection: int, tag: str) -> str:
    """A key and value of metadata, as a word that every passage with it has."""
    return f"{collection}·§m{blake2b(tag.encode(), digest_size=8).hexdigest()}"


def any_of(words: Iterable[str]) -> str:
    """An expression that one of these words satisfies; none does if there are none."""
    return "(" + (" OR ".join(f'"{w}"' for w in words) or NOTHING) + ")"


# -- running a query over many ------------------------------------------------------------------------


def by_ids(db: apsw.Connection, query: str, ids: Sequence[str], **bound: Any) -> list[Any]:
    """Run a query over identities; none asked for is none found, and so is what is no identity."""
    try:
        blobs = tuple(bytes.fromhex(i) for i in dict.fromkeys(ids))
    except ValueError:
        return by_ids(db, query, [i for i in ids if _IDENTITY.fullmatch(i)], **bound)
    return db.execute(SQL[query], {**bound, "ids": apsw.carray(blobs)}).fetchall() if blobs else []


def by_rows(db: apsw.Connection, query: str, rows: Sequence[int] | Rows, **bound: Any) -> list[Any]:
    """Run a query over rows; none asked for is none found."""
    if not len(rows):
        return []
    array = apsw.carray(np.unique(np.asarray(rows, dtype=np.int64)))
    return db.execute(SQL[query], {**bound, "rows": array}).fetchall()
